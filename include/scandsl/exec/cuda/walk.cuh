#pragma once
#include <bit>

#include "scandsl/exec/cuda/sweeps.cuh"

/// The walk: a block owns some lanes and goes along their scanned axis tile by tile, the carry in registers.
/// Rows, streams, chunks (which are lanes of their own, one tile long) and programs without scans all run
/// this way; which arrangement it has says where the scanned axis lies.
///
/// What nearly all tiles need is in kernels of their own, of few registers: one_tile_kernel, for rows that
/// are no longer, and stream_kernel, in which the copy engine brings the next tile while one is computed, for
/// longer ones.
/// What they cannot do they leave, for good, to walk_on, which can do everything: a call that is not the last
/// thing a kernel does would cost it registers all along. (Small functions as load_elements and
/// offset_in_walk cost none that could be measured, where they are not called.) It goes by smaller tiles, or
/// its loops are rolled, for it takes long to compile.
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
  walker<K, Arrangement> all(a, shared);
  all.run(state);
  all.threads.settle();
}

template <class K, class Arrangement> struct walker : tile_scanner<K, Arrangement> {
  using base = tile_scanner<K, Arrangement>;
  using group = typename K::group;
  using C = typename K::compute;
  using state = walk_state<K, Arrangement::lanes>;
  using base::a, base::threads, base::runs, base::lanes;
  using tile_type = tile<K, 0, typename Arrangement::place, false>;
  static constexpr int stage_bytes = tile_type::stage_bytes;
  static constexpr bool may_leave_carries =
      Arrangement::keeps_carries && leaves_carries<K> && kept_count<group, C> > 0;
  static constexpr bool joins_once = base::template joins_once<0> && !may_leave_carries;

  unsigned char* shared;

  __device__ __forceinline__ walker(const typename K::arguments& given, unsigned char* memory)
      : base(given, memory), shared(memory) {}

  /// Everything, or what is left of it.
  __device__ __forceinline__ void run(const state* given) {
    threads.template find<true>(blockIdx.x, threads.thread);
    find_carries();
    if (given != nullptr) {
      state::copy(*given, threads.thread);
    } else {
      threads.thread.load_still();
      threads.thread.template boundary<0>();
    }
    if constexpr (sweep_count<group> > 0) {
      sweep(given != nullptr ? given->from : 0);
      base::template join_tallies<0>();
    }
    threads.thread.template boundary<sweep_count<group>>();
  }

  /// One tile is all there is of every lane.
  __device__ __forceinline__ void run_one_tile() {
    if (a.in_order) return leave_at_once();
    auto& thread = threads.thread;
    threads.template find<false>(blockIdx.x, thread);
    if constexpr (Arrangement::one_tile_leaves_carries) find_carries();
    auto now = threads.template tile_at<0>(thread, {0, static_cast<int>(thread.high)}, a.reversed[0]);
    base::wait_to_walk();
    now.load();
    base::fetch_for_later(now.of_tile);
    base::wait_for_scratch();
    thread.load_still();
    thread.template boundary<0>();
    if (!process<uses_last<group>>(now, 0, std::true_type{}))
      return leave_at_once();  // no tile has been written
    base::template join_tallies<0>();
    thread.template boundary<1>();
  }

  /// Several tiles of the same lanes.
  __device__ __forceinline__ void run_stream() {
    if (a.in_order) return leave_at_once();
    auto& thread = threads.thread;
    threads.template find<true>(blockIdx.x, thread);
    unsigned char* const stages = base::own_stages(shared, stage_bytes);
    const int length = Arrangement::tile_steps(a);
    const std::int64_t extent = range_extent();
    const auto tile_after = [&](std::int64_t steps) {
      return threads.template tile_at<0>(
          thread, stretch::after(thread.low, thread.high, steps, length, a.reversed[0]), a.reversed[0]);
    };
    tile_bringer<tile_type, Arrangement::place::can_share, false> bringer(a.shares_stages, tile_after(0));
    base::wait_to_walk();
    if (extent > 0) bringer.prefetch(tile_after(0), stages);
    __pipeline_commit();
    base::wait_for_scratch();
    pacer<paces<K, Arrangement>> pace(a.pace);
    pace.begin();
    find_carries();
    thread.load_still();
    thread.template boundary<0>();
    const auto first_element = seen_early(tile_after(0));
    int stage = 0, asked = 1;  // for how many tiles: the pace needs to know
    states<group, C> sums[runs];
#pragma unroll
    for (int run = 0; run < runs; ++run) set_identity<group, scans_in<group, 0>>(sums[run]);
#pragma unroll 1
    for (std::int64_t at = 0; at < extent; at += length) {
      const bool more = at + length < extent;
      if (more) pace.wait(asked);
      bringer.wait_for_shared(threads);
      if (more) {
        bringer.prefetch(tile_after(at + length), stages + (stage_bytes - stage));
        pace.say();
        ++asked;
      }
      __pipeline_commit();
      auto now = tile_after(at);
      __pipeline_wait_prior(1);
      bringer.load(now, stages + stage);
      pace.look();
      stage = stage_bytes - stage;
      if constexpr (joins_once) {
        base::template add_tile<0>(now, sums);
      } else if (!process<true>(now, at, at == 0, true, first_element)) {
        __pipeline_wait_prior(0);
        pace.finish(asked);
        leave(at);
        return;
      }
    }
    pace.finish(asked);
    if constexpr (joins_once) base::template join_sums<0, tile_type>(sums);
    base::template join_tallies<0>();
    thread.template boundary<1>();
  }

  /// Goes through the first `extent` steps of [low, high) in scan order, but for the first `from`, and writes
  /// what it computes from step `written_from` on.
  __device__ __forceinline__ void walk_range(std::int64_t low, std::int64_t high, std::int64_t extent,
                                             std::int64_t from, std::int64_t written_from = 0) {
    const int length = Arrangement::tile_steps(a);
#pragma unroll 1
    for (std::int64_t at = from; at < extent; at += length) {
      auto now = threads.template tile_at<0, true>(
          threads.thread, stretch::after(low, high, at, length, a.reversed[0]), a.reversed[0]);
      now.load();
      const bool writes = at >= written_from;
      // Without frames there is nothing to be had by trying what may not fit.
      if constexpr (can_be_framed<K, 0>)
        if (process<true>(now, at, at == 0, writes)) continue;
      states<group, C> before[runs];
      if constexpr (sweep_has_scans<group, 0>) base::template scan_in_order<0, false>(now, before);
      leave_carries(at, before);
      if (writes) now.template finish<0, false>(before, threads.thread.carry);
    }
  }

private:
  __device__ __forceinline__ void leave_at_once() {
    base::wait_for_all_scratch();
    threads.settle();
    walk_on<K, typename Arrangement::template slow_of<K>>(a, shared, nullptr);
  }
  __device__ __forceinline__ void leave(std::int64_t from) {
    state rest;
    state::copy(threads.thread, rest);
    rest.from = from;
    threads.meet();  // the exchange is another's now
    walk_on<K, typename Arrangement::template slow_of<K>>(a, shared, &rest);
  }
  /// Chunks that are lanes of their own are one range each; a lane whose chunk is shorter has its last tiles
  /// empty.
  __device__ __forceinline__ std::int64_t range_extent() const {
    return a.chunk_dimension >= 0 ? a.chunk : threads.thread.high - threads.thread.low;
  }

  /// Walks the block's range but for the first `from` steps, restarting where chunks end.
  __device__ __forceinline__ void sweep(std::int64_t from) {
    std::int64_t low = threads.thread.low, high = threads.thread.high, extent = range_extent(), left = 1;
    const std::int64_t end = high;
    states<group, C> seed[lanes];
    if (a.restarts) {
      left = (high - low + a.chunk - 1) / a.chunk;
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) seed[lane] = threads.thread.carry[lane];
      if (a.reversed[0]) low += (left - 1) * a.chunk;
    }
#pragma unroll 1
    for (; left > 0; --left) {
      if (a.restarts) {
        high = low + a.chunk < end ? low + a.chunk : end;
        extent = high - low;
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
          copy_states<group, scans_in<group, 0>>(seed[lane], threads.thread.carry[lane]);
      }
      walk_range(low, high, extent, from);
      low += a.reversed[0] ? -a.chunk : a.chunk;
    }
  }

  using kept_type = typename scratch_type_of<C>::type;
  kept_type* carries = nullptr;  ///< of the lanes' first one before step 0, where that is wanted

  __device__ __forceinline__ void find_carries() {
    if constexpr (may_leave_carries)
      if (a.carries.data != nullptr)
        carries = static_cast<kept_type*>(a.carries.data) + numbered_lane(a, threads.thread.unit);
  }
  /// Leaves the states before the steps of a tile of which that is wanted; the tile begins `at` steps into
  /// the lanes. (Of a strip all runs begin with the same step, and are its lanes; of a row each one has its
  /// own.)
  __device__ __forceinline__ void leave_carries(std::int64_t at,
                                                const states<group, C> (&before)[runs]) const {
    if constexpr (may_leave_carries) {
      if (carries == nullptr || threads.thread.valid == 0) return;
      // Where a warp's part of a row is whole intervals, one of its threads knows all of them, and which runs
      // they begin with.
      constexpr int apart = Arrangement::place::run_apart, interval = Arrangement::carry_interval;
      constexpr bool known = runs / lanes * apart % interval == 0;
      const std::int64_t first = at + threads.first_step();
      const int rest = static_cast<int>(first) & (interval - 1);
      if ((rest & (apart - 1)) != 0) return;
      const std::int64_t left = a.steps - first;
#pragma unroll
      for (int run = 0; run < runs; run += lanes) {
        const int further = run / lanes * apart;
        if ((known ? further : rest + further) % interval != 0 || further >= left) continue;
        kept_type* const to =
            carries + ((first + further) >> std::countr_zero(static_cast<unsigned>(interval))) *
                          (kept_count<group, C> * a.carries.lanes);
        for_kept<group, C, scans_in<group, 0>>([&]<int N, int S, int Component>(index_constant<N>,
                                                                                index_constant<S>,
                                                                                index_constant<Component>) {
          kept_type kept[lanes];
#pragma unroll
          for (int lane = 0; lane < lanes; ++lane)
            kept[lane] = kept_of<group, S, Component>(before[run + lane]);
          store_lanes(to + N * a.carries.lanes, kept);
        });
      }
    }
  }
  __device__ __forceinline__ void store_lanes(kept_type* to, const kept_type (&kept)[lanes]) const {
    constexpr int side = 16 / static_cast<int>(sizeof(kept_type));
    if constexpr (lanes % side == 0)
      if (a.carries.inner_stride == 1 && threads.thread.valid == lanes &&
          (reinterpret_cast<std::uintptr_t>(to) & 15) == 0) {
#pragma unroll
        for (int lane = 0; lane < lanes; lane += side) {
          packed<kept_type, side> some;
#pragma unroll
          for (int i = 0; i < side; ++i) some.set_bits(i, kept[lane + i]);
          some.store(to + lane);
        }
        return;
      }
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      if (lane < threads.thread.valid) to[lane * a.carries.inner_stride] = kept[lane];
  }

  /// What a frame is chosen by in a row's first tile: on its way while that is.
  template <class Tile> __device__ __forceinline__ auto seen_early(const Tile& first) const {
    if constexpr (base::template looks_early<0>)
      return base::template see_first<0>(first);
    else
      return nullptr;
  }

  /// Computes a tile, which begins `at` steps into the lanes. False, with nothing written and the carry worth
  /// what it was, for the whole block, where the tile ends early (in a row: within a vector) and the scans'
  /// last values are wanted, its sums hold no frame, or a stretch alone overflows. Total: the carry after the
  /// tile is wanted.
  template <bool Total, class Tile, class IsFirst, class Seen = std::nullptr_t>
  __device__ __forceinline__ bool process(Tile& now, std::int64_t at, IsFirst first, bool writes = true,
                                          const Seen& seen = nullptr) {
    if (Tile::has_parts && uses_last<group> && !only_reduces<group, 0> && a.last_wanted &&
        now.of_tile.steps < Arrangement::tile_steps(a))
      return false;
    states<group, C> before[runs];
    if (!base::template scan_seen<0, Total, false>(now, before, first, seen)) return false;
    if constexpr (Arrangement::one_tile_leaves_carries || !std::is_same_v<IsFirst, std::true_type>)
      leave_carries(at, before);
    if (writes) now.template finish<0, true, false, sweep_has_scans<group, 0>>(before, threads.thread.carry);
    return true;
  }
};

template <class K, class Arrangement>
using runner =
    std::conditional_t<(sweep_count<typename K::group> > 1), sweeper<K, Arrangement>, walker<K, Arrangement>>;

/// Where this launch does nothing but join pieces of lanes: does that.
template <class K, class Arrangement>
__device__ __forceinline__ bool joins_pieces(const typename K::arguments& a, unsigned char* shared) {
  if constexpr (cuts_sweeps<typename K::group> && !Arrangement::clustered) {
    using robust = typename K::robust;
    if (a.pieces.joins) join_pieces<robust, typename Arrangement::template joining<robust>>(a, shared);
    return a.pieces.joins;
  }
  return false;
}

/// Everything, in either arrangement: one kernel, for it does nothing but call.
template <class K, class Strip, class Row>
__global__ void __launch_bounds__(larger(Strip::threads, Row::threads), Row::blocks_resident)
    walk_kernel(const __grid_constant__ typename K::arguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  const auto walk = [&]<class Arrangement>(std::type_identity<Arrangement>) {
    if (joins_pieces<K, Arrangement>(a, shared)) return;
    if constexpr (sweep_count<typename K::group> > 1)
      sweep_on<K, Arrangement>(a, shared);
    else
      walk_on<K, Arrangement>(a, shared, nullptr);
  };
  if (a.along_rows)
    walk(std::type_identity<Row>{});
  else
    walk(std::type_identity<Strip>{});
}
/// Strips of one tile are here too where programs have several sweeps, or log-sums in frames: they take as
/// many registers as longer ones, and what is seldom run, which is compiled with each kernel that calls it,
/// is most of a kernel's code.
template <class K, class Arrangement>
__global__ void __launch_bounds__(Arrangement::threads, Arrangement::blocks_resident)
    stream_kernel(const __grid_constant__ typename K::arguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  if (joins_pieces<K, Arrangement>(a, shared)) return;
  runner<K, Arrangement> all(a, shared);
  if (Arrangement::streams_one_tile && a.one_tile)
    all.run_one_tile();
  else
    all.run_stream();
}
template <class K, class Arrangement>
__global__ void
__launch_bounds__(Arrangement::threads,
                  Arrangement::blocks_resident_of_one_tile(runner<K, Arrangement>::stage_bytes /
                                                           Arrangement::stage_threads))
    one_tile_kernel(const __grid_constant__ typename K::arguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  runner<K, Arrangement> all(a, shared);
  all.run_one_tile();
  all.threads.settle();
}

}  // namespace scandsl::cuda_detail
