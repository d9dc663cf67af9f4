#pragma once
#include "scandsl/exec/cuda/row.cuh"
#include "scandsl/exec/cuda/strip.cuh"

/// The walk: a block owns some lanes and goes along their scanned axis tile by tile, the carry in registers.
/// Rows, streams, chunks (which are lanes of their own, one tile long) and programs without scans all run
/// this way; which arrangement it has says where the scanned axis lies.
namespace scandsl::cuda_detail {

template <class K, class Arrangement> struct walker {
  using group = typename K::group;
  using C = typename K::compute;
  static constexpr int runs = Arrangement::runs, lanes = Arrangement::lanes;

  const typename K::arguments& a;
  Arrangement threads;

  __device__ __forceinline__ walker(const typename K::arguments& given, C* shared)
      : a(given), threads(given, shared, static_cast<std::int64_t>(blockIdx.x)) {}

  __device__ __forceinline__ void run() {
    threads.thread.load_still();
    for_each_index(std::make_integer_sequence<int, sweep_count<group>>{}, [&]<int S>(index_constant<S>) {
      threads.thread.template boundary<S>();
      sweep<S>();
    });
    threads.thread.template boundary<sweep_count<group>>();
  }

private:
  /// Walks the block's range for sweep S, restarting where chunks end. `whole` chunks (lanes of their own, or
  /// none at all) are one range; a lane whose chunk is shorter has its last tiles empty.
  template <int S> __device__ __forceinline__ void sweep() {
    const std::int64_t low = threads.thread.low, high = threads.thread.high;
    const bool whole = a.chunk_dimension >= 0 || a.chunk <= 0;
    const std::int64_t chunk = a.chunk > 0 ? a.chunk : high - low,
                       chunks = whole ? 1 : (high - low + chunk - 1) / chunk;
    const std::int64_t length = Arrangement::tile_steps(threads.lane_threads);
    const bool reversed = a.reversed[S];
    states<group, C> seed[lanes];
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) seed[lane] = threads.thread.carry[lane];
#pragma unroll 1
    for (std::int64_t c = 0; c < chunks; ++c) {
      const std::int64_t from = low + (reversed ? chunks - 1 - c : c) * chunk,
                         to = whole || from + chunk > high ? high : from + chunk;
      if (c > 0)
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
          copy_states<group, scans_in<group, S>>(seed[lane], threads.thread.carry[lane]);
#pragma unroll 1
      for (std::int64_t at = 0; at < (whole ? chunk : to - from); at += length) {
        auto now = threads.template tile_at<S>(from, to, at, reversed);
        now.load();
        process<S>(now, from, to, at == 0, at + length > to - from);
      }
    }
  }

  template <int S, class Tile>
  __device__ __forceinline__ void process(Tile& now, std::int64_t low, std::int64_t high, bool first,
                                          bool ragged) {
    states<group, C> before[runs];
    auto u = Tile::sweep_stage::evaluate_uniforms(a.parameters);
    if constexpr (!sweep_has_scans<group, S>) {
      now.template finish<false>(u, before);
    } else {
      const bool masked = uses_last<group> && ragged;
      if constexpr (can_be_framed<K, S>) {
        if (!masked && scan_in_frame<S>(now, before, low, high, first))
          return now.template finish<true>(u, before);
      } else if (!masked) {
        scan<S, false>(now, before);
        return now.template finish<false>(u, before);
      }
      if constexpr (can_be_framed<K, S> || uses_last<group>) {
        scan<S, true>(now, before);
        now.template finish<false>(u, before);
      }
    }
  }

  /// Finds what precedes each run of the tile, and moves the carry past it.
  template <int S, bool Masked, class Tile>
  __device__ __forceinline__ void scan(Tile& now, states<group, C> (&before)[runs]) {
    auto u = Tile::fold_stage::evaluate_uniforms(a.parameters);
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      for_each_index(sequence_of<scans_in<group, S>>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>) {  // an empty sum in some frame is no running maximum
          auto& carry = state_of<Scan>(threads.thread.carry[lane]);
          if (carry[1] == C(0)) carry[0] = static_cast<C>(identity_of<group, Scan, 0>);
        }
      });
#pragma unroll
    for (int run = 0; run < runs; ++run) before[run] = threads.thread.carry[Tile::lane_of(run)];
    for_each_index(std::make_integer_sequence<int, rounds_of<group, S>>{},
                   [&]<int Round>(index_constant<Round>) {
                     using here = scans_in<group, S, Round>;
                     bool again = true;
#pragma unroll 1
                     while (again) {
                       states<group, C> local[runs];
#pragma unroll
                       for (int run = 0; run < runs; ++run) {
                         local[run] = before[run];
                         threads.template set_start<here>(run, local[run]);
                         now.template fold<Round, false, Masked>(u, run, local[run]);
                       }
                       again = threads.template join<here, false>(local, before);
                     }
                   });
  }

  /// The same with the m of every log-sum held fixed: the elements' exponentials are added as they are. False
  /// where that is not exact all over the tile, for the whole block; the carry is then worth what it was.
  template <int S, class Tile>
  __device__ __forceinline__ bool scan_in_frame(Tile& now, states<group, C> (&before)[runs], std::int64_t low,
                                                std::int64_t high, bool first) {
    using here = scans_in<group, S, 0>;
    auto u = Tile::fold_stage::evaluate_uniforms(a.parameters);
    const std::int64_t position = a.reversed[S] ? high - 1 : low;
    bool doubtful = false, settled = true;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      for_each_index(sequence_of<here>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>)
          settled = settled && holds_frame(state_of<Scan>(threads.thread.carry[lane]));
      });
    if (!settled) {
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        for_each_index(sequence_of<here>{}, [&]<int Scan>(index_constant<Scan>) {
          if constexpr (is_log_sum<group, Scan>) {
            auto& carry = state_of<Scan>(threads.thread.carry[lane]);
            if (holds_frame(carry)) return;
            C element = C(0);
            if (first && high > low) {
              typename Tile::fold_stage::template variables<C> v;
              Tile::fold_stage::evaluate(
                  u, v, probe_memory<K, S, Scan, lanes>{threads.thread, lane, position, element});
            }
            doubtful = doubtful || (!set_frame(carry, element, first) && lane < threads.thread.valid);
          }
        });
    }
    states<group, C> local[runs];
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      before[run] = threads.thread.carry[Tile::lane_of(run)];
      local[run] = before[run];
      set_identity<group, here, true>(local[run]);
      now.template fold<0, true, false>(u, run, local[run]);
    }
    return !threads.template join<here, true>(local, before, doubtful);
  }

  /// Whether the carry's m serves for another tile: its sum is neither small nor large.
  static __device__ __forceinline__ bool holds_frame(const std::array<C, 2>& carry) {
    const float m = static_cast<float>(carry[0]), sum = static_cast<float>(carry[1]);
    return sum >= 0.5F && sum < largest_sum<C> * 0x1p-10F && m > -1e30F;
  }
  /// Chooses m for a tile, from the carry or else from the tile's first element, and restates the carry in
  /// it. False where neither is finite.
  static __device__ __forceinline__ bool set_frame(std::array<C, 2>& carry, C element, bool first) {
    auto& [m, s] = carry;
    const float value = static_cast<float>(m + arithmetic<C>::log(s));
    const bool carries = value > -1e30F && value < 1e30F;  // neither -inf nor NaN
    const float chosen = rintf(4.0F * (carries || !first ? value : static_cast<float>(element))) * 0.25F;
    const bool finite = chosen > -1e30F && chosen < 1e30F;
    if (!finite) return false;
    s = carries ? s * arithmetic<C>::exp(m - C(chosen)) : C(0);
    m = C(chosen);
    return true;
  }
};

template <class K, class Arrangement>
__global__ void __launch_bounds__(Arrangement::threads, Arrangement::blocks_resident)
    walk_kernel(const __grid_constant__ typename K::arguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  walker<K, Arrangement>(a, reinterpret_cast<typename K::compute*>(shared)).run();
}

}  // namespace scandsl::cuda_detail
