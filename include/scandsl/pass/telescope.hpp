#pragma once
#include "scandsl/pass/rewrite.hpp"
#include "scandsl/pass/schedule.hpp"

namespace scandsl {
namespace detail {

/// A recurrence whose factor is the ratio of a log-sum's successive sums, as in the gradient of a
/// log-add-exp.
struct telescope_terms {
  int log_sum = -1;          ///< a scan; -1: none
  int ratio = 0, value = 0;  ///< the components of the recurrence: the factors' product, and r itself
};

class telescoping {
public:
  constexpr explicit telescoping(const program& p) : p_(p) {
    for (int i = 0; i < p.scans.count; ++i) terms_[i] = find_terms(i);
    for (const node& n : p.nodes)  // a product that is read has to be computed
      if (is_scan_value(n) && terms_[n.target].log_sum >= 0 && n.component == terms_[n.target].ratio)
        terms_[n.target] = {};
  }

  constexpr node_id operator()(rewriting& copy, const node& old) {
    if (const node_id found = weighted(copy, old); found != no_node) return found;
    if (!is_scan_value(old) || terms_[old.target].log_sum < 0) return copy.copy(old);
    const term scaled = scaled_value(copy, old.op, old.target);
    if (old.op == opcode::last) return scaled.id;
    return (scaled * sum_value(copy, old.op == opcode::carry ? opcode::scan : opcode::carry,
                               terms_[old.target].log_sum))
        .id;
  }

private:
  const program& p_;
  telescope_terms terms_[max_scans];
  std::int16_t scaled_[max_scans] = {};  ///< in the copy, counted from 1; 0: not yet

  constexpr const node& at(node_id id) const { return p_.nodes[id]; }
  constexpr bool is_value(node_id id, opcode op, int scan, int component) const {
    const node& n = at(id);
    return n.op == op && n.target == scan && n.component == component;
  }
  /// Calls f(x, y) and f(y, x) for the operands of a sum or product until it says true.
  template <class Op, class F> constexpr bool either_way(node_id id, F f) const {
    return either_way<Op>(at(id), f);
  }
  template <class Op, class F> static constexpr bool either_way(const node& n, F f) {
    return is_apply<Op>(n) && (f(n.operand[0], n.operand[1]) || f(n.operand[1], n.operand[0]));
  }

  /// The log-sum of which a node is S_{t-1} / S_t, in its parts (m, s); -1: none.
  constexpr int ratio_of_sums(node_id id) const {
    int found = -1;
    either_way<primitive::multiply_op>(id, [&](node_id sums, node_id maxima) {
      const node &select = at(sums), &shrink = at(maxima);
      if (!is_apply<primitive::select_op>(select) || !is_apply<primitive::exp_difference_op>(shrink))
        return false;
      const int scan = at(shrink.operand[1]).op == opcode::scan ? at(shrink.operand[1]).target : -1;
      if (scan < 0 || !p_.scans[scan].log_sum) return false;
      const node &equal = at(select.operand[0]), &share = at(select.operand[2]);
      const auto from_before = [&](const node& n, int component) {
        return is_value(n.operand[0], opcode::carry, scan, component) &&
               is_value(n.operand[1], opcode::scan, scan, component);
      };
      const auto compares = [&](const node& n) {
        return either_way<primitive::equal_op>(n, [&](node_id x, node_id y) {
          return is_value(x, opcode::carry, scan, 1) && is_value(y, opcode::scan, scan, 1);
        });
      };
      if (is_apply<primitive::divide_op>(share) && is_number(p_, select.operand[1], 1.0) &&
          from_before(shrink, 0) && compares(equal) && from_before(share, 1))
        found = scan;
      return found >= 0;
    });
    return found;
  }

  constexpr telescope_terms find_terms(int index) const {
    const scan_decl& s = p_.scans[index];
    if (s.components != 2) return {};
    for (int a = 0; a < 2; ++a) {
      const int found = ratio_of_sums(s.element[a]);
      if (found >= 0 && goes_back_over(s, p_.scans[found]) && is_affine(s, a)) return {found, a, 1 - a};
    }
    return {};
  }
  static constexpr bool goes_back_over(const scan_decl& s, scan_decl other) {
    other.reversed = !other.reversed;
    return s.same_walk(other) && s.same_direction(other);
  }
  /// Whether the states are steps from r to A r + B: (A, B) after (A', B') is (A A', A B' + B).
  constexpr bool is_affine(const scan_decl& s, int a) const {
    const int b = 1 - a;
    const auto side = [&](node_id id, opcode op, int component) {
      return at(id).op == op && at(id).target == component;
    };
    const bool product = either_way<primitive::multiply_op>(s.combined[a], [&](node_id x, node_id y) {
      return side(x, opcode::left, a) && side(y, opcode::right, a);
    });
    const bool sum = either_way<primitive::add_op>(s.combined[b], [&](node_id x, node_id y) {
      return side(y, opcode::right, b) && either_way<primitive::multiply_op>(x, [&](node_id u, node_id v) {
               return side(u, opcode::right, a) && side(v, opcode::left, b);
             });
    });
    return product && sum && s.identity[a] == 1.0 && s.identity[b] == 0.0 &&
           (s.initial[a] == no_node || is_number(p_, s.initial[a], 1.0));
  }

  static constexpr term sum_value(rewriting& copy, opcode op, int log_sum) {
    return term(copy.target, copy.target.scan_value(op, copy.scan(log_sum), 1));
  }
  static constexpr term copied(rewriting& copy, node_id id) { return term(copy.target, copy.at(id)); }

  /// An element of a recurrence: A g, or by a flag A g or g; no_node for others.
  struct element_terms {
    node_id g = no_node, flag = no_node;
    bool when = true;  ///< the flag's value where it is A g
  };
  constexpr node_id without_ratio(int index, node_id id) const {
    const node_id ratio = p_.scans[index].element[terms_[index].ratio];
    node_id found = no_node;
    either_way<primitive::multiply_op>(id, [&](node_id x, node_id y) {
      if (x == ratio) found = y;
      return x == ratio;
    });
    return found;
  }
  constexpr element_terms terms_of_element(int index) const {
    const node_id id = p_.scans[index].element[terms_[index].value];
    if (const node_id g = without_ratio(index, id); g != no_node) return {g, no_node, true};
    const node& n = at(id);
    if (is_apply<primitive::select_op>(n))
      for (int k = 1; k <= 2; ++k)
        if (const node_id g = without_ratio(index, n.operand[k]); g != no_node && g == n.operand[3 - k])
          return {g, n.operand[0], k == 1};
    return {};
  }
  static constexpr term by_flag(term flag, bool when, term x, term y) {
    return when ? select(flag, x, y) : select(flag, y, x);
  }
  /// B_t / S_{t-1}: of A g it is g / S_t.
  constexpr term scaled_element(rewriting& copy, int index) const {
    const element_terms e = terms_of_element(index);
    const term before = sum_value(copy, opcode::carry, terms_[index].log_sum),
               after = sum_value(copy, opcode::scan, terms_[index].log_sum);
    if (e.g == no_node) return copied(copy, p_.scans[index].element[terms_[index].value]) * (1.0 / before);
    if (e.flag == no_node) return copied(copy, e.g) * (1.0 / after);
    return copied(copy, e.g) * (1.0 / by_flag(copied(copy, e.flag), e.when, after, before));
  }
  /// P / S_t + r_{t+1} / S_t = P / S_t + q_{t+1}. Where P is g that is q_t, and where it is by the element's
  /// flag g or 0, by that flag q_t or q_{t+1}.
  constexpr term received(rewriting& copy, int index, node_id id) {
    const term before = scaled_value(copy, opcode::carry, index),
               after = scaled_value(copy, opcode::scan, index);
    const element_terms e = terms_of_element(index);
    const node& n = at(id);
    if (e.g != no_node && e.flag == no_node && id == e.g) return after;
    if (e.flag != no_node && is_apply<primitive::select_op>(n) && n.operand[0] == e.flag &&
        n.operand[e.when ? 1 : 2] == e.g && is_number(p_, n.operand[e.when ? 2 : 1], 0.0))
      return by_flag(copied(copy, e.flag), e.when, after, before);
    return copied(copy, id) * (1.0 / sum_value(copy, opcode::scan, terms_[index].log_sum)) + before;
  }

  constexpr term scaled_value(rewriting& copy, opcode op, int index) {
    if (scaled_[index] == 0) {
      const telescope_terms& terms = terms_[index];
      scan_decl s = copy.translated(p_.scans[index]);
      const term element = scaled_element(copy, index),
                 left(copy.target, copy.target.placeholder(opcode::left, 0)),
                 right(copy.target, copy.target.placeholder(opcode::right, 0));
      s.components = 1;
      s.scaled_by = static_cast<std::int16_t>(copy.scan(terms.log_sum));
      s.identity[0] = 0.0;
      s.initial[0] = s.initial[terms.value];
      s.element[0] = element.id;
      s.combined[0] = (left + right).id;
      s.axes |= copy.target.result.scans[s.scaled_by].axes;
      scaled_[index] = static_cast<std::int16_t>(copy.target.scan(s) + 1);
    }
    return term(copy.target, copy.target.scan_value(op, scaled_[index] - 1, 0));
  }

  /// E / S_t (P + r_{t+1}) as E (P / S_t + q_{t+1}).
  constexpr node_id weighted(rewriting& copy, const node& old) {
    if (!is_apply<primitive::multiply_op>(old)) return no_node;
    for (int k = 0; k < 2; ++k) {
      const node &share = at(old.operand[k]), &sum = at(old.operand[1 - k]);
      if (!is_apply<primitive::divide_op>(share) || !is_apply<primitive::add_op>(sum)) continue;
      for (int i = 0; i < 2; ++i) {
        const node& carry = at(sum.operand[i]);
        const int index = carry.op == opcode::carry ? carry.target : -1;
        if (index < 0 || terms_[index].log_sum < 0 ||
            !is_value(share.operand[1], opcode::scan, terms_[index].log_sum, 1))
          continue;
        return (copied(copy, share.operand[0]) * received(copy, index, sum.operand[1 - i])).id;
      }
    }
    return no_node;
  }
};

}  // namespace detail

/// For kernels that hold the m of log-sums fixed: the recurrence
///
///     r_t = S_{t-1} / S_t (g_t + r_{t+1}),   the gradient of a log-add-exp,
///
/// in units of S: q_t = r_t / S_{t-1} is the plain sum q_t = q_{t+1} + g_t / S_t. Its scan says by which sums
/// it is scaled (scan_decl::scaled_by); what comes into a tile, and what goes out, is r itself, since that
/// stays in range when m changes.
constexpr program telescope(const program& p) {
  detail::telescoping replaced(p);
  return rewrite(p, [&](rewriting& copy, const node& old) { return replaced(copy, old); });
}

constexpr bool is_telescoped(const program& p) {
  for (const scan_decl& s : p.scans)
    if (s.scaled_by >= 0) return true;
  return false;
}

/// Whether a sweep carries a log-sum of elements that can be seen before it, so that its m may be chosen for
/// a tile and held.
constexpr bool can_hold_frame(const program& p, const schedule& plan, int sweep) {
  bool sums = false;
  for (int i = 0; i < p.scans.count; ++i)
    sums = sums || (p.scans[i].log_sum && plan.sweep_of_scan[i] == sweep);
  for (int i = 0; i < p.nodes.count; ++i)
    if (plan.aggregate[sweep].from[i] == source::scratch) return false;
  return sums && plan.rounds[sweep] == 1;
}

/// Whether every sum by which a scan is scaled holds a frame.
constexpr bool scales_hold_frames(const program& p, const schedule& plan) {
  for (const scan_decl& s : p.scans)
    if (s.scaled_by >= 0 && !can_hold_frame(p, plan, plan.sweep_of_scan[s.scaled_by])) return false;
  return true;
}

}  // namespace scandsl
