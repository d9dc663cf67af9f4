#pragma once
#include "scandsl/ir/builder.hpp"

/// Sines and cosines of position * theta where the position advances by the same from step to step: they
/// follow from those of the step before by the addition theorem, four multiplications in place of an exact
/// product and two polynomials. An executor starts anew from exact values every few steps.
namespace scandsl {
namespace detail {

constexpr bool varies_along(const node& n, int axis) { return (n.axes & axis_bit(axis)) != 0; }

/// Whether a whole number advances by the same, a constant, from each position along an axis to the next.
constexpr bool advances_evenly(const program& p, int i, int axis) {
  const node& n = p.nodes[i];
  if (!varies_along(n, axis)) return true;
  if (n.op == opcode::index) return true;
  if (n.op == opcode::load) return p.tensors[n.target].role == tensor_role::positions;
  if (is_apply<primitive::add_op>(n) || is_apply<primitive::subtract_op>(n))
    return advances_evenly(p, n.operand[0], axis) && advances_evenly(p, n.operand[1], axis);
  return (is_apply<primitive::to_real_op>(n) || is_apply<primitive::neg_op>(n)) &&
         advances_evenly(p, n.operand[0], axis);
}

}  // namespace detail

constexpr bool is_sine_or_cosine_of_product(const node& n) {
  return is_apply<primitive::sin_of_product_op>(n) || is_apply<primitive::cos_of_product_op>(n);
}

/// Whether node i is a sine or a cosine that rotates along an axis.
constexpr bool rotates_along(const program& p, int i, int axis) {
  const node& n = p.nodes[i];
  return axis >= 0 && is_sine_or_cosine_of_product(n) && detail::varies_along(n, axis) &&
         !detail::varies_along(p.nodes[n.operand[1]], axis) && detail::advances_evenly(p, n.operand[0], axis);
}

/// Of a program without scans, in which any axis may be walked: the one along which the most sines and
/// cosines rotate; -1 where none do.
constexpr int axis_to_rotate_along(const program& p) {
  int best = -1, most = 0;
  for (int a = 0; a < p.axes.count && p.scans.count == 0; ++a) {
    int count = 0;
    for (int i = 0; i < p.nodes.count; ++i) count += rotates_along(p, i, a) ? 1 : 0;
    if (count > most) {
      most = count;
      best = a;
    }
  }
  return best;
}

}  // namespace scandsl
