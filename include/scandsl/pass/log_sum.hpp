#pragma once
#include "scandsl/expr/operators.hpp"
#include "scandsl/pass/rewrite.hpp"

namespace scandsl {
namespace detail {

constexpr bool is_log_add_exp(const program& p, int scan) {
  const scan_decl& s = p.scans[scan];
  if (s.components != 1) return false;
  const node& n = p.nodes[s.combined[0]];
  if (!is_apply<primitive::logaddexp_op>(n)) return false;
  const opcode a = p.nodes[n.operand[0]].op, b = p.nodes[n.operand[1]].op;
  return (a == opcode::left && b == opcode::right) || (a == opcode::right && b == opcode::left);
}

/// The scan over (m, s), the running maximum and the sum of exp(x - m). One of the two factors exp(m - M) is
/// always 1, so one exponential a step does.
constexpr int declare_log_sum(rewriting& copy, int old) {
  builder& b = copy.target;
  scan_decl s = copy.translated(copy.source.scans[old]);
  s.components = 2;
  s.log_sum = true;
  s.identity[0] = -inf;
  s.identity[1] = 0.0;
  s.element[1] = b.constant(1.0);
  s.initial[1] = s.initial[0] == no_node ? no_node : b.constant(1.0);
  const term m(b, b.placeholder(opcode::left, 0)), sum(b, b.placeholder(opcode::left, 1));
  const term k(b, b.placeholder(opcode::right, 0)), addend(b, b.placeholder(opcode::right, 1));
  const term top = max(m, k), shrink = exp_difference(min(m, k), top);
  s.combined[0] = top.id;
  s.combined[1] = select(k <= m, sum + addend * shrink, sum * shrink + addend).id;
  return b.scan(s);
}

/// A value of a log-add-exp scan of the source.
constexpr bool is_log_sum_value(const program& p, node_id id) {
  const node& n = p.nodes[id];
  return (n.op == opcode::carry || n.op == opcode::scan || n.op == opcode::last) &&
         is_log_add_exp(p, n.target);
}

/// The maximum and the sum of such a value.
struct log_sum_parts {
  term m, sum;
};
constexpr log_sum_parts parts_of(rewriting& copy, node_id id) {
  const node& n = copy.source.nodes[id];
  const int s = declare_log_sum(copy, n.target);
  return {term(copy.target, copy.target.scan_value(n.op, s, 0)),
          term(copy.target, copy.target.scan_value(n.op, s, 1))};
}

/// exp(x - y) and exp_difference(y, z) of values y and z, without the logarithms: what the gradient of a
/// log-sum is made of, and a softmax. y = m + log(s) is rounded to its own size, which near 10000 is an error
/// of 0.0005 in float32, and of as much in the exponential; m and s are as exact as the elements. no_node for
/// other nodes.
constexpr node_id exponential(rewriting& copy, const node& old) {
  const program& p = copy.source;
  if (is_apply<primitive::exp_op>(old) && is_apply<primitive::subtract_op>(p.nodes[old.operand[0]])) {
    const node& gap = p.nodes[old.operand[0]];
    if (!is_log_sum_value(p, gap.operand[1])) return no_node;
    const log_sum_parts y = parts_of(copy, gap.operand[1]);
    const term share = exp(term(copy.target, copy.at(gap.operand[0])) - y.m);
    // A row's last sum is divided by once.
    return (p.nodes[gap.operand[1]].op == opcode::last ? share * (1.0 / y.sum) : share / y.sum).id;
  }
  if (is_apply<primitive::exp_difference_op>(old) && is_log_sum_value(p, old.operand[0]) &&
      is_log_sum_value(p, old.operand[1])) {
    const log_sum_parts y = parts_of(copy, old.operand[0]), z = parts_of(copy, old.operand[1]);
    // Equal sums may both be 0: of elements that are all -inf.
    return (exp_difference(y.m, z.m) * select(y.sum == z.sum, term(1.0), y.sum / z.sum)).id;
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
constexpr program log_sum(const program& p) {
  return rewrite(p, [](rewriting& copy, const node& old) {
    if (const node_id found = detail::exponential(copy, old); found != no_node) return found;
    const bool of_scan = old.op == opcode::carry || old.op == opcode::scan || old.op == opcode::last;
    if (!of_scan || !detail::is_log_add_exp(copy.source, old.target)) return copy.copy(old);
    const int s = detail::declare_log_sum(copy, old.target);
    const term m(copy.target, copy.target.scan_value(old.op, s, 0));
    const term sum(copy.target, copy.target.scan_value(old.op, s, 1));
    return (m + log(sum)).id;
  });
}

}  // namespace scandsl
