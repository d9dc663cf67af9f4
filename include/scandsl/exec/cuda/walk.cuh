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
  /// Walks the block's range for sweep S, restarting where chunks end.
  template <int S> __device__ __forceinline__ void sweep() {
    const std::int64_t low = threads.thread.low, high = threads.thread.high;
    if (a.chunk_dimension >= 0) return range<S>(low, high, a.chunk);
    if (a.chunk <= 0) return range<S>(low, high, high - low);
    states<group, C> seed[lanes];
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) seed[lane] = threads.thread.carry[lane];
    const std::int64_t chunks = (high - low + a.chunk - 1) / a.chunk;
#pragma unroll 1
    for (std::int64_t c = 0; c < chunks; ++c) {
      const std::int64_t at = low + (a.reversed[S] ? chunks - 1 - c : c) * a.chunk;
      if (c > 0)
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
          copy_states<group, scans_in<group, S>>(seed[lane], threads.thread.carry[lane]);
      const std::int64_t end = at + a.chunk < high ? at + a.chunk : high;
      range<S>(at, end, end - at);
    }
  }

  /// `longest`: the length of the block's longest range; ranges that are shorter have their last tiles empty.
  template <int S>
  __device__ __forceinline__ void range(std::int64_t low, std::int64_t high, std::int64_t longest) {
    const std::int64_t length = Arrangement::tile_steps(threads.lane_threads);
    const bool reversed = a.reversed[S];
#pragma unroll 1
    for (std::int64_t at = 0; at < longest; at += length) {
      auto now = threads.template tile_at<S>(low, high, at, reversed);
      now.load();
      process<S>(now, at + length > high - low);
    }
  }

  template <int S, class Tile> __device__ __forceinline__ void process(Tile& now, bool ragged) {
    states<group, C> before[runs];
#pragma unroll
    for (int run = 0; run < runs; ++run) before[run] = threads.thread.carry[Tile::lane_of(run)];
    if constexpr (sweep_has_scans<group, S>) {
      auto u = Tile::fold_stage::evaluate_uniforms(a.parameters);
      for_each_index(std::make_integer_sequence<int, rounds_of<group, S>>{},
                     [&]<int Round>(index_constant<Round>) {
                       using here = scans_in<group, S, Round>;
                       states<group, C> start[runs];
#pragma unroll
                       for (int run = 0; run < runs; ++run) {
                         start[run] = before[run];
                         set_identity<group, here>(start[run]);
                       }
                       bool again = true;
#pragma unroll 1
                       while (again) {
                         states<group, C> local[runs];
#pragma unroll
                         for (int run = 0; run < runs; ++run) {
                           local[run] = start[run];
                           now.template fold<Round>(u, run, ragged, local[run]);
                         }
                         again = threads.template join<here>(local, start, before);
                       }
                     });
    }
    auto u = Tile::sweep_stage::evaluate_uniforms(a.parameters);
    now.finish(u, before);
  }
};

template <class K, class Arrangement>
__global__ void __launch_bounds__(Arrangement::threads)
    walk_kernel(const __grid_constant__ typename K::arguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  walker<K, Arrangement>(a, reinterpret_cast<typename K::compute*>(shared)).run();
}

}  // namespace scandsl::cuda_detail
