#pragma once
#include "scandsl/pass/rotation.hpp"
#include "scandsl/pass/simplify.hpp"
#include "scandsl/pass/unroll.hpp"

namespace scandsl {
namespace detail {

constexpr const scan_decl* newest_scan_along(const program& p, int axis) {
  for (int s = p.scans.count; s-- > 0;)
    if (p.scans[s].axis == axis) return &p.scans[s];
  return nullptr;
}

/// Whether a value follows from a scan with packed sequences, whose walk along `axis` goes through each of
/// them by itself.
constexpr bool is_of_packed_scan(const program& p, node_id value, int axis) {
  bool below[max_nodes] = {};
  below[value] = true;
  for (int i = value; i >= 0; --i) {
    if (!below[i]) continue;
    const node& n = p.nodes[i];
    if ((n.op == opcode::carry || n.op == opcode::scan) && p.scans[n.target].axis == axis &&
        p.scans[n.target].offsets >= 0)
      return true;
    for (const node_id operand : n.operand)
      if (operand != no_node) below[operand] = true;
  }
  return false;
}

/// The sum of a value along one axis as the last value of a scan, which runs the way the newest scan along
/// that axis does: the two then share a sweep. What a scan with packed sequences gives is summed by sequence,
/// for the same reason; then `left` gets the axis of the sequences, along which the sum is still to be taken.
constexpr node_id sum_along(builder& b, node_id value, int axis, axis_mask& left) {
  scan_decl s;
  s.axis = static_cast<std::int16_t>(axis);
  s.components = 1;
  s.initial[0] = no_node;
  s.element[0] = value;
  s.combined[0] = b.apply(primitive::index<primitive::add_op>, b.placeholder(opcode::left, 0),
                          b.placeholder(opcode::right, 0));
  s.axes = b.result.nodes[value].axes | axis_bit(axis);
  if (const scan_decl* beside = newest_scan_along(b.result, axis)) {
    s.reversed = beside->reversed;
    s.reverse_parameter = beside->reverse_parameter;
    if (beside->every == no_node && beside->offsets >= 0 && is_of_packed_scan(b.result, value, axis) &&
        (s.axes & axis_bit(beside->segment_axis)) == 0) {
      s.offsets = beside->offsets;
      s.segment_axis = beside->segment_axis;
      left |= axis_bit(s.segment_axis);
    }
  }
  return b.scan_value(opcode::last, b.scan(s), 0);
}

}  // namespace detail

/// Writes every sum along axes as scans, one an axis, for executors that know no sums. Axes that are scanned
/// anyway come first: such a sum joins the walk of that scan, and only its result goes on to the next axis.
constexpr program expand_sums(const program& p) {
  return rewrite(p, [](rewriting& copy, const node& old) {
    if (old.op != opcode::sum) return copy.copy(old);
    node_id value = copy.at(old.operand[0]);
    axis_mask scanned = 0, sequences = 0;
    for (const scan_decl& s : copy.target.result.scans) scanned |= axis_bit(s.axis);
    const auto sum = [&](axis_mask axes) {
      for (int a = 0; a < copy.source.axes.count; ++a)
        if (axes & axis_bit(a)) value = detail::sum_along(copy.target, value, a, sequences);
    };
    sum(summed_axes(old) & scanned);
    sum(summed_axes(old) & ~scanned);
    sum(sequences);
    return value;
  });
}

namespace detail {

/// Of each node, the axes of the sums in which it is linear: a sum, or made of such by additions, negations
/// and multiplications by what does not vary along those axes; the same axes in all terms. 0: it is not.
struct linear_sums {
  axis_mask along[max_nodes]{};

  constexpr explicit linear_sums(const program& p) {
    for (int i = 0; i < p.nodes.count; ++i) {
      const node& n = p.nodes[i];
      const bool product = is_apply<primitive::multiply_op>(n);
      if (n.op == opcode::sum) {
        along[i] = summed_axes(n);
      } else if (is_apply<primitive::neg_op>(n)) {
        along[i] = along[n.operand[0]];
      } else if (product || is_apply<primitive::add_op>(n) || is_apply<primitive::subtract_op>(n)) {
        const axis_mask one = along[n.operand[0]], other = along[n.operand[1]];
        const axis_mask factor = p.nodes[n.operand[one == 0 ? 0 : 1]].axes;
        if (!product)
          along[i] = one == other ? one : axis_mask{0};
        else if (one == 0 || other == 0)
          along[i] = ((one | other) & factor) == 0 ? one | other : axis_mask{0};
      }
    }
  }
};
/// The factors of a product of any depth, but for its sign.
struct factor_list {
  static constexpr int most = 16;
  fixed_list<node_id, most> factors;
  bool negative = false, complete = true;

  constexpr factor_list(const program& p, node_id product) { add(p, product); }
  constexpr void add(const program& p, node_id id) {
    if (!complete) return;
    const node& n = p.nodes[id];
    if (is_apply<primitive::neg_op>(n)) {
      negative = !negative;
      add(p, n.operand[0]);
    } else if (is_apply<primitive::multiply_op>(n)) {
      add(p, n.operand[0]);
      add(p, n.operand[1]);
    } else if (factors.count < most) {
      factors.push_back(id);
    } else {
      complete = false;
    }
  }
  /// Takes a factor out, once. False where it is none.
  constexpr bool take(node_id id) {
    for (int i = 0; i < factors.count; ++i)
      if (factors[i] == id) {
        factors[i] = factors[factors.count - 1];
        --factors.count;
        return true;
      }
    return false;
  }
};
/// x + y, or x - y, with what multiplies both taken out: first what varies along all of the sum's axes, so
/// that the rest can be multiplied once for many.
struct common_factors {
  builder& target;

  constexpr node_id of(int function, node_id x, node_id y) {
    factor_list one(target.result, x), other(target.result, y);
    const axis_mask all = target.result.nodes[x].axes | target.result.nodes[y].axes;
    node_id wide = no_node, narrow = no_node;
    if (one.complete && other.complete) {
      const factor_list given = one;
      for (const node_id each : given.factors) {
        if (!other.take(each)) continue;
        one.take(each);
        multiply(target.result.nodes[each].axes == all ? wide : narrow, each);
      }
    }
    if (wide == no_node && narrow == no_node) return target.apply(function, x, y);
    const bool differ =
        (function == primitive::index<primitive::subtract_op>) != (one.negative != other.negative);
    node_id result =
        target.apply(differ ? primitive::index<primitive::subtract_op> : primitive::index<primitive::add_op>,
                     product(one), product(other));
    if (wide != no_node) multiply(result, wide);
    if (narrow != no_node) multiply(result, narrow);
    return one.negative ? target.apply(primitive::index<primitive::neg_op>, result) : result;
  }

private:
  constexpr void multiply(node_id& by, node_id factor) {
    by = by == no_node ? factor : target.apply(primitive::index<primitive::multiply_op>, by, factor);
  }
  constexpr node_id product(const factor_list& list) {
    node_id result = no_node;
    for (const node_id each : list.factors) multiply(result, each);
    return result == no_node ? target.constant(1.0) : result;
  }
};
/// The copies of values that are linear in sums, without these: whose sums the values are. (With all of a sum
/// in one place, terms have factors in common: theta's gradient of an encoding is x n (cos(..) dy - sin(..)
/// dy).)
struct without_sums {
  rewriting& copy;
  const linear_sums& sums;
  node_id made[max_nodes]{};

  constexpr without_sums(rewriting& c, const linear_sums& s) : copy(c), sums(s) {
    for (node_id& each : made) each = no_node;
  }
  constexpr node_id of(node_id id) {
    if (sums.along[id] == 0) return copy.at(id);
    if (made[id] != no_node) return made[id];
    const node& n = copy.source.nodes[id];
    if (n.op == opcode::sum) return made[id] = copy.at(n.operand[0]);
    const node_id one = of(n.operand[0]);
    if (n.operand[1] == no_node) return made[id] = copy.target.apply(n.function, one);
    const node_id other = of(n.operand[1]);
    return made[id] = is_apply<primitive::multiply_op>(n)
                          ? copy.target.apply(n.function, one, other)
                          : common_factors{copy.target}.of(n.function, one, other);
  }
};

}  // namespace detail

/// Whether a program has sums, and sines or cosines of products.
constexpr bool has_sums_of_angles(const program& p) {
  bool turns = false, sums = false;
  for (const node& n : p.nodes) {
    turns = turns || is_sine_or_cosine_of_product(n);
    sums = sums || n.op == opcode::sum;
  }
  return turns && sums;
}

namespace detail {

/// Sums along an axis are taken first, before those along others that they are made of.
constexpr program sum_first_along(const program& p, int axis) {
  const linear_sums sums(p);
  return rewrite(p, [axis, &sums](rewriting& copy, const node& old) {
    if (old.op != opcode::sum || axis < 0 || (summed_axes(old) & axis_bit(axis)) == 0) return copy.copy(old);
    const node_id element = old.operand[0];
    const axis_mask inner = sums.along[element];
    const bool merges = inner != 0 && (inner & summed_axes(old)) == 0;
    axis_mask left = (summed_axes(old) | (merges ? inner : axis_mask{0})) & ~axis_bit(axis);
    if (left == 0) return copy.copy(old);
    const node_id all = merges ? without_sums(copy, sums).of(element) : copy.at(element),
                  value = sum_along(copy.target, all, axis, left);
    return copy.target.sum(value, left);
  });
}

}  // namespace detail

/// Sums along the axis along which sines and cosines rotate are taken first: one walk along it does these and
/// what they are made of, and leaves a value for each position along the other axes. For executors that have
/// enough to do at one time without sharing that axis. It follows from the program alone: of float64, where
/// nothing turns, and of few positions it is the other order that would store less.
constexpr program sum_where_angles_rotate(const program& source) {
  const program p = unroll(drop_rules(source));
  return detail::sum_first_along(p, axis_of_most(p, rotates_along));
}
/// ... and where none rotate for sure those along the axis along which they may turn: positions that are
/// given, or of a grid. For executors to which turning the angles of each term costs less than exact ones
/// that a few terms share.
constexpr program sum_where_angles_may_turn(const program& source) {
  const program p = unroll(drop_rules(source));
  const int rotating = axis_of_most(p, rotates_along);
  return detail::sum_first_along(p, rotating >= 0 ? rotating : likeliest_axis(p));
}

}  // namespace scandsl
