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
  s.joins_log_sum = !s.log_sum;
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
  return rewrite(p, [&](rewriting& copy, const node& old) {
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
