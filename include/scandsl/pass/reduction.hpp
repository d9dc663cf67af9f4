#pragma once
#include "scandsl/ir/builder.hpp"

/// Scans of which little is asked: their last value only (sums, extrema and the like along an axis), or that
/// they add.
namespace scandsl {

/// Whether it does not matter in which order a scan's elements are combined: sums, products, extrema,
/// log-sums and what is summed with those.
constexpr bool commutes(const program& p, int scan) {
  const scan_decl& s = p.scans[scan];
  if (s.log_sum || s.joins_log_sum) return true;
  for (int k = 0; k < s.components; ++k) {
    const node& n = p.nodes[s.combined[k]];
    const bool symmetric = is_apply<primitive::add_op>(n) || is_apply<primitive::multiply_op>(n) ||
                           is_apply<primitive::max_op>(n) || is_apply<primitive::min_op>(n) ||
                           is_apply<primitive::logaddexp_op>(n);
    if (!symmetric) return false;
    const node &one = p.nodes[n.operand[0]], &other = p.nodes[n.operand[1]];
    const bool both = (one.op == opcode::left && other.op == opcode::right) ||
                      (one.op == opcode::right && other.op == opcode::left);
    if (!both || one.target != k || other.target != k) return false;
  }
  return true;
}

/// Whether of a scan nothing is read but its last value.
constexpr bool only_reduces(const program& p, int scan) {
  for (const node& n : p.nodes)
    if ((n.op == opcode::scan || n.op == opcode::carry) && n.target == scan) return false;
  return true;
}
/// ... of all that a program has, if it has any.
constexpr bool only_reduces(const program& p) {
  for (int s = 0; s < p.scans.count; ++s)
    if (!only_reduces(p, s)) return false;
  return p.scans.count > 0;
}

/// Whether a program's scans do nothing but reduce a whole axis, in whatever order.
constexpr bool is_reduction(const program& p) {
  for (int s = 0; s < p.scans.count; ++s)
    if (p.scans[s].every != no_node || p.scans[s].offsets >= 0 || !commutes(p, s)) return false;
  return only_reduces(p);
}

constexpr bool is_plain_sum(const program& p, int scan) {
  const scan_decl& s = p.scans[scan];
  return s.components == 1 && !s.log_sum && !s.joins_log_sum &&
         is_apply<primitive::add_op>(p.nodes[s.combined[0]]) && commutes(p, scan);
}

/// Whether states may occur in a program's gradient: not those of plain sums that nothing follows, or nothing
/// but what follows their last values.
constexpr bool gradient_has_states(const program& p) {
  for (int s = 0; s < p.scans.count; ++s)
    if (!is_plain_sum(p, s)) return true;
  for (const node& n : p.nodes)
    for (const node_id operand : n.operand)
      if (operand != no_node && is_scan_value(p.nodes[operand]) && p.nodes[operand].op != opcode::last)
        return true;
  return false;
}

}  // namespace scandsl
