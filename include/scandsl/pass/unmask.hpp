#pragma once
#include <limits>

#include "scandsl/pass/telescope.hpp"

namespace scandsl {
namespace detail {

/// The axis of a log-sum, where a node is a product of which one factor is exp(x - m), m being its maximum,
/// and the others are the same along it; -1: none.
constexpr int axis_of_share(const program& p, node_id id, node_id x) {
  const node& n = p.nodes[id];
  if (is_apply<primitive::multiply_op>(n)) {
    for (int k = 0; k < 2; ++k)
      if (const int axis = axis_of_share(p, n.operand[k], x);
          axis >= 0 && (p.nodes[n.operand[1 - k]].axes & axis_bit(axis)) == 0)
        return axis;
    return -1;
  }
  if (!is_apply<primitive::exp_op>(n)) return -1;
  const node& gap = p.nodes[n.operand[0]];
  if (!is_apply<primitive::subtract_op>(gap) || gap.operand[0] != x) return -1;
  const node& m = p.nodes[gap.operand[1]];
  const bool is_maximum = m.op == opcode::last && m.component == 0 && p.scans[m.target].log_sum;
  return is_maximum ? p.scans[m.target].axis : -1;
}

/// 0 where x is -inf, else a product with a share of x.
constexpr bool masks_share(const program& p, const node& n) {
  if (!is_apply<primitive::select_op>(n)) return false;
  const node& asked = p.nodes[n.operand[0]];
  if (!is_apply<primitive::equal_op>(asked) || !is_number(p, n.operand[1], 0.0)) return false;
  for (int k = 0; k < 2; ++k)
    if (is_number(p, asked.operand[k], -std::numeric_limits<double>::infinity()))
      return axis_of_share(p, n.operand[2], asked.operand[1 - k]) >= 0;
  return false;
}

}  // namespace detail

/// For kernels that hold the m of log-sums fixed, and so finite: there exp(x - m) is 0 where x is -inf, and
/// so is its product with what is finite and the same all along, as the cotangent of a log-sum and 1 / s. To
/// ask whether x is -inf takes two instructions an element. (A cotangent that is infinite or no number makes
/// NaN of the 0.)
constexpr program unmask(const program& p) {
  return rewrite(p, [&](rewriting& copy, const node& old) {
    return detail::masks_share(p, old) ? copy.at(old.operand[2]) : copy.copy(old);
  });
}

constexpr bool has_masked_shares(const program& p) {
  for (const node& n : p.nodes)
    if (detail::masks_share(p, n)) return true;
  return false;
}

/// Whether every log-sum holds a frame.
constexpr bool log_sums_hold_frames(const program& p, const schedule& plan) {
  for (int i = 0; i < p.scans.count; ++i)
    if (p.scans[i].log_sum && !can_hold_frame(p, plan, plan.sweep_of_scan[i])) return false;
  return true;
}

}  // namespace scandsl
