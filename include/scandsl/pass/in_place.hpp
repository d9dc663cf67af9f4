#pragma once
#include "scandsl/pass/schedule.hpp"

/// Which inputs of a program an output may overwrite.
namespace scandsl {

/// Bit i of inputs[o]: output tensor o may be bound to the very view of input tensor i.
struct in_place_pairs {
  std::uint32_t inputs[max_tensors] = {};

  constexpr bool allows(int output, int input) const { return (inputs[output] >> input & 1U) != 0; }
};

namespace detail {

/// The stages of a schedule in the order in which a lane goes through them, boundaries at even numbers.
struct stage_order {
  const program& kernel;
  const schedule& plan;

  constexpr int count() const { return 2 * plan.sweeps + 1; }
  constexpr const stage_schedule& stage(int i) const {
    return i % 2 == 0 ? plan.boundary[i / 2] : plan.sweep[i / 2];
  }
  constexpr bool reads(int i, int tensor) const {
    for (int id = 0; id < kernel.nodes.count; ++id) {
      const node& n = kernel.nodes[id];
      const source from = stage(i).from[id];
      if (n.target == tensor && ((n.op == opcode::load && from == source::memory) ||
                                 (n.op == opcode::gather && from == source::computed)))
        return true;
    }
    return false;
  }
  constexpr bool writes(int i, int tensor) const {
    for (const std::int16_t store : stage(i).stores)
      if (kernel.stores[store].tensor == tensor) return true;
    return false;
  }
  constexpr int last_read(int tensor) const {
    for (int i = count(); i-- > 0;)
      if (reads(i, tensor)) return i;
    return -1;
  }
  constexpr int first_write(int tensor) const {
    for (int i = 0; i < count(); ++i)
      if (writes(i, tensor)) return i;
    return count();
  }
  /// Whether every element of an input is read, at its own position or from the lane's start on, before the
  /// output's is written there.
  constexpr bool reads_before(const name& input, const name& output) const {
    for (int o = 0; o < kernel.tensors.count; ++o)
      for (int i = 0; i < kernel.tensors.count; ++i)
        if (kernel.tensors[o].id == output && kernel.tensors[i].id == input &&
            !(kernel.tensors[o].walks_all() &&
              (kernel.tensors[i].walks_all() ? last_read(i) <= first_write(o)
                                             : is_gathered_before(i, first_write(o))) &&
              nothing_is_computed_again_after(first_write(o)) && one_direction_until(first_write(o))))
          return false;
    return true;
  }

private:
  /// Whether single elements of the lane are read before anything else, and a sweep with scans lies between
  /// that and `write`: also of several threads that share a lane, each then has read its own before any
  /// writes.
  constexpr bool is_gathered_before(int tensor, int write) const {
    const tensor_decl& gathered = kernel.tensors[tensor];
    for (int i = 0; i < gathered.axes.count; ++i) {
      const bool along_lane = gathered.place[i] == tensor_decl::computed && gathered.axes[i] == plan.axis;
      if (!gathered.walks(i) && !along_lane) return false;
    }
    return last_read(tensor) <= 0 && write > 1 && plan.sweep[0].has_scans;
  }
  /// Executors may go through earlier sweeps again in later ones, and through all of them where a sweep's
  /// scans turn out to overflow. So of several sweeps only the last may overwrite, if it has no scans.
  constexpr bool nothing_is_computed_again_after(int stage) const {
    const int last = plan.sweeps - 1;
    return plan.sweeps <= 1 || (stage == 2 * last + 1 && !plan.sweep[last].has_scans);
  }
  /// Whether the sweeps up to `stage` go the same way. Then each waits for the last values of the one before,
  /// and so for all that was read for them, also where several threads share a lane.
  constexpr bool one_direction_until(int stage) const {
    for (int i = 1; 2 * i + 1 <= stage; ++i)
      if (plan.sweep[i].reversed != plan.sweep[0].reversed ||
          plan.sweep[i].reverse_parameter != plan.sweep[0].reverse_parameter)
        return false;
    return true;
  }
};

}  // namespace detail

/// An output may overwrite an input in place where nothing reads that input in a stage behind the one that
/// writes. Within a stage each element is read before the output's element is written. `kernel` is the only
/// kernel of `whole`.
constexpr in_place_pairs find_in_place(const program& whole, const program& kernel, const schedule& plan) {
  const detail::stage_order order{kernel, plan};
  in_place_pairs pairs;
  for (int o = 0; o < whole.tensors.count; ++o)
    for (int i = 0; i < whole.tensors.count; ++i)
      if (whole.tensors[o].role == tensor_role::output && whole.tensors[i].role == tensor_role::input &&
          order.reads_before(whole.tensors[i].id, whole.tensors[o].id))
        pairs.inputs[o] |= 1U << i;
  return pairs;
}

}  // namespace scandsl
