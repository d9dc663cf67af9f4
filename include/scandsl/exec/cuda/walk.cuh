#pragma once
#include "scandsl/exec/cuda/row.cuh"
#include "scandsl/exec/cuda/strip.cuh"

/// The walk: a block owns some lanes and goes along their scanned axis tile by tile, the carry in registers.
/// Rows, streams, chunks (which are lanes of their own, one tile long) and programs without scans all run
/// this way; which arrangement it has says where the scanned axis lies.
namespace scandsl::cuda_detail {

/// Shared memory for what a block holds of one tile, of any sweep.
template <class K, class Arrangement>
inline constexpr int walk_stage_bytes = [] {
  int most = 0;
  for_each_index(std::make_integer_sequence<int, sweep_count<typename K::group>>{}, [&]<int S>(index_constant<S>) {
    most = std::max(most, tile<K, S, typename Arrangement::place>::stage_bytes);
  });
  return most;
}();

template <class K, class Arrangement> struct walker;

/// walker::in_order as a function of its own, out of the way of the kernel's registers.
template <class K, class Arrangement, int S>
__device__ __noinline__ typename walker<K, Arrangement>::carried take_in_order(
    const typename K::arguments& a, unsigned char* shared, std::int64_t job, std::int64_t low, std::int64_t high,
    std::int64_t from, typename walker<K, Arrangement>::carried given) {
  return walker<K, Arrangement>(a, shared).template in_order<S>(job, low, high, from, given);
}

template <class K, class Arrangement> struct walker {
  using group = typename K::group;
  using C = typename K::compute;
  static constexpr int runs = Arrangement::runs, lanes = Arrangement::lanes;

  const typename K::arguments& a;
  Arrangement threads;
  unsigned char* stages;  ///< two

  __device__ __forceinline__ walker(const typename K::arguments& given, unsigned char* shared)
      : a(given),
        threads(given, reinterpret_cast<C*>(shared + (given.staged ? 2 * walk_stage_bytes<K, Arrangement> : 0))),
        stages(shared) {}

  __device__ __forceinline__ void run() {
    run_sweeps();
  }

  /// One tile is all there is of every lane.
  __device__ __forceinline__ void run_one_tile() {
    threads.find(job, threads.thread);
    const auto& thread = threads.thread;
    cursor c{thread.low, thread.high, 0, 0, 1, false};
    auto now = tile_of<0>(thread, c);
    now.load();
    threads.thread.load_still();
    threads.thread.template boundary<0>();
    process_at<0>(now, c);
    threads.thread.template boundary<1>();
  }

private:
  const std::int64_t job = blockIdx.x;  ///< a block of lanes, and a sequence

  /// Where a block is in its range: which tile of which chunk.
  struct cursor {
    std::int64_t low, high;     ///< of the chunk; a lane whose chunk is shorter has its last tiles empty
    std::int64_t extent, from;  ///< steps to walk there, and steps before the tile
    std::int64_t chunks;        ///< this one and those to come; 0: nothing is left
    bool restarts;              ///< begins a chunk after the first
  };
  __device__ __forceinline__ cursor begin_range(const typename Arrangement::lane_state& thread, bool reversed) const {
    cursor c{thread.low, thread.high, a.chunk_dimension >= 0 ? a.chunk : thread.high - thread.low, 0, 1, false};
    if (a.restarts) {
      c.chunks = (c.high - c.low + a.chunk - 1) / a.chunk;
      if (reversed)
        c.low += (c.chunks - 1) * a.chunk;
      else if (c.low + a.chunk < c.high)
        c.high = c.low + a.chunk;
      c.extent = c.high - c.low;
    }
    if (c.extent <= 0) c.chunks = 0;
    return c;
  }
  __device__ __forceinline__ cursor next_tile(cursor c, bool reversed) const {
    c.from += Arrangement::tile_steps(a.lane_threads);
    c.restarts = false;
    if (c.from < c.extent) return c;
    --c.chunks;
    if (a.restarts && c.chunks > 0) {
      c.low += reversed ? -a.chunk : a.chunk;
      c.high = c.low + a.chunk < threads.thread.high ? c.low + a.chunk : threads.thread.high;
      c.extent = c.high - c.low;
      c.from = 0;
      c.restarts = true;
    }
    return c;
  }
  template <int S>
  __device__ __forceinline__ auto tile_of(const typename Arrangement::lane_state& thread, const cursor& c) const {
    return threads.template tile_at<S>(thread, c.low, c.high, c.from, a.reversed[S]);
  }
  template <int S>
  __device__ __forceinline__ void restart(const cursor& c, const states<group, C> (&seed)[lanes]) {
    if (!c.restarts) return;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      copy_states<group, scans_in<group, S>>(seed[lane], threads.thread.carry[lane]);
  }
  template <int S, class Tile> __device__ __forceinline__ void process_at(Tile& now, const cursor& c) {
    process<S>(now, c, c.from + Arrangement::tile_steps(a.lane_threads) > c.high - c.low);
  }

  static constexpr int stage_bytes = walk_stage_bytes<K, Arrangement>;

  /// The sweeps over the lanes of one job. While a tile is computed, the copy engine brings the next one.
  __device__ __forceinline__ void run_sweeps() {
    threads.find(job, threads.thread);
    threads.thread.load_still();
    for_each_index(std::make_integer_sequence<int, sweep_count<group>>{}, [&]<int S>(index_constant<S>) {
      if constexpr (size_of_list<scratch_nodes<group>> > 0)
        wait_for_all<Arrangement::threads>();  // other threads wrote what this one will read
      threads.thread.template boundary<S>();
      states<group, C> seed[lanes];
      if (a.restarts)
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane) seed[lane] = threads.thread.carry[lane];
      cursor c = begin_range(threads.thread, a.reversed[S]);
      int stage = 0;
      if (a.staged && c.chunks > 0) {
        tile_of<S>(threads.thread, c).prefetch(stages);
        __pipeline_commit();
      }
#pragma unroll 1
      while (c.chunks > 0) {
        const cursor next = next_tile(c, a.reversed[S]);
        restart<S>(c, seed);
        auto now = tile_of<S>(threads.thread, c);
        if (a.staged) {
          if (next.chunks > 0) tile_of<S>(threads.thread, next).prefetch(stages + (stage_bytes - stage));
          __pipeline_commit();
          __pipeline_wait_prior(1);
          now.load(stages + stage);
          stage = stage_bytes - stage;
        } else {
          now.load();
        }
        process_at<S>(now, c);
        c = next;
      }
    });
    threads.thread.template boundary<sweep_count<group>>();
  }

  template <int S, class Tile>
  __device__ __forceinline__ void process(Tile& now, const cursor& c, bool ragged) {
    states<group, C> before[runs];
    auto u = Tile::sweep_stage::evaluate_uniforms(a.parameters);
    if constexpr (!sweep_has_scans<group, S>) {
      now.template finish<false>(u, before);
    } else {
      constexpr bool framed = can_be_framed<K, S>;
      bool taken = !(uses_last<group> && ragged);
      if constexpr (framed)
        taken = taken && scan_in_frame<S>(now, before, c);
      else
        taken = taken && scan<S>(now, before);
      if (taken) {
        now.template finish<framed>(u, before);
      } else {
        const carried after = take_in_order<K, Arrangement, S>(
            a, stages, job, c.low, c.high, c.from,
            carried{threads.thread.carry, threads.thread.kept, threads.thread.still});
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane) threads.thread.carry[lane] = after.carry[lane];
      }
    }
  }

  /// Finds what precedes each run of the tile, and moves the carry past it. False, with the carry as it was,
  /// for the whole block, where a stretch alone overflows.
  template <int S, class Tile>
  __device__ __forceinline__ bool scan(Tile& now, states<group, C> (&before)[runs]) {
    auto u = Tile::fold_stage::evaluate_uniforms(a.parameters);
    states<group, C> start[lanes];
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) start[lane] = threads.thread.carry[lane];
#pragma unroll
    for (int run = 0; run < runs; ++run) before[run] = start[Tile::lane_of(run)];
    bool fits = true;
    for_each_index(std::make_integer_sequence<int, rounds_of<group, S>>{},
                   [&]<int Round>(index_constant<Round>) {
                     using here = scans_in<group, S, Round>;
                     if (!fits) return;
                     states<group, C> local[runs], preceding[runs], total[lanes];
#pragma unroll
                     for (int run = 0; run < runs; ++run) {
                       local[run] = before[run];
                       set_identity<group, here>(local[run]);
                       now.template fold<Round, false, false>(u, run, local[run]);
                     }
                     fits = !threads.template join<here, false>(local, preceding, total);
                     if (fits) pass_on<Tile, here, false>(preceding, total, before);
                   });
    if (rounds_of<group, S> > 1 && !fits)
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) threads.thread.carry[lane] = start[lane];
    return fits;
  }

public:
  /// What a tile needs beside its elements.
  struct carried {
    states<group, C> carry[lanes];
    C kept[Arrangement::lane_state::kept_slots][lanes];
    C still[Arrangement::lane_state::still_slots][lanes];

    template <class Carry, class Kept, class Still>
    __device__ __forceinline__ carried(const Carry& of_lanes, const Kept& kept_values, const Still& still_values) {
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) {
        carry[lane] = of_lanes[lane];
#pragma unroll
        for (int k = 0; k < Arrangement::lane_state::kept_slots; ++k) kept[k][lane] = kept_values[k][lane];
#pragma unroll
        for (int k = 0; k < Arrangement::lane_state::still_slots; ++k) still[k][lane] = still_values[k][lane];
      }
    }
  };

  /// A tile that may end early, whose sums hold no frame, or of which a stretch alone overflows though the scan
  /// does not: with every scan's own operator, if need be in turns.
  template <int S>
  __device__ __forceinline__ carried in_order(std::int64_t of_job, std::int64_t low, std::int64_t high,
                                              std::int64_t from, const carried& given) {
    auto& thread = threads.thread;
    threads.find(of_job, thread);
    states<group, C> before[runs];
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      thread.carry[lane] = given.carry[lane];
#pragma unroll
      for (int k = 0; k < Arrangement::lane_state::kept_slots; ++k) thread.kept[k][lane] = given.kept[k][lane];
#pragma unroll
      for (int k = 0; k < Arrangement::lane_state::still_slots; ++k) thread.still[k][lane] = given.still[k][lane];
      for_each_index(sequence_of<scans_in<group, S>>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>) {  // an empty sum in some frame is no running maximum
          auto& carry = state_of<Scan>(thread.carry[lane]);
          if (carry[1] == C(0)) carry[0] = static_cast<C>(identity_of<group, Scan, 0>);
        }
      });
    }
    auto now = threads.template tile_at<S>(thread, low, high, from, a.reversed[S]);
    using tile_type = decltype(now);
    now.load();
    auto folding = tile_type::fold_stage::evaluate_uniforms(a.parameters);
#pragma unroll
    for (int run = 0; run < runs; ++run) before[run] = thread.carry[tile_type::lane_of(run)];
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
                       } else if (threads.template join<here, false>(local, preceding, total)) {
                         threads.template begin_turns<here>();
                       } else {
                         pass_on<tile_type, here, false>(preceding, total, before);
                         again = false;
                       }
                     }
                   });
    auto u = tile_type::sweep_stage::evaluate_uniforms(a.parameters);
    now.template finish<false>(u, before);
    wait_for_all<Arrangement::threads>();  // the exchange is the caller's again
    return carried{thread.carry, thread.kept, thread.still};
  }

private:
  /// The same with the m of every log-sum held fixed: the elements' exponentials are added as they are. False
  /// where that is not exact all over the tile, for the whole block; the carry is then worth what it was.
  template <int S, class Tile>
  __device__ __forceinline__ bool scan_in_frame(Tile& now, states<group, C> (&before)[runs], const cursor& c) {
    using here = scans_in<group, S, 0>;
    const std::int64_t low = c.low, high = c.high;
    const bool first = c.from == 0;
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
      const bool seen = first && high > low;
      look_at<K, S>(threads.thread, position, seen, u, [&]<int Scan>(index_constant<Scan>, int lane, C element) {
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
    if (threads.template join<here, true>(local, preceding, total, doubtful)) return false;
    pass_on<Tile, here, true>(preceding, total, before);
    return true;
  }

  /// `before` becomes the carry and what precedes each run in the tile; the carry moves past the tile.
  template <class Tile, class Holder, bool Framed>
  __device__ __forceinline__ void pass_on(states<group, C> (&preceding)[runs], states<group, C> (&total)[lanes],
                                          states<group, C> (&before)[runs]) {
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      combine_onto<group, Holder, Framed>(threads.thread.carry[Tile::lane_of(run)], preceding[run]);
      copy_states<group, Holder>(preceding[run], before[run]);
    }
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      combine_onto<group, Holder, Framed>(threads.thread.carry[lane], total[lane]);
      copy_states<group, Holder>(total[lane], threads.thread.carry[lane]);
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
  walker<K, Arrangement>(a, shared).run();
}

template <class K, class Arrangement>
__global__ void __launch_bounds__(Arrangement::threads, Arrangement::blocks_resident_of_one_tile)
    one_tile_kernel(const __grid_constant__ typename K::arguments a) {
  extern __shared__ __align__(16) unsigned char shared[];
  walker<K, Arrangement>(a, shared).run_one_tile();
}

}  // namespace scandsl::cuda_detail
