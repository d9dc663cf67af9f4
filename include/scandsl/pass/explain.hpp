#pragma once
#include "scandsl/pass/cpu_plan.hpp"
#include "scandsl/pass/explain_text.hpp"

namespace scandsl {
namespace detail {

inline std::string sweep_text(const cpu_kernel_summary& k, int i, bool in_double) {
  const walk_stage& sweep = k.table.sweep[i];
  int reads = 0;
  for (const stream_read& read : sweep.reads) reads += read.from == source::memory ? 1 : 0;
  std::string text = sweep_heading_text(k.kernel, k.table, i) + operands_text(reads, sweep.stores.count);
  if (sweep.rotates && !in_double) text += ", sines and cosines by rotation";
  if (sweep.keeps.count > 0) text += joined(", ", sweep.keeps.count, " kept for later sweeps");
  return text + "\n";
}

inline std::string kernel_text(const cpu_plan& all, int index) {
  const cpu_kernel_summary& k = all.kernels[static_cast<std::size_t>(index)];
  std::string text = kernel_heading_text(k.kernel, k.table, k.plan.nests.front(), index);
  if (k.plan.segments() > 1) text += joined(", ", k.plan.segments(), " packed sequences");
  if (k.plan.folded) text += ", chunks as lanes";
  if (k.plan.chunk > 0) text += joined(", restarting every ", k.plan.chunk);
  text += "\n";
  if (k.plan.mode == cpu_schedule::pieces)
    text += joined("    pieces: few long rows, so each is cut into pieces of ", piece_policy::length, " and ",
                   piece_policy::packs * all.device.pack_width,
                   " of them go side by side: reduce, chain, scan\n");
  else if (k.plan.mode == cpu_schedule::rows)
    text += joined("    rows: packs of ", all.device.pack_width, " elements of a row, ",
                   row_policy::rows_of_unit(k.plan.nests.front().steps()),
                   " rows at a time, shared by the threads\n");
  else
    text += joined("    lanes: strips of ", k.packs_a_strip, " x ", all.device.pack_width,
                   " lanes side by side, shared by the threads\n");
  for (int i = 0; i < k.table.sweeps; ++i) text += sweep_text(k, i, all.in_double);
  return text + joined("    reads ", size_text(k.read_bytes), ", writes ", size_text(k.written_bytes), "\n");
}

}  // namespace detail

/// The plan in words: schedule, bytes moved, floor, and the memory that a run takes beside its inputs (tiles
/// that the cache holds aside). With a bandwidth (bytes read plus written a second, as a copy reaches it)
/// also the time that the floor takes.
inline std::string explain(const cpu_plan& plan, double bytes_per_second = 0.0) {
  std::string text = detail::joined(plan.id.view(), " on the CPU: ", plan.device.threads,
                                    plan.device.threads == 1 ? " thread" : " threads", ", packs of ",
                                    plan.device.pack_width, plan.in_double ? " float64" : " float32", "\n");
  for (std::size_t i = 0; i < plan.kernels.size(); ++i)
    text += detail::kernel_text(plan, static_cast<int>(i));
  text += detail::joined("  moves ", detail::size_text(plan.moved_bytes),
                         "; floor (inputs once, outputs once) ", detail::size_text(plan.floor_bytes));
  if (plan.scratch_bytes > 0) text += detail::joined("; scratch ", detail::size_text(plan.scratch_bytes));
  if (bytes_per_second > 0.0) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "; at least %.3f ms",
                  1e3 * static_cast<double>(plan.floor_bytes) / bytes_per_second);
    text += buffer;
  }
  return text + detail::joined("\n  peak memory, beside the inputs: outputs ",
                               detail::size_text(plan.output_bytes), " + scratch ",
                               detail::size_text(plan.scratch_bytes), "\n");
}

}  // namespace scandsl
