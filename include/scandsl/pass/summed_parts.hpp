#pragma once
#include "scandsl/pass/problem.hpp"
#include "scandsl/pass/reduction.hpp"
#include "scandsl/pass/split.hpp"

/// Sums that go on in the next kernel: what a kernel program sums along one axis another one sums along one
/// more, as theta's gradient over positions and then over sequences. Where the first is cut into parts
/// (exec/cuda/parts.cuh), and the other axis is outermost, nobody need join these: they lie as if it were
/// longer. And where it is one long, the second sums what the first would have summed.
namespace scandsl {

/// Of a kernel program that only adds up what another one has left. -1: it does not.
struct summed_parts {
  int producer = -1;            ///< the number of that kernel program
  int tensor = -1, there = -1;  ///< what crosses: the number of the scratch tensor, here and there
  int along = 0;                ///< the summed axis among those of the tensor here
  int before = -1;              ///< what the producer itself only adds up, of what came before it
  bool parts = false;           ///< whether the producer may leave parts
};

namespace detail {

/// Whether a kernel program has one scan, a plain sum from end to end, of which one node tells the last
/// value.
constexpr bool only_sums(const program& p) {
  if (p.scans.count != 1 || !is_plain_sum(p, 0) || !is_reduction(p) || p.scans[0].initial[0] != no_node)
    return false;
  int told = 0;
  for (const node& n : p.nodes) told += is_scan_value(n) ? 1 : 0;
  return told == 1;
}
/// What such a program adds up, if it lies in scratch and nothing else varies along the summed axis: the
/// number of that tensor; -1: it does not.
constexpr int summed_scratch(const program& p) {
  const int axis = p.scans[0].axis;
  const node& element = p.nodes[p.scans[0].element[0]];
  if (element.op != opcode::load || p.tensors[element.target].role != tensor_role::scratch) return -1;
  for (const node& n : p.nodes)
    if ((n.op == opcode::index || n.op == opcode::extent) && n.target == axis) return -1;
  for (int t = 0; t < p.tensors.count; ++t)
    if (((p.tensors[t].mask() & axis_bit(axis)) != 0) != (t == element.target)) return -1;
  return element.target;
}
/// Whether program p, which adds up `tensor` along an axis, could add up the producer's `before` along the
/// producer's axis in its place: the other axes are the same.
constexpr bool reads_as(const program& p, int tensor, const program& producer, int before) {
  const tensor_decl &here = p.tensors[tensor], &there = producer.tensors[before];
  int known = 0;
  for (const std::int16_t axis : here.axes)
    for (const std::int16_t each : there.axes)
      known += axis != p.scans[0].axis && producer.axes[each] == p.axes[axis] ? 1 : 0;
  return known == here.axes.count - 1;
}

}  // namespace detail

constexpr summed_parts find_summed_parts(const kernel_programs& all, int k) {
  const program& p = all.programs[k];
  if (!detail::only_sums(p)) return {};
  const int tensor = detail::summed_scratch(p);
  if (tensor < 0) return {};
  const tensor_decl& crosses = p.tensors[tensor];
  int along = 0;
  while (crosses.axes[along] != p.scans[0].axis) ++along;

  summed_parts found;
  for (int i = 0; i < all.programs.count; ++i) {
    const program& other = all.programs[i];
    const int there = other.find_tensor(crosses.id);
    if (there < 0 || i == k) continue;
    if (i > k || found.producer >= 0 || !detail::only_sums(other)) return {};  // somebody else reads it, too
    for (const store_decl& store : other.stores) {
      const bool is_sum = other.nodes[store.value].op == opcode::last,
                 each_step = (other.tensors[store.tensor].mask() & axis_bit(other.scans[0].axis)) != 0;
      if (store.tensor == there ? !is_sum : !each_step) return {};
    }
    const int before = other.stores.count == 1 ? detail::summed_scratch(other) : -1;
    found = {i, tensor, there, along};
    found.before = before >= 0 && detail::reads_as(p, tensor, other, before) ? before : -1;
    found.parts = along == 0;  // parts of all lanes come one after the other
  }
  return found.parts || found.before >= 0 ? found : summed_parts{};
}

/// The kernel program that can add up at once what kernel program k would have added up; -1: none.
constexpr int find_adder(const kernel_programs& all, int k) {
  for (int i = k + 1; i < all.programs.count; ++i)
    if (const summed_parts summed = find_summed_parts(all, i); summed.producer == k && summed.before >= 0)
      return i;
  return -1;
}

/// Has kernel program p, which adds up along an axis one long, add up what `producer` would have, which then
/// need not run. `of_producer`: that one's problem.
inline void add_up_at_once(problem& bound, const program& p, const summed_parts& summed,
                           const program& producer, const problem& of_producer) {
  const tensor_decl &here = p.tensors[summed.tensor], &before = producer.tensors[summed.before];
  erased_view& view = bound.tensors[static_cast<std::size_t>(summed.tensor)].view;
  const erased_view& from = of_producer.tensors[static_cast<std::size_t>(summed.before)].view;
  for (int a = 0; a < before.axes.count; ++a)
    if (before.axes[a] == producer.scans[0].axis)
      view.axis[summed.along] = from.axis[a];
    else
      for (int i = 0; i < here.axes.count; ++i)
        if (i != summed.along && producer.axes[before.axes[a]] == p.axes[here.axes[i]])
          view.axis[i] = from.axis[a];
}

}  // namespace scandsl
