#pragma once
#include "scandsl/pass/cuda_plan.hpp"
#include "scandsl/pass/explain_text.hpp"

namespace scandsl {

/// One sweep of a kernel on a GPU.
struct cuda_sweep_summary {
  int operands_read = 0, operands_written = 0;
  std::int64_t saved_bytes = 0;     ///< of the carries with which it came to its tiles
  std::vector<int> computed_again;  ///< earlier sweeps, numbered from 0
  bool rotates = false;             ///< sines and cosines follow from those of the step before
};

struct cuda_kernel_summary {
  program kernel;
  walk_table table;
  cuda_kernel_plan plan;
  int tile_steps = 0;
  bool one_tile = false;  ///< every lane is one tile, read once for all sweeps
  std::vector<cuda_sweep_summary> sweeps;
  std::int64_t read_bytes = 0, written_bytes = 0;
};

/// What a program does on a GPU with given shapes.
struct cuda_plan {
  name id;
  cuda_device device;
  std::vector<cuda_kernel_summary> kernels;
  std::int64_t floor_bytes = 0;  ///< every input read once, every output written once
  std::int64_t moved_bytes = 0;  ///< what the kernels read and write, saved carries included
  std::int64_t workspace_bytes =
      0;  ///< saved carries, what is known of tiles or pieces, and what is held between kernels
  std::int64_t carry_bytes = 0;  ///< of carries that it can leave for its gradient, or a gradient find
  bool is_gradient = false;
};

namespace detail {

inline std::string arrangement_text(const cuda_kernel_summary& k) {
  const bool row = k.plan.arrangement == cuda_arrangement::row;
  const std::string shape =
      row ? joined("rows, ", k.plan.lane_threads, k.plan.lane_threads == 1 ? " thread" : " threads", " each")
          : joined("strips of ", k.plan.lane_threads, k.plan.lane_threads == 1 ? " thread" : " threads",
                   " side by side");
  if (k.plan.lookback_tiles > 0)
    return joined("    look-back: ", shape, ", ", k.plan.lookback_tiles, " tiles of each lane at once\n");
  if (k.plan.side > 0)
    return joined("    ", shape, ", ", k.plan.pieces, " parts of ", k.plan.piece,
                  " steps of each lane, reduced and then joined\n");
  if (k.plan.pieces > 1)
    return joined("    ", shape, ", ", k.plan.pieces, " pieces of ", k.plan.piece,
                  " steps of each lane, folded and then walked\n");
  const std::string sharing =
      k.plan.repeats > 1
          ? joined(", ", k.plan.repeats, " rows one after the other that share what is computed")
          : "";
  return joined("    ", shape, ", ", k.one_tile ? "one tile of " : "tiles of ", k.tile_steps, " steps",
                sharing, "\n");
}

inline std::string sweep_text(const cuda_kernel_summary& k, int i) {
  const cuda_sweep_summary& sweep = k.sweeps[static_cast<std::size_t>(i)];
  std::string text =
      sweep_heading_text(k.kernel, k.table, i) + operands_text(sweep.operands_read, sweep.operands_written);
  for (const int earlier : sweep.computed_again) text += joined(", sweep ", earlier + 1, " computed again");
  if (sweep.rotates) text += ", sines and cosines by rotation";
  if (sweep.saved_bytes > 0) text += ", saves its carry at every tile: " + size_text(sweep.saved_bytes);
  return text + "\n";
}

}  // namespace detail

/// The plan in words: schedule, what is saved and what computed again, bytes moved, floor, workspace.
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
    for (int s = 0; s < k.table.sweeps; ++s) text += detail::sweep_text(k, s);
    text += detail::joined("    reads ", detail::size_text(k.read_bytes), ", writes ",
                           detail::size_text(k.written_bytes), "\n");
  }
  text += detail::joined("  moves ", detail::size_text(plan.moved_bytes),
                         "; floor (inputs once, outputs once) ", detail::size_text(plan.floor_bytes));
  if (plan.workspace_bytes > 0)
    text += detail::joined("; workspace ", detail::size_text(plan.workspace_bytes));
  if (plan.carry_bytes > 0)
    text += detail::joined(
        plan.is_gradient ? "; with carries that the scan left, " : "; can leave carries for its gradient, ",
        detail::size_text(plan.carry_bytes), plan.is_gradient ? ", no workspace, and no first sweep" : "");
  return text + "\n";
}

}  // namespace scandsl
