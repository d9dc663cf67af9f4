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

/// Whether a whole number follows at every position along an axis from the position, from loads, and from
/// what does not vary along it.
constexpr bool follows_position(const program& p, int i, int axis) {
  const node& n = p.nodes[i];
  if (!varies_along(n, axis) || n.op == opcode::index || n.op == opcode::load) return true;
  if (n.op != opcode::apply) return false;
  for (const node_id o : n.operand)
    if (o != no_node && !follows_position(p, o, axis)) return false;
  return true;
}

/// Whether it is made of the position along the axis, and not of loads alone.
constexpr bool counts_positions(const program& p, int i, int axis) {
  const node& n = p.nodes[i];
  if (!varies_along(n, axis)) return false;
  if (n.op == opcode::index) return true;
  if (n.op == opcode::load) return p.tensors[n.target].role == tensor_role::positions;
  for (const node_id o : n.operand)
    if (o != no_node && counts_positions(p, o, axis)) return true;
  return false;
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

/// Whether node i is a sine or a cosine whose position is a whole number that may advance by one from most
/// steps along an axis to the next, or stay: on a grid, or as given. Whether it does is seen at run time.
constexpr bool may_turn_along(const program& p, int i, int axis) {
  const node& n = p.nodes[i];
  return axis >= 0 && is_sine_or_cosine_of_product(n) && detail::varies_along(n, axis) &&
         !detail::varies_along(p.nodes[n.operand[1]], axis) && is_integer(p.nodes[n.operand[0]]) &&
         !detail::advances_evenly(p, n.operand[0], axis) && detail::follows_position(p, n.operand[0], axis);
}

/// How likely node i turns along an axis: surely or likely, for it counts positions along it; perhaps, as the
/// numbers are that are loaded there; not at all.
constexpr int likelihood_to_turn(const program& p, int i, int axis) {
  if (!rotates_along(p, i, axis) && !may_turn_along(p, i, axis)) return 0;
  return detail::counts_positions(p, p.nodes[i].operand[0], axis) ? 2 : 1;
}

/// The axis for which turns(program, node, axis), summed over the nodes, is the most; -1 where it is 0. Of
/// several the first, or the last.
template <class Turns> constexpr int axis_of_most(const program& p, Turns turns, bool last = false) {
  int best = -1, most = 0;
  for (int a = 0; a < p.axes.count; ++a) {
    int count = 0;
    for (int i = 0; i < p.nodes.count; ++i) count += turns(p, i, a);
    if (count > most || (last && count > 0 && count == most)) {
      most = count;
      best = a;
    }
  }
  return best;
}

/// Of a program without scans, in which any axis may be walked: the one along which the most sines and
/// cosines rotate; -1 where none do.
constexpr int axis_to_rotate_along(const program& p) {
  return p.scans.count > 0 ? -1 : axis_of_most(p, rotates_along);
}
/// The one along which they are most likely to turn. Where positions are given along a batch and a sequence
/// nothing tells these apart but their order: the last of them is taken for the sequence.
constexpr int likeliest_axis(const program& p) { return axis_of_most(p, likelihood_to_turn, true); }
constexpr int axis_to_turn_along(const program& p) { return p.scans.count > 0 ? -1 : likeliest_axis(p); }

}  // namespace scandsl
