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

}  // namespace detail

/// Carries every log-add-exp scan as (max, sum): y = m + log(s). The same mathematics, for execution: a chain
/// of logaddexp rounds y at every step, so that a long sum of similar terms drifts by many units in the last
/// place (and stagnates in float32); here the error is that of a plain sum. Costs one exp and one log an
/// element either way. What m is does not matter to the value m + log(s), so an executor may hold it fixed
/// over a stretch and add plain exponentials, as long as they neither overflow nor vanish: the scan says so
/// (scan_decl::log_sum).
constexpr program log_sum(const program& p) {
  return rewrite(p, [](rewriting& copy, const node& old) {
    const bool of_scan = old.op == opcode::carry || old.op == opcode::scan || old.op == opcode::last;
    if (!of_scan || !detail::is_log_add_exp(copy.source, old.target)) return copy.copy(old);
    const int s = detail::declare_log_sum(copy, old.target);
    const term m(copy.target, copy.target.scan_value(old.op, s, 0));
    const term sum(copy.target, copy.target.scan_value(old.op, s, 1));
    return (m + log(sum)).id;
  });
}

}  // namespace scandsl
