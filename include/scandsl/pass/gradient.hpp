#pragma once
#include "scandsl/pass/affine.hpp"

namespace scandsl {

/// Names of operands that a derivative is taken with respect to.
using operand_names = fixed_list<name, max_tensors + max_parameters>;

namespace detail {

/// The sum of the cotangents that reach a node, kept apart by the axes that are still to be summed over: an
/// operand that lacks axes of a result takes the sum along them.
struct cotangent_sums {
  struct part {
    node_id of = no_node;
    axis_mask along = 0;
    quantity value;
  };
  fixed_list<part, 2 * max_nodes> parts;

  constexpr void add(node_id of, axis_mask along, quantity value) {
    if (value.is_zero()) return;
    for (part& each : parts)
      if (each.of == of && each.along == along) {
        each.value = each.value.is_zero() ? value : each.value + value;
        return;
      }
    parts.push_back({of, along, value});
  }
};

/// Reverse mode. Nodes are visited from the outputs to the inputs; a scan when all that reads it is done.
class reverse_mode {
public:
  constexpr reverse_mode(const program& source, const operand_names& wanted)
      : f_(source), d_(source), wanted_(wanted),
        depends_(source, [this](const node& n) { return is_variable(n); }) {
    d_.target.result.id = derived_title('d', source.id);
    for (quantity& q : cotangent_) q = number(0.0);
    rename_outputs();
  }

  constexpr program operator()() {
    for (const store_decl& store : f_.stores) {
      const quantity given(d_, d_.target.load(d_.target.result.tensors[store.tensor]));
      pass(f_.tensors[store.tensor].mask(), store.value, given);
    }
    for (int i = f_.nodes.count; i-- > 0;) visit(static_cast<node_id>(i));
    store_gradients();
    return prune(d_.target.result);
  }

private:
  const program& f_;
  derivation d_;
  const operand_names& wanted_;
  dependence depends_;
  cotangent_sums pending_;
  quantity cotangent_[max_nodes] = {};

  static constexpr std::size_t slot(int i) { return static_cast<std::size_t>(i); }
  constexpr quantity number(double value) { return {d_, d_.target.constant(value)}; }
  constexpr quantity scan_value(opcode which, int scan, int component) {
    return {d_, d_.target.scan_value(which, scan, component)};
  }

  // ---- operands

  constexpr bool is_wanted(const name& id) const {
    for (const name& each : wanted_)
      if (each == id) return true;
    return wanted_.count == 0;
  }
  constexpr bool is_variable(const node& n) const {
    if (n.op == opcode::parameter) return is_wanted(f_.parameters[n.target].id);
    return f_.tensors[n.target].role == tensor_role::input && is_wanted(f_.tensors[n.target].id);
  }

  /// The cotangent of an output is an input.
  constexpr void rename_outputs() {
    program& p = d_.target.result;
    for (tensor_decl& t : p.tensors)
      if (t.role == tensor_role::output) t.id = name{};
    for (int i = 0; i < f_.tensors.count; ++i) {
      if (f_.tensors[i].role != tensor_role::output) continue;
      tensor_decl& t = p.tensors[i];
      t.id = derived_name(p, 'd', f_.tensors[i].id);
      t.role = tensor_role::input;
      t.optional = t.optional || f_.stores.count > 1;
      t.fallback = 0.0;
    }
  }

  constexpr void store_gradients() {
    int gradients = 0;
    for (const tensor_decl& t : f_.tensors)
      gradients += t.role == tensor_role::input && is_wanted(t.id) ? 1 : 0;
    node_id of_parameter[max_parameters] = {};
    for (int i = 0; i < f_.parameters.count; ++i) {
      of_parameter[i] = cotangent_of_operand(opcode::parameter, i).in(d_);
      if (stores_parameter(i, of_parameter[i])) ++gradients;
    }
    for (int i = 0; i < f_.tensors.count; ++i)
      if (f_.tensors[i].role == tensor_role::input && is_wanted(f_.tensors[i].id)) {
        tensor_decl gradient_of = f_.tensors[i];
        gradient_of.optional = gradient_of.optional || gradients > 1;
        store(gradient_of, cotangent_of_operand(opcode::load, i));
      }
    for (int i = 0; i < f_.parameters.count; ++i)
      if (stores_parameter(i, of_parameter[i]))
        store({f_.parameters[i].id, {}, tensor_role::output, f_.parameters[i].optional || gradients > 1, 0.0},
              {d_, of_parameter[i]});
  }
  /// A scalar that only flags or restart intervals read has a gradient if it is asked for by name (it is 0).
  constexpr bool stores_parameter(int index, node_id value) const {
    return is_wanted(f_.parameters[index].id) && (wanted_.count > 0 || !d_.is_zero(value));
  }
  constexpr void store(tensor_decl declared, quantity value) {
    program& p = d_.target.result;
    declared.id = derived_name(p, 'd', declared.id);
    declared.role = tensor_role::output;
    declared.fallback = 0.0;
    p.stores.push_back({static_cast<std::int16_t>(p.tensors.push_back(declared)), value.in(d_)});
  }
  constexpr quantity cotangent_of_operand(opcode op, int index) {
    for (int i = 0; i < f_.nodes.count; ++i)
      if (f_.nodes[i].op == op && f_.nodes[i].target == index) return cotangent_[i];
    return number(0.0);
  }

  // ---- cotangents

  /// `value`, over `axes`, is a part of the cotangent of a node.
  constexpr void pass(axis_mask axes, node_id to, quantity value) {
    if (to != no_node && depends_.varied[to]) pending_.add(to, axes & ~f_.nodes[to].axes, value);
  }

  /// The sum of all parts, each along the axes that the node lacks.
  constexpr quantity collected(node_id id) {
    quantity sum = number(0.0);
    for (const cotangent_sums::part& each : pending_.parts)
      if (each.of == id) sum = sum + quantity(d_, d_.sum(each.value.in(d_), each.along));
    return sum;
  }
  /// The running sum of a value along the walk of `walk`.
  constexpr int sum_along(const scan_decl& walk, quantity value) {
    affine_recurrence r;
    r.size = 1;
    r.matrix[0][0] = number(1.0);
    r.offset[0] = value;
    return declare(d_, walk, r).scan;
  }

  constexpr void visit(node_id id) {
    const node n = f_.nodes[id];
    if (!depends_.varied[id] || depends_.inside_combine(id)) return;
    cotangent_[id] = collected(id);
    if (is_scan_value(n)) {
      if (is_first_value(id)) scan_adjoint(*this, n.target).pass_on();
    } else if (n.op == opcode::sum) {
      pass(n.axes | summed_axes(n), n.operand[0], cotangent_[id]);
    } else if (n.op == opcode::apply && !cotangent_[id].is_zero()) {
      const operand_quantities passed = pull_back(
          d_, n, cotangent_[id], {d_, id}, [this](node_id operand) { return quantity(d_, operand); },
          [this](node_id operand) { return depends_.varied[operand]; });
      for (std::size_t o = 0; o < passed.size(); ++o) pass(n.axes, n.operand[o], passed[o]);
    }
  }
  /// Whether no value of the same scan comes before this one: then whatever reads the scan is visited.
  constexpr bool is_first_value(node_id id) const {
    for (int i = 0; i < id; ++i)
      if (is_scan_value(f_.nodes[i]) && f_.nodes[i].target == f_.nodes[id].target && depends_.varied[i])
        return false;
    return true;
  }

  // ---- one scan

  /// The adjoint of one scan. With q_t the cotangent of the state before position t,
  ///
  ///     q_t = carry_t^T (after_t + q_{t+1}) + before_t,    from q = final,
  ///
  /// carry_t being the step's derivative and after, before, final the cotangents of opcode::scan, carry and
  /// last: a linear recurrence from the other end, with the same restarts. The element's cotangent is
  /// element_t^T (after_t + q_{t+1}), the initial value's is the last q.
  class scan_adjoint {
  public:
    constexpr scan_adjoint(reverse_mode& all, int scan)
        : all_(all), d_(all.d_), s_(all.f_.scans[scan]), scan_(scan) {
      for (component_vector* v : {&after_, &before_, &final_, &received_})
        for (quantity& q : *v) q = all.number(0.0);
      read_cotangents();
      active_ = all.depends_.with_carries(s_, active_) & all.depends_.varied_components[scan];
    }

    constexpr void pass_on() {
      if (active_ == 0) return;
      if (is_plain_reduction() && pass_on_reduction()) return;
      step_ = step_differentiation(d_, all_.depends_, scan_).rows(active_);
      if (restarts_apart()) add_final_before_the_end();
      find_carried();
      if (recurrence_.size > 0) declare_recurrence();
      for (int i = 0; i < s_.components; ++i)
        if (has(active_, i)) received_[slot(i)] = received(i);
      pass_to_elements();
      pass_to_initial();
    }

  private:
    reverse_mode& all_;
    derivation& d_;
    const scan_decl s_;
    int scan_;
    component_vector after_{}, before_{}, final_{}, received_{};
    component_mask active_ = 0;
    bool has_final_ = false;
    step_derivative step_;
    int carried_[max_components] = {};  ///< by component: its row in the recurrence, -1 where q is 0
    int component_[max_components] = {};
    affine_recurrence recurrence_;
    affine_scan adjoint_;
    int final_scan_[max_components] = {};

    constexpr void read_cotangents() {
      for (int i = 0; i < all_.f_.nodes.count; ++i) {
        const node& n = all_.f_.nodes[i];
        if (!is_scan_value(n) || n.target != scan_ || all_.cotangent_[i].is_zero()) continue;
        component_vector& to = n.op == opcode::scan ? after_ : n.op == opcode::carry ? before_ : final_;
        to[slot(n.component)] = all_.cotangent_[i];
        active_ |= component_bit(n.component);
        has_final_ = has_final_ || n.op == opcode::last;
      }
    }
    constexpr bool varies_initially() const {
      for (int k = 0; k < s_.components; ++k)
        if (s_.initial[k] != no_node && all_.depends_.varied[s_.initial[k]]) return true;
      return false;
    }

    // ---- only the last value is read

    constexpr bool is_plain_reduction() const {
      if (s_.every != no_node || s_.offsets >= 0) return false;
      for (int k = 0; k < s_.components; ++k)
        if (!after_[slot(k)].is_zero() || !before_[slot(k)].is_zero()) return false;
      return true;
    }
    /// Without a scan: what reaches a position of a sum is the final cotangent itself, and of a log-add-exp
    /// the position's share of it. False where it takes the recurrence.
    constexpr bool pass_on_reduction() {
      if (is_log_add_exp(all_.f_, scan_)) {
        const quantity sum = all_.scan_value(opcode::last, scan_, 0), g = final_[0];
        pass(s_.axes, s_.element[0], g * share({d_, s_.element[0]}, sum));
        if (s_.initial[0] != no_node)
          pass(last_axes(), s_.initial[0], g * share({d_, s_.initial[0]}, sum));
        return true;
      }
      step_ = step_differentiation(d_, all_.depends_, scan_).rows(active_);
      for (int i = 0; i < s_.components; ++i)
        for (int j = 0; j < s_.components; ++j)
          if (has(active_, i) && has(active_, j) && !by_carry(i, j).equals(i == j ? 1.0 : 0.0)) return false;
      received_ = final_;
      pass_to_elements();
      for (int k = 0; k < s_.components; ++k)
        if (has(active_, k)) pass(last_axes(), s_.initial[k], final_[slot(k)]);
      return true;
    }

    // ---- restarts

    /// Whether the two ends of a row differ from those of its stretches.
    constexpr bool restarts_apart() const {
      return s_.every != no_node && (has_final_ || varies_initially());
    }
    constexpr scan_decl walk_back() const {
      scan_decl walk = s_;
      walk.reversed = !s_.reversed;
      walk.log_sum = false;
      return walk;
    }
    /// The last stretch alone ends in the final value: its cotangent is added at the row's last position.
    constexpr void add_final_before_the_end() {
      for (int k = 0; k < s_.components; ++k) {
        final_scan_[k] = -1;
        if (final_[slot(k)].is_zero()) continue;
        final_scan_[k] = value_before_a_walk(final_[slot(k)]);
        after_[slot(k)] = after_[slot(k)] + all_.scan_value(opcode::carry, final_scan_[k], 0);
      }
      final_.fill(all_.number(0.0));
    }
    /// A scan along the way back whose carry is `value` at the first position and 0 behind it: the state is
    /// the latest element that is not 1, and all elements are 0.
    constexpr int value_before_a_walk(quantity value) {
      scan_decl walk = walk_back();
      walk.every = no_node;
      walk.components = 1;
      walk.identity[0] = 1.0;
      walk.initial[0] = value.in(d_);
      walk.element[0] = d_.target.constant(0.0);
      const quantity left(d_, d_.target.placeholder(opcode::left, 0)),
          right(d_, d_.target.placeholder(opcode::right, 0));
      walk.combined[0] = select(right == 1.0, left, right).id;
      return d_.declare(walk);
    }
    /// A condition: whether a stretch of the scan starts at this position.
    constexpr quantity starts_here() {
      scan_decl walk = s_;
      walk.components = 1;
      walk.log_sum = false;
      walk.identity[0] = 0.0;
      walk.initial[0] = no_node;
      walk.element[0] = d_.target.constant(1.0);
      const quantity left(d_, d_.target.placeholder(opcode::left, 0)),
          right(d_, d_.target.placeholder(opcode::right, 0));
      walk.combined[0] = max(left, right).id;
      return all_.scan_value(opcode::carry, d_.declare(walk), 0) == 0.0;
    }

    // ---- the recurrence

    constexpr quantity by_carry(int i, int j) const { return step_.carry[slot(i)][slot(j)]; }

    /// The components whose q is not 0 throughout.
    constexpr void find_carried() {
      for (int j = 0; j < s_.components; ++j) {
        carried_[j] = -1;
        if (!has(active_, j)) continue;
        bool reached = !before_[slot(j)].is_zero() || !final_[slot(j)].is_zero();
        for (int i = 0; i < s_.components; ++i)
          reached = reached || (has(active_, i) && !by_carry(i, j).is_zero());
        if (!reached) continue;
        component_[recurrence_.size] = j;
        carried_[j] = recurrence_.size++;
      }
    }
    constexpr void declare_recurrence() {
      recurrence_.starts_at_zero = !has_final_ || restarts_apart();
      for (int row = 0; row < recurrence_.size; ++row) {
        const int j = component_[row];
        for (int column = 0; column < recurrence_.size; ++column)
          recurrence_.matrix[slot(row)][slot(column)] = by_carry(component_[column], j);
        quantity offset = before_[slot(j)];
        for (int i = 0; i < s_.components; ++i)
          if (has(active_, i)) offset = by_carry(i, j) * after_[slot(i)] + offset;
        recurrence_.offset[slot(row)] = offset;
        recurrence_.initial[slot(row)] = final_[slot(j)];
      }
      adjoint_ = declare(d_, walk_back(), recurrence_);
    }
    constexpr quantity q(opcode which, int row) {
      return all_.scan_value(which, adjoint_.scan, adjoint_.component[row]);
    }

    /// after_t + q_{t+1}. Where the step leaves a component as it is, that is q_t itself, or q_t and q_{t+1}
    /// by a flag.
    constexpr quantity received(int j) {
      const int row = carried_[j];
      const quantity after = after_[slot(j)], before = before_[slot(j)];
      if (row < 0) return after;
      bool unchanged = by_carry(j, j).equals(1.0);
      for (int i = 0; i < s_.components; ++i)
        unchanged = unchanged && (i == j || !has(active_, i) || by_carry(i, j).is_zero());
      const quantity carry = q(opcode::carry, row);
      if (unchanged && before.is_zero()) return q(opcode::scan, row);
      if (unchanged && d_.is_masked(after.id) && d_.is_masked(before.id)) {
        const node one = d_.at(after.id), other = d_.at(before.id);
        const bool flag = one.operand[0] == other.operand[0];
        if (flag && d_.is_zero(one.operand[1]) && d_.is_zero(other.operand[2]))
          return select(quantity(d_, one.operand[0]), carry, q(opcode::scan, row));
        if (flag && d_.is_zero(one.operand[2]) && d_.is_zero(other.operand[1]))
          return select(quantity(d_, one.operand[0]), q(opcode::scan, row), carry);
      }
      return after + carry;
    }

    // ---- what it passes on

    constexpr axis_mask last_axes() const {
      const axis_mask segments = s_.segment_axis < 0 ? 0 : axis_bit(s_.segment_axis);
      return (s_.axes & ~axis_bit(s_.axis)) | segments;
    }
    constexpr void pass(axis_mask axes, node_id to, quantity value) { all_.pass(axes, to, value); }

    constexpr void pass_to_elements() {
      for (int j = 0; j < s_.components; ++j) {
        quantity sum = all_.number(0.0);
        if (!all_.depends_.varied[s_.element[j]]) continue;
        for (int i = 0; i < s_.components; ++i) {
          const quantity factor = step_.element[slot(i)][slot(j)];
          if (has(active_, i) && !factor.is_zero()) sum = factor * received_[slot(i)] + sum;
        }
        pass(s_.axes, s_.element[j], sum);
      }
    }
    constexpr void pass_to_initial() {
      for (int j = 0; j < s_.components; ++j) {
        const node_id to = s_.initial[j];
        if (to == no_node || !all_.depends_.varied[to] || !has(active_, j)) continue;
        quantity sum = all_.number(0.0);
        if (restarts_apart()) {
          if (carried_[j] >= 0) sum = sum_over_starts(q(opcode::scan, carried_[j]));
          // An empty row is its initial value.
          if (final_scan_[j] >= 0) sum = sum + all_.scan_value(opcode::last, final_scan_[j], 0);
        } else if (carried_[j] >= 0) {
          sum = q(opcode::last, carried_[j]);
        }
        pass(last_axes(), to, step_.start[slot(j)] * sum);
      }
    }
    constexpr quantity sum_over_starts(quantity each) {
      scan_decl walk = walk_back();
      walk.every = no_node;
      return all_.scan_value(opcode::last, all_.sum_along(walk, select(starts_here(), each, 0.0)), 0);
    }
  };
};

constexpr program gradient_of(const program& p, const operand_names& wanted) {
  for (const name& each : wanted) {
    const int tensor = p.find_tensor(each);
    if (p.find_parameter(each) < 0 && (tensor < 0 || p.tensors[tensor].role != tensor_role::input))
      throw "scandsl: gradient: the program has no input and no scalar of that name";
  }
  const program source = simplify(p);
  return reverse_mode(source, wanted)();
}

}  // namespace detail

/// The gradient of a program with respect to its inputs, initial states and scalars.
constexpr program gradient(const program& p) { return detail::gradient_of(p, {}); }

/// The same with respect to some operands: gradient(p, x, decay).
template <class... Operand>
  requires(sizeof...(Operand) > 0 && ((is_tensor<Operand> || is_scalar<Operand>) && ...))
constexpr program gradient(const program& p, Operand...) {
  operand_names wanted;
  (wanted.push_back(Operand::id), ...);
  return detail::gradient_of(p, wanted);
}

}  // namespace scandsl
