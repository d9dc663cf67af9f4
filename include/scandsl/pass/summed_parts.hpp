#pragma once
#include "scandsl/pass/reduction.hpp"
#include "scandsl/pass/split.hpp"

/// Sums that go on in the next kernel: what a kernel program sums along one axis another one sums along one
/// more, as theta's gradient over positions and then over sequences. Where the first is cut into parts
/// (exec/cuda/parts.cuh), nobody need join these: they lie as if the other axis were longer.
namespace scandsl {

/// Of a kernel program that only adds up what another one has left. -1: it does not.
struct summed_parts {
  int producer = -1;            ///< the number of that kernel program
  int tensor = -1, there = -1;  ///< what crosses: the number of the scratch tensor, here and there
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
constexpr bool names_axis(const program& p, int axis) {
  for (const node& n : p.nodes)
    if ((n.op == opcode::index || n.op == opcode::extent) && n.target == axis) return true;
  return false;
}

}  // namespace detail

constexpr summed_parts find_summed_parts(const kernel_programs& all, int k) {
  const program& p = all.programs[k];
  if (!detail::only_sums(p)) return {};
  const int axis = p.scans[0].axis;
  const node& element = p.nodes[p.scans[0].element[0]];
  if (element.op != opcode::load || detail::names_axis(p, axis)) return {};
  const tensor_decl& crosses = p.tensors[element.target];
  // Parts of all lanes come one after the other, so only the outermost axis can be longer.
  if (crosses.role != tensor_role::scratch || crosses.axes[0] != axis) return {};
  for (int t = 0; t < p.tensors.count; ++t)
    if (t != element.target && (p.tensors[t].mask() & axis_bit(axis)) != 0) return {};

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
    found = {i, static_cast<int>(element.target), there};
  }
  return found;
}

}  // namespace scandsl
