#pragma once
#include <algorithm>

#include "scandsl/pass/cuda_plan.hpp"
#include "scandsl/pass/explain_text.hpp"

namespace scandsl {

/// One sweep of a kernel on a GPU.
struct cuda_sweep_summary {
  int operands_read = 0, operands_written = 0;
  std::int64_t read_bytes = 0;      ///< from operands, where the sweep reads them itself
  std::int64_t saved_bytes = 0;     ///< of the carries with which it came to its tiles
  std::vector<int> computed_again;  ///< earlier sweeps, numbered from 0
  int tallies = 0;                  ///< sums of what its scans give, which no fold has
  bool rotates = false;             ///< sines and cosines follow from those of the step before
};

struct cuda_kernel_summary {
  program kernel;
  walk_table table;
  cuda_kernel_plan plan;
  int tile_steps = 0;
  bool one_tile = false;      ///< every lane is one tile, read once for all sweeps
  bool adds_at_once = false;  ///< what a kernel before it would have added up, too, which does not run
  int paced_strips = 0;       ///< of a sequence, which keep pace; 0: none do
  std::vector<cuda_sweep_summary> sweeps;
  std::int64_t read_bytes = 0, written_bytes = 0;
};

/// What a program does on a GPU with given shapes.
struct cuda_plan {
  name id;
  cuda_device device;
  std::vector<cuda_kernel_summary> kernels;
  std::int64_t floor_bytes = 0;   ///< every input read once, every output written once
  std::int64_t moved_bytes = 0;   ///< what the kernels read and write, saved carries included
  std::int64_t output_bytes = 0;  ///< of its outputs
  std::int64_t workspace_bytes =
      0;  ///< saved carries, what is known of tiles, pieces or strips, and what is held between kernels
  std::int64_t carry_bytes = 0;  ///< of carries that it can leave for its gradient, or a gradient find
  std::int64_t workspace_with_carries = 0;  ///< where there are such carries
  bool is_gradient = false;
};

/// What it moves where it leaves or finds carries. Those stand for a gradient's first sweep, which does
/// nothing but find them: it reads nothing then, and saves none.
inline std::int64_t moved_with_carries(const cuda_plan& plan) {
  const auto saves_first = [](const cuda_kernel_summary& k) {
    return !k.sweeps.empty() && k.sweeps[0].saved_bytes > 0;
  };
  const auto found = std::find_if(plan.kernels.begin(), plan.kernels.end(), saves_first);
  std::int64_t bytes = plan.moved_bytes + plan.carry_bytes;
  if (plan.is_gradient && plan.carry_bytes > 0 && found != plan.kernels.end())
    bytes -= found->sweeps[0].read_bytes + 2 * found->sweeps[0].saved_bytes;
  return bytes;
}

namespace detail {

inline std::string arrangement_text(const cuda_kernel_summary& k) {
  const bool row = k.plan.arrangement == cuda_arrangement::row;
  const std::string shape =
      row ? joined("rows, ", k.plan.lane_threads, k.plan.lane_threads == 1 ? " thread" : " threads", " each")
          : joined("strips of ", k.plan.lane_threads, k.plan.lane_threads == 1 ? " thread" : " threads",
                   " side by side");
  if (k.plan.lookback_tiles > 0)
    return joined("    look-back: ", shape, ", ", k.plan.lookback_tiles, " tiles of each lane at once\n");
  if (k.plan.side > 0) {
    const part_list& list = k.plan.parts;
    const std::string parts =
        list.count == 0
            ? joined(k.plan.pieces, " parts of ", k.plan.piece, " steps of each lane")
            : joined(list.count, " parts of ", list[0].length, " to ", list[list.count - 1].length,
                     " steps of all lanes, shorter ones towards the end");
    return joined("    ", shape, ", ", parts, ", reduced and then ",
                  k.plan.leaves_parts ? "added up by a later kernel\n" : "joined\n");
  }
  if (k.plan.pieces > 1)
    return joined("    ", shape, ", ", k.plan.pieces, " pieces of ", k.plan.piece,
                  " steps of each lane, folded and then walked\n");
  const std::string sharing =
      k.plan.repeats > 1
          ? joined(", ", k.plan.repeats, " rows one after the other that share what is computed")
          : "";
  const std::string pace = k.paced_strips > 0 ? joined(", ", k.paced_strips, " strips in step") : "";
  return joined("    ", shape, pace, ", ", k.one_tile ? "one tile of " : "tiles of ", k.tile_steps, " steps",
                k.plan.staged ? " in shared memory" : "", sharing, "\n");
}

inline std::string sweep_text(const cuda_kernel_summary& k, int i) {
  const cuda_sweep_summary& sweep = k.sweeps[static_cast<std::size_t>(i)];
  std::string text =
      sweep_heading_text(k.kernel, k.table, i) + operands_text(sweep.operands_read, sweep.operands_written);
  for (const int earlier : sweep.computed_again) text += joined(", sweep ", earlier + 1, " computed again");
  if (sweep.tallies > 0)
    text += joined(", ", sweep.tallies, sweep.tallies == 1 ? " sum" : " sums", " added up on the way");
  if (sweep.rotates) text += ", sines and cosines by rotation";
  if (sweep.saved_bytes > 0) text += ", saves its carry at every tile: " + size_text(sweep.saved_bytes);
  return text + "\n";
}

inline std::string carries_text(const cuda_plan& plan) {
  if (plan.carry_bytes == 0) return "";
  if (!plan.is_gradient) return "; can leave carries for its gradient, " + size_text(plan.carry_bytes);
  return joined("; with carries that the scan left, ", size_text(plan.carry_bytes), ", ",
                plan.workspace_with_carries > 0 ? "workspace " + size_text(plan.workspace_with_carries)
                                                : std::string("no workspace"),
                ", and no first sweep: moves ", size_text(moved_with_carries(plan)));
}

}  // namespace detail

/// The plan in words: schedule, what is saved and what computed again, bytes moved, floor, workspace, and
/// the memory that a run takes beside its inputs.
inline std::string explain(const cuda_plan& plan) {
  std::string text =
      detail::joined(plan.id.view(), " on a GPU of ", plan.device.multiprocessors, " multiprocessors\n");
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    const cuda_kernel_summary& k = plan.kernels[i];
    text += detail::kernel_heading_text(k.kernel, k.table, k.plan.nest, static_cast<int>(i));
    if (k.plan.packed) text += detail::joined(", ", k.plan.segments, " packed sequences");
    if (k.plan.chunk > 0)
      text += k.plan.chunk_dimension >= 0 ? ", chunks as lanes"
                                          : detail::joined(", restarting every ", k.plan.chunk);
    text += "\n" + detail::arrangement_text(k);
    if (k.adds_at_once) text += "    adds up at once what a kernel before it would have added up\n";
    for (int s = 0; s < k.table.sweeps; ++s) text += detail::sweep_text(k, s);
    text += detail::joined("    reads ", detail::size_text(k.read_bytes), ", writes ",
                           detail::size_text(k.written_bytes), "\n");
  }
  text += detail::joined("  moves ", detail::size_text(plan.moved_bytes),
                         "; floor (inputs once, outputs once) ", detail::size_text(plan.floor_bytes));
  if (plan.workspace_bytes > 0)
    text += detail::joined("; workspace ", detail::size_text(plan.workspace_bytes));
  text += detail::carries_text(plan) + "\n";
  text += detail::joined("  peak memory, beside the inputs: outputs ", detail::size_text(plan.output_bytes),
                         " + workspace ", detail::size_text(plan.workspace_bytes));
  if (plan.carry_bytes > 0 && !plan.is_gradient)
    text += detail::joined("; + ", detail::size_text(plan.carry_bytes), " where it leaves carries");
  return text + "\n";
}

}  // namespace scandsl
