#pragma once
#include <algorithm>

#include "scandsl/exec/cpu/pieces.hpp"
#include "scandsl/exec/cpu/rows.hpp"
#include "scandsl/exec/validate.hpp"

namespace scandsl::cpu_detail {

/// Runs one kernel program.
template <class C, class Instructions = xsimd::default_arch> class kernel_run {
public:
  kernel_run(const kernel_set<C>& kernels, const problem& bound, const iteration_space& space, int threads)
      : device{threads, pack_width<C>} {
    context.kernels = &kernels;
    context.bound = &bound;
    context.space = &space;
    for (int i = 0; i < kernels.p->parameters.count; ++i)
      context.parameters.push_back(
          as_parameter<C>(kernels.p->parameters[i], bound.parameters[static_cast<std::size_t>(i)]));
    const auto bytes_of = [](const bound_tensor& t) {
      return t.bound ? scandsl::detail::bytes_of(t.view) : 0;
    };
    std::int64_t bytes = 0;
    for (const bound_tensor& t : bound.tensors) bytes += bytes_of(t);
    if (bytes >= strip_policy::uncached_call_bytes)
      for (std::size_t t = 0; t < bound.tensors.size(); ++t)
        context.streaming[t] = bytes_of(bound.tensors[t]) >= strip_policy::uncached_output_bytes;
    plan = plan_cpu_kernel(*kernels.p, *kernels.table, bound, space, device);
  }

  void run() {
    for (const loop_nest& nest : plan.nests) {
      if (nest.lane_count() == 0) continue;
      if (plan.mode == cpu_schedule::pieces)
        run_pieces(nest);
      else if (plan.mode == cpu_schedule::rows)
        run_rows(nest);
      else
        run_lanes(nest);
    }
  }

private:
  struct segment_range {
    std::int64_t index, low, high;
  };
  std::vector<segment_range> segments(const loop_nest& nest) const {
    if (plan.offsets.empty()) return {{0, 0, nest.steps()}};
    std::vector<segment_range> ranges;
    for (std::size_t s = 0; s + 1 < plan.offsets.size(); ++s)
      ranges.push_back({static_cast<std::int64_t>(s), plan.offsets[s], plan.offsets[s + 1]});
    return ranges;
  }

  void run_lanes(const loop_nest& nest) {
    const std::vector<segment_range> ranges = segments(nest);
    const std::int64_t packs = lane_packs(nest, device.pack_width).count,
                       count = static_cast<std::int64_t>(ranges.size());
    const int a_strip = packs_of_strip(context.p(), nest, count, device);
    const std::int64_t strips_a_range = (packs + a_strip - 1) / a_strip;
    std::vector<strip<C>> strips;
    for (int t = 0; t < device.threads; ++t) strips.emplace_back(context);
    const int sweeps = context.table().sweeps;
    parallel_for(strips_a_range * count, device.threads, [&](std::int64_t unit, int thread) {
      const segment_range& range = ranges[static_cast<std::size_t>(unit / strips_a_range)];
      const std::int64_t first = unit % strips_a_range * a_strip;
      strip<C>& s = strips[static_cast<std::size_t>(thread)];
      s.place(nest, first, static_cast<int>(std::min<std::int64_t>(a_strip, packs - first)), range.index,
              range.low, range.high);
      for (int i = 0; i < sweeps; ++i) {
        s.boundary(i);
        s.sweep(i, plan.chunk);
      }
      s.boundary(sweeps);
    });
  }

  void run_rows(const loop_nest& nest) {
    std::vector<row_walk<C>> walks;
    for (int t = 0; t < device.threads; ++t) walks.emplace_back(context, nest);
    parallel_for(walks.front().units(), device.threads,
                 [&](std::int64_t unit, int thread) { walks[static_cast<std::size_t>(thread)].run(unit); });
  }

  /// Few long rows: one after the other, each in parallel.
  void run_pieces(const loop_nest& nest) {
    piece_scan<C> scan(context, device.threads);
    loop_nest row = nest;
    row.lanes.clear();
    for (std::int64_t lane = 0; lane < nest.lane_count(); ++lane) {
      for (int t = 0; t < context.p().tensors.count; ++t)
        row.origin[static_cast<std::size_t>(t)] =
            nest.origin[static_cast<std::size_t>(t)] + loop_nest::offset(nest.lanes, lane, t);
      for (const segment_range& range : segments(row)) scan.run(row, range.index, range.low, range.high);
    }
  }

  cpu_device device;
  strip_context<C> context;
  cpu_kernel_plan plan;
};

/// Not inline: what goes around the stages is the same for all programs, and takes longer to compile than
/// most of them. Of several files, all but one may leave it to that one (shared_driver.hpp).
template <class C>
void run_kernel(const kernel_set<C>& kernels, const problem& bound, const iteration_space& space,
                int threads) {
  kernel_run<C>(kernels, bound, space, threads).run();
}

}  // namespace scandsl::cpu_detail
