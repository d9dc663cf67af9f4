#pragma once
#include "scandsl/expr/operators.hpp"
#include "scandsl/pass/weighted_sums.hpp"

namespace scandsl {
namespace detail {

/// The scan over (m, s), the running maximum and the sum of exp(x - m), and the weighted sums that join it.
/// One of the two factors exp(m - M) is always 1, so one exponential a step does.
constexpr int declare_log_sum(rewriting& copy, int old, const weighted_sum_list& joined) {
  builder& b = copy.target;
  scan_decl s = copy.translated(copy.source.scans[old]);
  s.identity[0] = -inf;
  s.element[1] = b.constant(1.0);
  s.initial[1] = s.initial[0] == no_node ? no_node : b.constant(1.0);
  s.components = 2;
  for (const weighted_sum& each : joined)
    if (each.log_sum == old) s.element[s.components++] = weight_of(copy, each);
  s.log_sum = s.components == 2;
  const term m(b, b.placeholder(opcode::left, 0)), k(b, b.placeholder(opcode::right, 0));
  const term top = max(m, k), shrink = exp_difference(min(m, k), top);
  s.combined[0] = top.id;
  for (int i = 1; i < s.components; ++i) {
    s.identity[i] = 0.0;
    if (i > 1) s.initial[i] = no_node;
    const term sum(b, b.placeholder(opcode::left, i)), addend(b, b.placeholder(opcode::right, i));
    s.combined[i] = select(k <= m, sum + addend * shrink, sum * shrink + addend).id;
  }
  return b.scan(s);
}

/// The maximum and the sum of such a value.
struct log_sum_parts {
  term m, sum;
};
constexpr log_sum_parts parts_of(rewriting& copy, const node& n, const weighted_sum_list& joined) {
  const int s = declare_log_sum(copy, n.target, joined);
  return {term(copy.target, copy.target.scan_value(n.op, s, 0)),
          term(copy.target, copy.target.scan_value(n.op, s, 1))};
}

/// exp(x - y) and exp_difference(y, z) of values y and z, without the logarithms: what the gradient of a
/// log-sum is made of, and a softmax. y = m + log(s) is rounded to its own size, which near 10000 is an error
/// of 0.0005 in float32, and of as much in the exponential; m and s are as exact as the elements. no_node for
/// other nodes.
constexpr node_id exponential(rewriting& copy, const node& old, const weighted_sum_list& joined) {
  const program& p = copy.source;
  if (is_apply<primitive::exp_op>(old) && is_apply<primitive::subtract_op>(p.nodes[old.operand[0]])) {
    const node& gap = p.nodes[old.operand[0]];
    if (!is_log_sum_value(p, gap.operand[1])) return no_node;
    const node& log_of_sum = p.nodes[gap.operand[1]];
    const log_sum_parts y = parts_of(copy, log_of_sum, joined);
    const term share = exp(term(copy.target, copy.at(gap.operand[0])) - y.m);
    // A row's last sum is divided by once.
    return (log_of_sum.op == opcode::last ? share * (1.0 / y.sum) : share / y.sum).id;
  }
  if (is_apply<primitive::exp_difference_op>(old) && is_log_sum_value(p, old.operand[0]) &&
      is_log_sum_value(p, old.operand[1])) {
    const log_sum_parts y = parts_of(copy, p.nodes[old.operand[0]], joined),
                        z = parts_of(copy, p.nodes[old.operand[1]], joined);
    // Equal sums may both be 0: of elements that are all -inf.
    return (exp_difference(y.m, z.m) * select(y.sum == z.sum, term(1.0), y.sum / z.sum)).id;
  }
  return no_node;
}

/// A softmax times what is the same all along the scan, w = exp(x - y) g with y the last value of the scan of
/// x: once a row m, and g / s. Or by a flag 0 where x is -inf, for all of a row may be, and y be -inf too:
/// then the row's m counts as 0, and no element has to be looked at. Not where the share is used beside that:
/// it would be computed twice.
struct weighted_share {
  node_id share = no_node, weight = no_node;
  bool guarded = false;
};
class weighted_share_finder {
public:
  constexpr explicit weighted_share_finder(const program& p) : p_(p) {
    const liveness live(p);
    for (int i = 0; i < p.nodes.count; ++i)
      if (live.nodes[i])
        for (const node_id operand : p.nodes[i].operand)
          if (operand != no_node) ++users_[operand];
  }
  constexpr weighted_share operator()(const node& n) const {
    if (!is_apply<primitive::select_op>(n)) return product(n);
    const node &flag = p_.nodes[n.operand[0]], &none = p_.nodes[n.operand[1]];
    if (!is_apply<primitive::equal_op>(flag) || !is_number(none, 0.0)) return {};
    weighted_share found = product(p_.nodes[n.operand[2]]);
    if (found.share == no_node) return {};
    const node_id x = p_.nodes[p_.nodes[found.share].operand[0]].operand[0];
    found.guarded = true;
    for (int k = 0; k < 2; ++k)
      if (flag.operand[k] == x && is_number(p_.nodes[flag.operand[1 - k]], -inf)) return found;
    return {};
  }

private:
  const program& p_;
  int users_[max_nodes] = {};

  static constexpr bool is_number(const node& n, double value) {
    return n.op == opcode::constant && n.value == value;
  }
  constexpr weighted_share product(const node& n) const {
    if (!is_apply<primitive::multiply_op>(n)) return {};
    for (int k = 0; k < 2; ++k) {
      const int scan = users_[n.operand[k]] == 1 ? softmax_of(p_, p_.nodes[n.operand[k]]) : -1;
      if (scan >= 0 && (p_.nodes[n.operand[1 - k]].axes & axis_bit(p_.scans[scan].axis)) == 0)
        return {n.operand[k], n.operand[1 - k]};
    }
    return {};
  }
};

constexpr node_id weighted_exponential(rewriting& copy, const node& old, const weighted_share_finder& find,
                                       const weighted_sum_list& joined) {
  const weighted_share found = find(old);
  if (found.share == no_node) return no_node;
  const node& gap = copy.source.nodes[copy.source.nodes[found.share].operand[0]];
  const log_sum_parts y = parts_of(copy, copy.source.nodes[gap.operand[1]], joined);
  const term x(copy.target, copy.at(gap.operand[0])),
      factor = 1.0 / y.sum * term(copy.target, copy.at(found.weight));  // no larger than g: s is 1 at least
  if (!found.guarded) return (exp(x - y.m) * factor).id;
  const term nothing = y.m == -inf;
  return (exp(x - select(nothing, term(0.0), y.m)) * select(nothing, term(0.0), factor)).id;
}

/// The value of a weighted sum that has joined its log-sum; no_node for other nodes.
constexpr node_id joined_sum(rewriting& copy, const node& old, const weighted_sum_list& joined) {
  if (old.op != opcode::last) return no_node;
  int component = 2;
  for (const weighted_sum& each : joined) {
    if (each.scan != old.target) continue;
    for (const weighted_sum& before : joined)
      if (&before < &each && before.log_sum == each.log_sum) ++component;
    const int s = declare_log_sum(copy, each.log_sum, joined);
    const term total(copy.target, copy.target.scan_value(opcode::last, s, component));
    return (total * (1.0 / term(copy.target, copy.target.scan_value(opcode::last, s, 1)))).id;
  }
  return no_node;
}

}  // namespace detail

/// Carries every log-add-exp scan as (max, sum): y = m + log(s). The same mathematics, for execution: a chain
/// of logaddexp rounds y at every step, so that a long sum of similar terms drifts by many units in the last
/// place (and stagnates in float32); here the error is that of a plain sum. Costs one exp and one log an
/// element either way. What m is does not matter to the value m + log(s), so an executor may hold it fixed
/// over a stretch and add plain exponentials, as long as they neither overflow nor vanish: the scan says so
/// (scan_decl::log_sum).
/// Sums of the exponentials' shares times something join the walk (weighted_sums.hpp).
constexpr program log_sum(const program& p) {
  const detail::weighted_sum_list joined = detail::weighted_sums_of(p);
  const detail::weighted_share_finder shares(p);
  return rewrite(p, [&](rewriting& copy, const node& old) {
    if (const node_id found = detail::weighted_exponential(copy, old, shares, joined); found != no_node)
      return found;
    if (const node_id found = detail::exponential(copy, old, joined); found != no_node) return found;
    if (const node_id found = detail::joined_sum(copy, old, joined); found != no_node) return found;
    if (!is_scan_value(old) || !detail::is_log_add_exp(copy.source, old.target)) return copy.copy(old);
    const int s = detail::declare_log_sum(copy, old.target, joined);
    const term m(copy.target, copy.target.scan_value(old.op, s, 0));
    const term sum(copy.target, copy.target.scan_value(old.op, s, 1));
    return (m + log(sum)).id;
  });
}

}  // namespace scandsl
