#pragma once
#include "scandsl/exec/cuda/scan_tile.cuh"

/// Programs of several sweeps: a gradient, whose second sweep goes back over what the first went along; a
/// softmax, which is a reduction first. A block owns some lanes, as in the walk.
///
/// What a sweep uses of an earlier one is not stored step by step. It is computed again where it is used, in
/// the registers that hold the tile, from the carry with which the earlier sweep came to the tile:
///
///     sweep 0 along     |--tile 0-->c1|--tile 1-->c2|--tile 2-->|      writes c1, c2
///     sweep 1 back      |<--tile 0----|<--tile 1----|<--tile 2--|      reads c1, c2; computes both sweeps
///
/// Where one tile is all there is, its elements are read once and nothing is saved.
namespace scandsl::cuda_detail {

/// All sweeps over the block's lanes, whatever the data, the access and the restarts.
template <class K, class Arrangement>
__device__ __noinline__ void sweep_on(const typename K::arguments& a, unsigned char* shared);

template <class K, class Arrangement> struct sweeper : tile_scanner<K, Arrangement> {
  using base = tile_scanner<K, Arrangement>;
  using group = typename K::group;
  using C = typename K::compute;
  using base::a, base::threads, base::runs, base::lanes;
  using sweep_numbers = std::make_integer_sequence<int, sweep_count<group>>;
  static constexpr int stage_bytes = [] {
    int most = 0;
    for_each_index(sweep_numbers{}, [&]<int S>(index_constant<S>) {
      most = std::max(most, tile<K, S, typename Arrangement::place, false>::stage_bytes);
    });
    return most;
  }();

  /// Whether the carry behind a tile is wanted though no later tile needs it.
  template <int S> static constexpr bool total_wanted = uses_last<group, S> || scales_others<group>(S);

  unsigned char* shared;

  __device__ __forceinline__ sweeper(const typename K::arguments& given, unsigned char* memory)
      : base(given, memory), shared(memory) {}

  /// One tile is all there is of every lane.
  __device__ __forceinline__ void run_one_tile() {
    if (a.restarts || a.walk_dimensions > 1) return leave();
    auto& thread = threads.thread;
    threads.template find<false>(blockIdx.x, thread);
    auto now =
        threads.template tile_at<all_sweeps>(thread, {0, static_cast<int>(thread.high)}, a.reversed[0]);
    now.load();
    thread.load_still();
    states<group, C> before[runs];
    bool fits = true;
    for_each_index(sweep_numbers{}, [&]<int S>(index_constant<S>) {
      if (!fits) return;
      thread.template boundary<S>();
      with_heading<group, S>(a, [&]<bool Back>(std::bool_constant<Back>) {
        fits = base::template scan_fast<S, total_wanted<S>, Back>(now, before, true);
        if (fits) now.template finish<S, true, Back>(before);
      });
    });
    if (fits)
      thread.template boundary<sweep_count<group>>();
    else
      leave();
  }

  /// Several tiles of the same lanes.
  __device__ __forceinline__ void run_stream() {
    if (a.restarts || a.walk_dimensions > 1) return leave();
    threads.template find<true>(blockIdx.x, threads.thread);
    threads.thread.load_still();
    const stretch_of_lanes range = whole();
    bool fits = true;
    for_each_index(sweep_numbers{}, [&]<int S>(index_constant<S>) {
      if (!fits) return;
      begin_sweep<S>();
      with_heading<group, S>(
          a, [&]<bool Back>(std::bool_constant<Back>) { fits = stream_sweep<S, Back>(range); });
    });
    if (fits) {
      threads.thread.template boundary<sweep_count<group>>();
    } else {
      threads.meet();  // the exchange is another's now
      leave();
    }
  }

  __device__ __forceinline__ void run() {
    threads.template find<true>(blockIdx.x, threads.thread);
    threads.thread.load_still();
    for_each_index(sweep_numbers{}, [&]<int S>(index_constant<S>) {
      begin_sweep<S>();
      with_heading<group, S>(a, [&]<bool Back>(std::bool_constant<Back>) { sweep<S, Back>(); });
    });
    threads.thread.template boundary<sweep_count<group>>();
  }

private:
  /// Leaves everything, anew, to what can do it whatever the data.
  __device__ __forceinline__ void leave() {
    // No block goes on before all have read what was said.
    if constexpr (Arrangement::clustered) threads.meet();
    using robust = typename K::robust;
    sweep_on<robust, typename Arrangement::template slow_of<robust>>(a, shared);
  }

  /// A part of the lanes through which sweeps go without restarting.
  struct stretch_of_lanes {
    std::int64_t low, high, tiles, first_slot;
  };
  __device__ __forceinline__ int length() const { return Arrangement::tile_steps(a.lane_threads); }
  __device__ __forceinline__ std::int64_t tiles_of(std::int64_t steps) const {
    return (steps + length() - 1) / length();
  }
  /// Chunks that are lanes of their own are one stretch each; a lane whose chunk is shorter has its last
  /// tiles empty.
  __device__ __forceinline__ stretch_of_lanes whole() const {
    const auto& thread = threads.thread;
    const std::int64_t extent = a.chunk_dimension >= 0 ? a.chunk : thread.high - thread.low;
    const std::int64_t slots_before = a.offsets == nullptr ? 0 : thread.low / length() + thread.segment_index;
    return {thread.low, thread.high, tiles_of(extent), slots_before};
  }
  /// Tile `number` of a stretch, in the order of the first sweep.
  template <int S, bool Anywhere>
  __device__ __forceinline__ auto tile_of(const stretch_of_lanes& range, std::int64_t number) const {
    return threads.template tile_at<S, Anywhere>(
        threads.thread, stretch::after(range.low, range.high, number * length(), length(), a.reversed[0]),
        a.reversed[0]);
  }
  template <int S> __device__ __forceinline__ void begin_sweep() {
    threads.thread.template boundary<S>();
    if constexpr (is_replayed<group>(S))
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        copy_states<group, scans_in<group, S>>(threads.thread.carry[lane], first_carry[lane]);
    if constexpr (replays_any<group>(S)) threads.meet();  // others saved carries
  }

  template <int S, bool Back> __device__ __forceinline__ bool stream_sweep(const stretch_of_lanes& range) {
    unsigned char* const stages = shared + base::exchange_bytes(a.lane_threads);
    const auto numbered = [&](std::int64_t i) { return Back ? range.tiles - 1 - i : i; };
    saved_carries ahead;
    if (range.tiles > 0) {
      tile_of<S, false>(range, numbered(0)).prefetch(stages);
      fetch<S>(range.first_slot + numbered(0), ahead);
    }
    __pipeline_commit();
    int stage = 0;
#pragma unroll 1
    for (std::int64_t i = 0; i < range.tiles; ++i) {
      const saved_carries carries = ahead;
      if (i + 1 < range.tiles) {
        tile_of<S, false>(range, numbered(i + 1)).prefetch(stages + (stage_bytes - stage));
        fetch<S>(range.first_slot + numbered(i + 1), ahead);
      }
      __pipeline_commit();
      auto now = tile_of<S, false>(range, numbered(i));
      __pipeline_wait_prior(1);
      now.load(stages + stage);
      stage = stage_bytes - stage;
      states<group, C> before[runs];
      bool fits = true;
      for_each_index(std::make_integer_sequence<int, S>{}, [&]<int Q>(index_constant<Q>) {
        if constexpr (replays<group>(S, Q)) {
          if (!fits) return;
          with_heading<group, Q>(a, [&]<bool Backwards>(std::bool_constant<Backwards>) {
            const bool first = numbered(i) == (Backwards ? range.tiles - 1 : 0);
            restore<Q>(carries);
            fits = base::template scan_fast<Q, scales_others<group>(Q), Backwards>(now, before, first);
          });
        }
      });
      if (fits) {
        if constexpr (is_replayed<group>(S)) save<S>(range.first_slot + numbered(i));
        fits = base::template scan_fast<S, true, Back>(now, before, i == 0);
      }
      if (!fits) {
        __pipeline_wait_prior(0);
        return false;
      }
      now.template finish<S, true, Back>(before);
    }
    return true;
  }

  /// Restarting where chunks end.
  template <int S, bool Back> __device__ __forceinline__ void sweep() {
    const stretch_of_lanes all = whole();
    states<group, C> seed[lanes];
    std::int64_t chunks = 1, slots = 0, first_slot = all.first_slot;
    if (a.restarts) {
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) seed[lane] = threads.thread.carry[lane];
      chunks = (all.high - all.low + a.chunk - 1) / a.chunk;
      slots = tiles_of(a.chunk);
      if (a.offsets != nullptr) first_slot = (all.low / a.chunk + threads.thread.segment_index) * slots;
    }
#pragma unroll 1
    for (std::int64_t i = 0; i < chunks; ++i) {
      stretch_of_lanes here = all;
      if (a.restarts) {
        const std::int64_t number = Back != a.reversed[0] ? chunks - 1 - i : i;
        here.low = all.low + number * a.chunk;
        here.high = here.low + a.chunk < all.high ? here.low + a.chunk : all.high;
        here.tiles = tiles_of(here.high - here.low);
        here.first_slot = first_slot + number * slots;
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
          copy_states<group, scans_in<group, S>>(seed[lane], threads.thread.carry[lane]);
      }
      walk_stretch<S, Back>(here);
    }
  }
  template <int S, bool Back> __device__ __forceinline__ void walk_stretch(const stretch_of_lanes& range) {
#pragma unroll 1
    for (std::int64_t i = 0; i < range.tiles; ++i) {
      const std::int64_t number = Back ? range.tiles - 1 - i : i;
      saved_carries carries;
      fetch<S>(range.first_slot + number, carries);
      auto now = tile_of<S, true>(range, number);
      now.load();
      states<group, C> before[runs];
      for_each_index(std::make_integer_sequence<int, S>{}, [&]<int Q>(index_constant<Q>) {
        if constexpr (replays<group>(S, Q))
          with_heading<group, Q>(a, [&]<bool Backwards>(std::bool_constant<Backwards>) {
            restore<Q>(carries);
            base::template scan_in_order<Q, Backwards>(now, before);
          });
      });
      if constexpr (is_replayed<group>(S)) save<S>(range.first_slot + number);
      if constexpr (sweep_has_scans<group, S>) base::template scan_in_order<S, Back>(now, before);
      now.template finish<S, false, Back>(before);
    }
  }

  // ---- the carries with which a sweep came to its tiles

  using saved_type = typename scratch_type_of<C>::type;
  states<group, C> first_carry[lanes];  ///< with which each sweep began
  struct saved_carries {
    saved_type value[saved_components<group> > 0 ? saved_components<group> : 1][lanes];
  };
  /// Calls f(number, scan, component), constants, for what is saved of sweep Q.
  template <int Q, class F> static __device__ __forceinline__ void for_saved(F&& f) {
    for_components<group, scans_in<group, Q>>(
        [&]<int S, int Component>(index_constant<S> scan, index_constant<Component> component) {
          if constexpr (is_live<group, S, Component>)
            f(index_constant<saved_number<group>(S, Component)>{}, scan, component);
        });
  }
  __device__ __forceinline__ saved_type* saved_at(std::int64_t slot, int number) const {
    return static_cast<saved_type*>(a.saved) + (slot * saved_components<group> + number) * a.saved_lanes +
           threads.thread.unit * lanes;
  }
  template <int Q> __device__ __forceinline__ void save(std::int64_t slot) const {
    if (!threads.thread.writes || a.saved == nullptr) return;
    for_saved<Q>(
        [&]<int N, int S, int Component>(index_constant<N>, index_constant<S>, index_constant<Component>) {
#pragma unroll
          for (int lane = 0; lane < lanes; ++lane)
            if (lane < threads.thread.valid)
              saved_at(slot, N)[lane] =
                  static_cast<saved_type>(std::get<Component>(state_of<S>(threads.thread.carry[lane])));
        });
  }
  /// Reads what sweep S replays.
  template <int S> __device__ __forceinline__ void fetch(std::int64_t slot, saved_carries& to) const {
    if (a.saved == nullptr) return;
    for_each_index(std::make_integer_sequence<int, S>{}, [&]<int Q>(index_constant<Q>) {
      if constexpr (replays<group>(S, Q))
        for_saved<Q>([&]<int N, class Scan, class Component>(index_constant<N>, Scan, Component) {
#pragma unroll
          for (int lane = 0; lane < lanes; ++lane)
            to.value[N][lane] = lane < threads.thread.valid ? saved_at(slot, N)[lane] : saved_type(0);
        });
    });
  }
  template <int Q> __device__ __forceinline__ void restore(const saved_carries& from) {
    if (a.saved == nullptr) {  // one tile
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        copy_states<group, scans_in<group, Q>>(first_carry[lane], threads.thread.carry[lane]);
      return;
    }
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      set_identity<group, scans_in<group, Q>>(threads.thread.carry[lane]);
    for_saved<Q>([&]<int N, int S, int Component>(index_constant<N>, index_constant<S>,
                                                  index_constant<Component>) {
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        if (lane < threads.thread.valid)
          std::get<Component>(state_of<S>(threads.thread.carry[lane])) = static_cast<C>(from.value[N][lane]);
    });
  }
};

template <class K, class Arrangement>
__device__ __noinline__ void sweep_on(const typename K::arguments& a, unsigned char* shared) {
  sweeper<K, Arrangement> all(a, shared);
  all.run();
  all.threads.settle();
}

}  // namespace scandsl::cuda_detail
