#pragma once
#include "scandsl/exec/cuda/row.cuh"
#include "scandsl/exec/cuda/strip.cuh"

/// The walk: a block owns some lanes and goes along their scanned axis tile by tile, the carry in registers.
/// Rows, streams, chunks (which are lanes of their own, one tile long) and programs without scans all run
/// this way; which arrangement it has says where the scanned axis lies.
///
/// What nearly all tiles need is in kernels of their own, of few registers: one_tile_kernel, for lanes that
/// are no longer, and stream_kernel, in which the copy engine brings the next tile while one is computed.
/// What they cannot do they leave, for good, to walk_on, which can do everything: a call that is not the last
/// thing a kernel does would cost it registers all along. (It goes by smaller tiles, to keep the code small.)
namespace scandsl::cuda_detail {

template <class K, class Arrangement> struct walker;

/// What a walk goes on from: the tile that begins `from` steps into the lanes' range.
template <class K, int Lanes> struct walk_state {
  using C = typename K::compute;
  using lane_state = lane_group<K, Lanes>;
  static constexpr int lanes = Lanes;
  std::int64_t from;
  states<typename K::group, C> carry[lanes];
  C kept[lane_state::kept_slots][lanes];
  C still[lane_state::still_slots][lanes];

  template <class From, class To> static __device__ __forceinline__ void copy(const From& given, To& taken) {
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      taken.carry[lane] = given.carry[lane];
#pragma unroll
      for (int k = 0; k < lane_state::kept_slots; ++k) taken.kept[k][lane] = given.kept[k][lane];
#pragma unroll
      for (int k = 0; k < lane_state::still_slots; ++k) taken.still[k][lane] = given.still[k][lane];
    }
  }
};

/// Walks the block's lanes to their end, whatever the data, the access, the sweeps and the restarts: from
/// `state` on, or where that is null from the start.
template <class K, class Arrangement>
__device__ __noinline__ void walk_on(const typename K::arguments& a, unsigned char* shared,
                                     const walk_state<K, Arrangement::lanes>* state) {
  walker<K, Arrangement>(a, shared).run(state);
}

template <class K, class Arrangement> struct walker {
  using group = typename K::group;
  using C = typename K::compute;
  using state = walk_state<K, Arrangement::lanes>;
  static constexpr int runs = Arrangement::runs, lanes = Arrangement::lanes;
  static constexpr int stage_bytes = tile<K, 0, typename Arrangement::place, false>::stage_bytes;

  const typename K::arguments& a;
  unsigned char* shared;
  Arrangement threads;

  __device__ __forceinline__ walker(const typename K::arguments& given, unsigned char* memory)
      : a(given), shared(memory), threads(given, reinterpret_cast<C*>(memory)) {}
  static __host__ __device__ constexpr std::size_t exchange_bytes(int lane_threads) {
    return (sizeof(C) * static_cast<std::size_t>(Arrangement::exchange_elements(lane_threads)) + 15) / 16 *
           16;
  }

  /// Everything, or what is left of a program of one sweep.
  __device__ __forceinline__ void run(const state* given) {
    threads.template find<true>(blockIdx.x, threads.thread);
    if (sweep_count<group> == 1 && given != nullptr) {
      state::copy(*given, threads.thread);
      walk_range<0>(threads.thread.low, threads.thread.high, range_extent(), given->from);
      threads.thread.template boundary<1>();
      return;
    }
    threads.thread.load_still();
    for_each_index(std::make_integer_sequence<int, sweep_count<group>>{}, [&]<int S>(index_constant<S>) {
      if constexpr (size_of_list<scratch_nodes<group>> > 0)
        wait_for_all(threads.block_threads());  // other threads wrote what this one will read
      threads.thread.template boundary<S>();
      sweep<S>();
    });
    threads.thread.template boundary<sweep_count<group>>();
  }

  /// One tile is all there is of every lane.
  __device__ __forceinline__ void run_one_tile() {
    if (a.restarts || a.walk_dimensions > 1)
      return walk_on<K, typename Arrangement::small>(a, shared, nullptr);
    auto& thread = threads.thread;
    threads.template find<false>(blockIdx.x, thread);
    auto now = threads.template tile_at<0>(thread, {0, static_cast<int>(thread.high)}, a.reversed[0]);
    thread.load_still();
    thread.template boundary<0>();
    now.load();
    if (process<0, uses_last<group>>(now, true))
      thread.template boundary<1>();
    else
      walk_on<K, typename Arrangement::small>(a, shared, nullptr);  // anew: no tile has been written
  }

  /// Several tiles of the same lanes.
  __device__ __forceinline__ void run_stream() {
    if (a.restarts || a.walk_dimensions > 1)
      return walk_on<K, typename Arrangement::small>(a, shared, nullptr);
    auto& thread = threads.thread;
    threads.template find<true>(blockIdx.x, thread);
    unsigned char* const stages = shared + exchange_bytes(a.lane_threads);
    const int length = Arrangement::tile_steps(a.lane_threads);
    const std::int64_t extent = range_extent();
    const auto tile_after = [&](std::int64_t steps) {
      return threads.template tile_at<0>(
          thread, stretch::after(thread.low, thread.high, steps, length, a.reversed[0]), a.reversed[0]);
    };
    if (extent > 0) tile_after(0).prefetch(stages);
    __pipeline_commit();
    thread.load_still();
    thread.template boundary<0>();
    int stage = 0;
#pragma unroll 1
    for (std::int64_t at = 0; at < extent; at += length) {
      if (at + length < extent) tile_after(at + length).prefetch(stages + (stage_bytes - stage));
      __pipeline_commit();
      auto now = tile_after(at);
      __pipeline_wait_prior(1);
      now.load(stages + stage);
      stage = stage_bytes - stage;
      if (!process<0, true>(now, at == 0)) {
        __pipeline_wait_prior(0);
        leave(at);
        return;
      }
    }
    thread.template boundary<1>();
  }

private:
  __device__ __forceinline__ void leave(std::int64_t from) const {
    state rest;
    state::copy(threads.thread, rest);
    rest.from = from;
    wait_for_all(threads.block_threads());  // the exchange is another's now
    walk_on<K, typename Arrangement::small>(a, shared, &rest);
  }
  /// Chunks that are lanes of their own are one range each; a lane whose chunk is shorter has its last tiles
  /// empty.
  __device__ __forceinline__ std::int64_t range_extent() const {
    return a.chunk_dimension >= 0 ? a.chunk : threads.thread.high - threads.thread.low;
  }

  /// Walks the block's range for sweep S, restarting where chunks end.
  template <int S> __device__ __forceinline__ void sweep() {
    std::int64_t low = threads.thread.low, high = threads.thread.high, extent = range_extent(), left = 1;
    const std::int64_t end = high;
    states<group, C> seed[lanes];
    if (a.restarts) {
      left = (high - low + a.chunk - 1) / a.chunk;
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) seed[lane] = threads.thread.carry[lane];
      if (a.reversed[S]) low += (left - 1) * a.chunk;
    }
#pragma unroll 1
    for (; left > 0; --left) {
      if (a.restarts) {
        high = low + a.chunk < end ? low + a.chunk : end;
        extent = high - low;
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
          copy_states<group, scans_in<group, S>>(seed[lane], threads.thread.carry[lane]);
      }
      walk_range<S>(low, high, extent, 0);
      low += a.reversed[S] ? -a.chunk : a.chunk;
    }
  }

  /// Walks `extent` steps from where [low, high) begins in scan order, but for the first `from`.
  template <int S>
  __device__ __forceinline__ void walk_range(std::int64_t low, std::int64_t high, std::int64_t extent,
                                             std::int64_t from) {
    const int length = Arrangement::tile_steps(a.lane_threads);
#pragma unroll 1
    for (std::int64_t at = from; at < extent; at += length) {
      auto now = threads.template tile_at<S, true>(
          threads.thread, stretch::after(low, high, at, length, a.reversed[S]), a.reversed[S]);
      now.load();
      if (!process<S, true>(now, at == 0)) in_order<S>(now);
    }
  }

  /// Computes a tile. False, with nothing written and the carry worth what it was, for the whole block, where
  /// the tile ends early and the scans' last values are wanted, its sums hold no frame, or a stretch alone
  /// overflows. Total: the carry after the tile is wanted.
  template <int S, bool Total, class Tile> __device__ __forceinline__ bool process(Tile& now, bool first) {
    states<group, C> before[runs];
    auto u = Tile::sweep_stage::evaluate_uniforms(a.parameters);
    if constexpr (!sweep_has_scans<group, S>) {
      now.template finish<false>(u, before);
      return true;
    } else {
      constexpr bool framed = can_be_framed<K, S>;
      if (uses_last<group> && a.last_wanted && now.of_tile.steps < Arrangement::tile_steps(a.lane_threads))
        return false;
      bool taken;
      if constexpr (framed)
        taken = scan_in_frame<S, Total>(now, before, first);
      else
        taken = scan<S, Total>(now, before);
      if (taken) now.template finish<framed>(u, before);
      return taken;
    }
  }

  /// Finds what precedes each run of the tile, and moves the carry past it. False, with the carry as it was,
  /// for the whole block, where a stretch alone overflows.
  template <int S, bool Total, class Tile>
  __device__ __forceinline__ bool scan(Tile& now, states<group, C> (&before)[runs]) {
    auto u = Tile::fold_stage::evaluate_uniforms(a.parameters);
    states<group, C> start[lanes];
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) start[lane] = threads.thread.carry[lane];
#pragma unroll
    for (int run = 0; run < runs; ++run) before[run] = start[Tile::lane_of(run)];
    bool fits = true;
    for_each_index(
        std::make_integer_sequence<int, rounds_of<group, S>>{}, [&]<int Round>(index_constant<Round>) {
          using here = scans_in<group, S, Round>;
          if (!fits) return;
          states<group, C> local[runs], preceding[runs], total[lanes];
#pragma unroll
          for (int run = 0; run < runs; ++run) {
            local[run] = before[run];
            set_identity<group, here>(local[run]);
            now.template fold<Round, false, false>(u, run, local[run]);
          }
          fits = !threads.template join<here, false, Total>(local, preceding, total, false, now.steps(0) > 0);
          if (fits) pass_on<Tile, here, false, Total>(preceding, total, before);
        });
    if (rounds_of<group, S> > 1 && !fits)
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) threads.thread.carry[lane] = start[lane];
    return fits;
  }

  /// Computes a tile with every scan's own operator, if need be in turns.
  template <int S, class Tile> __device__ __forceinline__ void in_order(Tile& now) {
    auto& thread = threads.thread;
    states<group, C> before[runs];
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      for_each_index(sequence_of<scans_in<group, S>>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>) {  // an empty sum in some frame is no running maximum
          auto& carry = state_of<Scan>(thread.carry[lane]);
          if (carry[1] == C(0)) carry[0] = static_cast<C>(identity_of<group, Scan, 0>);
        }
      });
    auto folding = Tile::fold_stage::evaluate_uniforms(a.parameters);
#pragma unroll
    for (int run = 0; run < runs; ++run) before[run] = thread.carry[Tile::lane_of(run)];
    for_each_index(std::make_integer_sequence<int, rounds_of<group, S>>{},
                   [&]<int Round>(index_constant<Round>) {
                     using here = scans_in<group, S, Round>;
                     bool again = true;
#pragma unroll 1
                     while (again) {
                       states<group, C> local[runs], preceding[runs], total[lanes];
#pragma unroll
                       for (int run = 0; run < runs; ++run) {
                         local[run] = before[run];
                         threads.template set_start<here>(run, local[run]);
                         now.template fold<Round, false, uses_last<group>>(folding, run, local[run]);
                       }
                       if (threads.turn >= 0) {
                         again = threads.template take_turn<here>(local, before);
                       } else if (threads.template join<here, false, true>(local, preceding, total, false,
                                                                           now.steps(0) > 0)) {
                         threads.template begin_turns<here>();
                       } else {
                         pass_on<Tile, here, false, true>(preceding, total, before);
                         again = false;
                       }
                     }
                   });
    auto u = Tile::sweep_stage::evaluate_uniforms(a.parameters);
    now.template finish<false>(u, before);
  }

  /// As scan, with the m of every log-sum held fixed: the elements' exponentials are added as they are. False
  /// where that is not exact all over the tile, for the whole block; the carry is then worth what it was.
  template <int S, bool Total, class Tile>
  __device__ __forceinline__ bool scan_in_frame(Tile& now, states<group, C> (&before)[runs], bool first) {
    using here = scans_in<group, S, 0>;
    auto u = Tile::fold_stage::evaluate_uniforms(a.parameters);
    const stretch& all = now.of_tile;
    bool doubtful = false, settled = true;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      for_each_index(sequence_of<here>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>)
          settled = settled && holds_frame(state_of<Scan>(threads.thread.carry[lane]));
      });
    if (!settled) {
      look_at<K, S, Tile::anywhere>(
          threads.thread, all.low + (a.reversed[S] ? all.steps - 1 : 0), first && all.steps > 0, u,
          [&]<int Scan>(index_constant<Scan>, int lane, C element) {
            auto& carry = state_of<Scan>(threads.thread.carry[lane]);
            if (!holds_frame(carry))
              doubtful = doubtful || (!set_frame(carry, element, first) && lane < threads.thread.valid);
          });
    }
    states<group, C> local[runs], preceding[runs], total[lanes];
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      before[run] = threads.thread.carry[Tile::lane_of(run)];
      local[run] = before[run];
      set_identity<group, here, true>(local[run]);
      now.template fold<0, true, false>(u, run, local[run]);
    }
    if (threads.template join<here, true, Total>(local, preceding, total, doubtful, now.steps(0) > 0))
      return false;
    pass_on<Tile, here, true, Total>(preceding, total, before);
    return true;
  }

  /// `before` becomes the carry and what precedes each run in the tile; the carry moves past the tile.
  template <class Tile, class Holder, bool Framed, bool Total>
  __device__ __forceinline__ void pass_on(states<group, C> (&preceding)[runs],
                                          states<group, C> (&total)[lanes],
                                          states<group, C> (&before)[runs]) {
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      combine_onto<group, Holder, Framed>(threads.thread.carry[Tile::lane_of(run)], preceding[run]);
      copy_states<group, Holder>(preceding[run], before[run]);
    }
    if constexpr (Total) {
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) {
        combine_onto<group, Holder, Framed>(threads.thread.carry[lane], total[lane]);
        copy_states<group, Holder>(total[lane], threads.thread.carry[lane]);
      }
    }
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
  walk_on<K, Arrangement>(a, shared, nullptr);
}
template <class K, class Arrangement>
__global__ void __launch_bounds__(Arrangement::threads, Arrangement::blocks_resident)
    stream_kernel(const __grid_constant__ typename K::arguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  walker<K, Arrangement>(a, shared).run_stream();
}
template <class K, class Arrangement>
__global__ void __launch_bounds__(
    Arrangement::threads,
    Arrangement::blocks_resident_of_one_tile(walker<K, Arrangement>::stage_bytes / Arrangement::threads))
    one_tile_kernel(const __grid_constant__ typename K::arguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  walker<K, Arrangement>(a, shared).run_one_tile();
}

}  // namespace scandsl::cuda_detail
