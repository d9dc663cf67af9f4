#pragma once
#include <algorithm>
#include <cstdlib>
#include <string>

#include "scandsl/pass/kernel_problem.hpp"
#include "scandsl/pass/nest.hpp"
#include "scandsl/pass/prepare.hpp"

/// How a program runs on the CPU for given shapes: plain functions of the program, the problem and the
/// device.
namespace scandsl {

/// Sizes that decide how memory is walked, not what is computed. Measured on a 2.8 GHz Xeon with AVX-512 (48
/// KiB and 1.25 MiB of first- and second-level cache a core).
struct strip_policy {
  /// Packs walked side by side where lanes are contiguous: with AVX-512 two kilobytes of float32, so that
  /// every step reads a long run in address order; 8 packs took twice as long.
  static constexpr int adjacent_packs = 32;
  /// From the pack that is computed to the one that the cache is asked for: 16 to 64 serve alike.
  static constexpr int packs_ahead = 32;
  /// Where each lane is a row of its own, one pack: its rows are then read a kilobyte at a time (four packs,
  /// a quarter of that each, took 2.4 times as long). Short rows take more packs, up to this many steps in
  /// all.
  static constexpr std::int64_t row_steps = 256;
  /// Bytes of one value that the first sweep keeps for later ones: of more than this it is computed again.
  static constexpr std::int64_t kept_bytes = 1 << 18;
  /// Bytes of one staged tile of one stream: 16 steps of 32 packs. With fewer steps a tile, bfloat16 took
  /// twice as long.
  static constexpr std::int64_t tile_bytes = 32768;
  static constexpr std::int64_t longest_tile = 256;
  /// What one strip may keep between its sweeps and still find in the second-level cache.
  static constexpr std::int64_t cached_bytes = 1 << 20;
  /// Steps of a walk without scans: threads share what is longer, and take memory in the order of its
  /// addresses. Longer ones, which begin less often, where that is their order, and leave each thread
  /// several.
  static constexpr std::int64_t shared_walk_steps = 128, longest_shared_walk = 1024, walks_a_thread = 8;
  /// Up to so many strips a thread are made equally many for all, where the walk is one segment.
  static constexpr std::int64_t even_rounds = 4;
  /// Where a program reads and writes more than a cache is likely to hold, outputs of so many bytes are
  /// written past it, where whole lines are: else each line is read before it is written.
  static constexpr std::int64_t uncached_call_bytes = 32 << 20, uncached_output_bytes = 8 << 20;
};

/// One long row, cut into pieces. Fixed sizes, so that the order of combination, and with it every bit of the
/// result, depends on the extents and the SIMD width alone, and not on the number of threads.
struct piece_policy {
  static constexpr int packs = 1;  ///< pieces side by side: packs * W lanes, read a kilobyte at a time
  static constexpr std::int64_t length = 1024;  ///< positions a piece
  /// Blocks a thread scans between two meetings: what it reduced is then still in its second-level cache.
  static constexpr int blocks_a_thread = 4;
  /// Shorter rows are walked as lanes.
  static constexpr std::int64_t shortest_row = 4096;
};

/// Reductions along rows that lie side by side.
struct row_policy {
  /// Rows that one thread takes together, whatever the number of threads: about so many elements, and a
  /// multiple of what rotates from one exact product.
  static constexpr std::int64_t elements_of_unit = 32768, most_rows = 128, rows_between = 8;
  static constexpr std::int64_t rows_of_unit(std::int64_t elements) {
    return std::clamp(elements_of_unit / elements / rows_between * rows_between, rows_between, most_rows);
  }
  /// Rows of one lane before those of the next one beside it; and numbers that may be kept of so many lanes.
  static constexpr std::int64_t rows_in_turns = 32, most_values = 65536;
  /// Rows of a staged tile: of 32 KB where so few are.
  static constexpr std::int64_t rows_of_tile(std::int64_t elements) {
    return std::clamp(8192 / elements / rows_between * rows_between, rows_between, most_rows);
  }
};

/// Which of two ways to walk, where no angles turn along the second. Measured with md_lrpe_cosine when they
/// did not, three million elements of float32, two cores: along the batch 52 ms where it is one sequence and
/// 6 where it is twelve; along the tokens 12.
struct walk_policy {
  static constexpr std::int64_t fewest_steps = 6;
};

struct cpu_device {
  int threads = 1;
  int pack_width = 1;  ///< lanes a SIMD pack
};

/// The lanes of a nest in packs: each innermost row starts a pack of its own, unless that wastes too many
/// lanes.
struct lane_packs {
  std::int64_t inside = 1, total = 1, count = 1;
  int width = 1;
  bool is_dense = false;

  lane_packs(const loop_nest& nest, int pack_width) : width(pack_width) {
    inside = nest.lanes.empty() ? 1 : nest.lanes.back().extent;
    total = nest.lane_count();
    const std::int64_t padded = packs_inside() * (total / std::max<std::int64_t>(1, inside));
    const std::int64_t dense = (total + width - 1) / width;
    is_dense = padded * 3 > dense * 4;
    count = is_dense ? dense : padded;
  }
  std::int64_t packs_inside() const { return (inside + width - 1) / width; }
  std::int64_t first_lane(std::int64_t pack) const {
    return is_dense ? pack * width : pack / packs_inside() * inside + pack % packs_inside() * width;
  }
};

enum class cpu_schedule {
  lanes,   ///< threads share the lanes; each lane is walked in order
  rows,    ///< reductions along contiguous rows: packs of a row's own elements
  pieces,  ///< few long rows: each is cut into pieces, reduced, chained and scanned by all threads
};

/// How one kernel program is run.
struct cpu_kernel_plan {
  cpu_schedule mode = cpu_schedule::lanes;
  std::vector<loop_nest> nests;       ///< usually one; a short last chunk or block is one more
  std::int64_t chunk = 0;             ///< restart interval inside the walk; 0: none, or folded into the lanes
  bool folded = false;                ///< chunks restart independently and became lanes
  std::vector<std::int64_t> offsets;  ///< segment boundaries; empty: one segment, the whole walk

  std::int64_t segments() const {
    return offsets.empty() ? 1 : static_cast<std::int64_t>(offsets.size()) - 1;
  }
};

/// Whether what a walk reads and writes at every step lies side by side along it, a pack at least.
inline bool walks_contiguously(const program& p, const loop_nest& nest, const cpu_device& device) {
  if (nest.walk.size() != 1 || nest.steps() < device.pack_width) return false;
  bool any = false;
  for (int t = 0; t < p.tensors.count; ++t) {
    const std::int64_t stride = nest.walk.back().stride[static_cast<std::size_t>(t)];
    if (p.tensors[t].role == tensor_role::positions || stride == 0) continue;
    if (stride != 1) return false;
    any = true;
  }
  return any;
}

/// Steps of a walk without scans that threads share: longer than they have to be where packs are of the same
/// lanes then, those that lie side by side between two steps, and nothing else lies there. (Where one lane of
/// a pack leaps, angles of all are computed anew: other packs would have other bits.) A power of two times
/// the policy's, so that exact angles are where they are otherwise.
inline std::int64_t steps_of_shared_walk(const program& p, const loop_nest& nest, const cpu_device& device) {
  std::int64_t steps = strip_policy::shared_walk_steps, walks = nest.steps() / steps;
  if (nest.lanes.empty() || nest.lanes.back().extent % device.pack_width != 0) return steps;
  bool inside = false;
  for (std::size_t i = 0; i < nest.lanes.size(); ++i) {
    const bool is_innermost = i + 1 == nest.lanes.size();
    if (!is_innermost) walks *= nest.lanes[i].extent;
    for (int t = 0; t < p.tensors.count; ++t) {
      const std::int64_t lane = std::abs(nest.lanes[i].stride[static_cast<std::size_t>(t)]),
                         step = std::abs(nest.walk.back().stride[static_cast<std::size_t>(t)]);
      if (p.tensors[t].role == tensor_role::positions || lane == 0 || step == 0) continue;
      if ((lane < step) != is_innermost) return steps;
      inside = inside || is_innermost;
    }
  }
  // What is left over at the end is walked by itself, by fewer threads.
  while (inside && steps < strip_policy::longest_shared_walk &&
         nest.steps() % (2 * steps) <= nest.steps() / 16 &&
         walks / 2 >= strip_policy::walks_a_thread * device.threads) {
    steps *= 2;
    walks /= 2;
  }
  return steps;
}

/// Plans one kernel program. Reads the offsets of packed sequences where they are bound to memory.
inline cpu_kernel_plan plan_cpu_kernel(const program& p, const walk_table& table, const problem& bound,
                                       const iteration_space& space, const cpu_device& device) {
  cpu_kernel_plan plan;
  const loop_nest nest = make_nest(p, table, space);
  plan.nests = {nest};
  if (p.scans.count == 0) {
    if (table.axis < 0) plan.nests = choose_walk(nest, strip_policy::adjacent_packs * device.pack_width);
    plan.folded = table.axis >= 0 && nest.walk.size() == 1 && nest.steps() > strip_policy::shared_walk_steps;
    if (plan.folded) plan.nests = fold_chunks(p, nest, steps_of_shared_walk(p, nest, device));
    return plan;
  }
  const scan_decl& scan = p.scans[0];
  plan.chunk = detail::restart_interval(p, bound, scan.every);
  if (scan.offsets >= 0) {
    const bound_tensor& offsets = bound.tensors[static_cast<std::size_t>(scan.offsets)];
    if (offsets.bound && offsets.view.data != nullptr) plan.offsets = detail::read_offsets(offsets.view);
  }
  if (plan.chunk >= nest.steps()) plan.chunk = 0;
  if (plan.chunk > 0 && plan.offsets.empty() && !table.uses_last && nest.walk.size() == 1) {
    plan.nests = fold_chunks(p, nest, plan.chunk);
    plan.chunk = 0;
    plan.folded = true;
  }
  if (plan.chunk == 0 && nest.walk.size() == 1 && nest.lane_count() < 2 * device.pack_width && !plan.folded &&
      nest.steps() >= piece_policy::shortest_row)
    plan.mode = cpu_schedule::pieces;
  else if (table.reduces && walks_contiguously(p, nest, device))
    plan.mode = cpu_schedule::rows;
  return plan;
}

/// Packs that one thread walks side by side: as many as lie next to each other in memory, but enough strips
/// for every thread.
inline int packs_of_strip(const program& p, const loop_nest& nest, std::int64_t segments,
                          const cpu_device& device) {
  bool adjacent = false, rows = false;
  if (!nest.lanes.empty())
    for (int t = 0; t < p.tensors.count; ++t) {
      if (p.tensors[t].role == tensor_role::positions) continue;
      const std::int64_t lane = nest.lanes.back().stride[static_cast<std::size_t>(t)];
      const std::int64_t step = nest.walk.empty() ? 0 : nest.walk.back().stride[static_cast<std::size_t>(t)];
      adjacent = adjacent || lane == 1;
      rows = rows || (lane != 1 && (step == 1 || step == -1));
    }
  const std::int64_t few = std::clamp<std::int64_t>(
      strip_policy::row_steps / std::max<std::int64_t>(1, nest.steps()), 1, strip_policy::adjacent_packs);
  const lane_packs packs(nest, device.pack_width);
  // Packs of one innermost row: rows that are far apart compete for the same cache lines.
  const std::int64_t near = std::clamp<std::int64_t>(packs.packs_inside(), 2, strip_policy::adjacent_packs);
  const std::int64_t most = adjacent && !rows ? std::max(near, few) : few, all = packs.count * segments;
  const std::int64_t a_strip = std::clamp<std::int64_t>(all / device.threads, 1, most);
  // Of few strips all threads have equally many: three for two threads take as long as four.
  const std::int64_t at_once = a_strip * device.threads,
                     rounds = (all + at_once - 1) / std::max<std::int64_t>(1, at_once);
  if (rounds > strip_policy::even_rounds) return static_cast<int>(a_strip);
  const std::int64_t shares = std::max<std::int64_t>(1, rounds * device.threads);
  return static_cast<int>(std::clamp<std::int64_t>((all + shares - 1) / shares, 1, most));
}

// ---- the plan of a whole program, for explain

struct cpu_kernel_summary {
  program kernel;
  walk_table table;
  cpu_kernel_plan plan;
  int packs_a_strip = 1;
  std::int64_t read_bytes = 0, written_bytes = 0;
};

struct cpu_plan {
  name id;
  cpu_device device;
  bool in_double = false;
  std::vector<cpu_kernel_summary> kernels;
  std::int64_t floor_bytes = 0;    ///< every input read once, every output written once
  std::int64_t moved_bytes = 0;    ///< what the kernels read and write
  std::int64_t scratch_bytes = 0;  ///< held between kernels
  std::int64_t output_bytes = 0;   ///< of its outputs
};

namespace detail {

/// How often a kernel fetches a tensor: once for each sweep that reads it, or once in all where a strip's
/// part of it stays in the cache from sweep to sweep.
inline int fetches(const cpu_kernel_summary& k, int tensor, std::int64_t element_size) {
  int sweeps = 0;
  for (int i = 0; i < k.table.sweeps; ++i)
    for (const stream_read& read : k.table.sweep[i].reads)
      if (read.from == source::memory && read.tensor == tensor) {
        ++sweeps;
        break;
      }
  const std::int64_t lanes = k.plan.mode == cpu_schedule::rows ? 1 : k.packs_a_strip * 16,
                     strip = k.plan.nests.front().steps() * lanes * element_size;
  return strip <= strip_policy::cached_bytes ? std::min(sweeps, 1) : sweeps;
}

/// Whether what a tensor's gathers read is among what the kernel reads of the same memory anyway.
inline bool is_read_anyway(const program& kernel, int tensor) {
  const tensor_decl& gathered = kernel.tensors[tensor];
  if (gathered.walks_all()) return false;
  for (const tensor_decl& other : kernel.tensors)
    if (other.id == gathered.id && other.walks_all()) return true;
  return false;
}

inline void count_bytes(cpu_kernel_summary& k, const problem& bound) {
  for (int t = 0; t < k.kernel.tensors.count; ++t) {
    const bound_tensor& b = bound.tensors[static_cast<std::size_t>(t)];
    if (!b.bound || k.kernel.tensors[t].role == tensor_role::positions || is_read_anyway(k.kernel, t))
      continue;
    const std::int64_t bytes = bytes_of(b.view);
    bool stored = false;
    for (const store_decl& store : k.kernel.stores) stored = stored || store.tensor == t;
    if (stored)
      k.written_bytes += bytes;
    else
      k.read_bytes += bytes * std::max(1, fetches(k, t, static_cast<std::int64_t>(size_of(b.view.type))));
  }
}

}  // namespace detail

inline std::int64_t written_scratch_bytes(const program& kernel, const problem& bound) {
  std::int64_t bytes = 0;
  for (const store_decl& store : kernel.stores)
    if (kernel.tensors[store.tensor].role == tensor_role::scratch)
      bytes += detail::bytes_of(bound.tensors[static_cast<std::size_t>(store.tensor)].view);
  return bytes;
}

inline cpu_kernel_summary summarise_kernel(const program& kernel, const walk_table& table,
                                           const problem& bound, const cpu_device& device) {
  const iteration_space space = make_iteration_space(kernel, bound);
  cpu_kernel_summary summary{kernel, table, plan_cpu_kernel(kernel, table, bound, space, device), 1, 0, 0};
  summary.packs_a_strip = packs_of_strip(kernel, summary.plan.nests.front(), summary.plan.segments(), device);
  detail::count_bytes(summary, bound);
  return summary;
}

}  // namespace scandsl
