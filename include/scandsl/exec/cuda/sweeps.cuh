#pragma once
#include "scandsl/exec/cuda/pace.cuh"
#include "scandsl/exec/cuda/sweep_pieces.cuh"

/// Programs of several sweeps: a gradient, whose second sweep goes back over what the first went along; a
/// softmax, which is a reduction first. A block owns some lanes, as in the walk.
///
/// What a sweep uses of an earlier one is not stored step by step. It is computed again where it is used, in
/// the registers that hold the tile, from the carry with which the earlier sweep came to the tile:
///
///     sweep 0 along     |--tile 0-->c1|--tile 1-->c2|--tile 2-->|      writes c1, c2
///     sweep 1 back      |<--tile 0----|<--tile 1----|<--tile 2--|      reads c1, c2; computes both sweeps
///
/// Where one tile is all there is, its elements are read once and nothing is saved. Nor does sweep 0 go along
/// lanes whose carries the scan itself has left, of which this is the gradient (a.carries).
///
/// Few lanes are cut into pieces (sweep_pieces.cuh).
namespace scandsl::cuda_detail {

/// All sweeps over the block's lanes, whatever the data, the access and the restarts; of rows that share what
/// is computed for them, from `first_row` on.
template <class K, class Arrangement>
__device__ __noinline__ void sweep_on(const typename K::arguments& a, unsigned char* shared,
                                      int first_row = 0);

template <class K, class Arrangement> struct sweeper : piece_scanner<K, Arrangement> {
  using base = piece_scanner<K, Arrangement>;
  using group = typename K::group;
  using C = typename K::compute;
  using base::a, base::threads, base::runs, base::lanes, base::in_pieces, base::takes_pieces,
      base::streams_pieces;
  using tiles_to_do = typename base::tiles_to_do;
  using sweep_numbers = std::make_integer_sequence<int, sweep_count<group>>;
  /// What carries are kept as.
  using saved_type = typename base::saved_type;
  static constexpr int saved_numbers = saved_count<group, C>;
  /// A stage holds what is read of a tile, and behind that each thread's carries.
  static constexpr int carries_in_stage = [] {
    int most = 0;
    for_each_index(sweep_numbers{}, [&]<int S>(index_constant<S>) {
      most = larger(most, tile<K, S, typename Arrangement::place, false>::stage_bytes);
    });
    return most;
  }();
  static constexpr int stage_bytes = carries_in_stage + saved_numbers * lanes * Arrangement::stage_threads *
                                                            static_cast<int>(sizeof(saved_type));

  /// Whether the carry behind a tile is wanted though no later tile needs it.
  template <int S> static constexpr bool total_wanted = uses_last<group, S> || scales_others<group>(S);

  unsigned char* shared;

  __device__ __forceinline__ sweeper(const typename K::arguments& given, unsigned char* memory)
      : base(given, memory), shared(memory) {}

  /// One tile is all there is of every lane.
  __device__ __forceinline__ void run_one_tile() {
    if (a.in_order) return leave();
    auto& thread = threads.thread;
    threads.template find<false>(blockIdx.x, thread);
    base::wait_to_walk();
    auto now =
        threads.template tile_at<all_sweeps>(thread, {0, static_cast<int>(thread.high)}, a.reversed[0]);
    if constexpr (Arrangement::in_stage) {
      now.prefetch(first_stage());
      __pipeline_commit();
    } else {
      now.load();
    }
    base::fetch_for_later(now.of_tile);
    base::wait_for_scratch();
    thread.load_still();
    if constexpr (decltype(now)::keeps_shared) {
      thread.template boundary<0>();
      now.share();
#pragma unroll 1
      for (int row = 0;;) {
        const auto held = now.loads;  // the next row's are on their way while this one is computed
        if (row + 1 < a.repeats) {
          thread.go_on(1);
          now.load_others();
          thread.go_on(-1);
        }
        const auto coming = now.loads;
        now.loads = held;
        if (!process(now)) return leave(row);
        if (++row >= a.repeats) return;
        thread.go_on(1);
        now.loads = coming;
      }
    } else if (!process(now)) {
      leave();
    }
  }
  template <class Tile> __device__ __forceinline__ bool process(Tile& now) {
    states<group, C> before[runs];
    // On its way while what is once a row is found.
    const auto first = looked_at_early(now);
    return sweep_tile<0>(now, before, first);
  }
  /// Sweeps from S on, one after the other: where one does not fit a thread leaves at once.
  template <int S, class Tile, class First>
  __device__ __forceinline__ bool sweep_tile(Tile& now, states<group, C> (&before)[runs],
                                             const First& first) {
    auto& thread = threads.thread;
    thread.template boundary<S>();
    if constexpr (S == sweep_count<group>) {
      return true;
    } else {
      if constexpr (S == 0) arrive(now);
      const bool fits = with_heading<group, S>(a, [&]<bool Back>(std::bool_constant<Back>) {
        if (!base::template scan_seen<S, total_wanted<S>, Back>(now, before, std::true_type{}, first))
          return false;
        now.template finish<S, true, Back>(before, thread.carry);
        base::template join_tallies<S>();
        return true;
      });
      if (!fits) return false;
      return sweep_tile<S + 1>(now, before, nullptr);
    }
  }

  template <class Tile> __device__ __forceinline__ auto looked_at_early(const Tile& now) const {
    if constexpr (base::template looks_early<0>)
      return base::template look_at_first<0>(now, true);
    else
      return nullptr;
  }
  template <class Tile> static __device__ __forceinline__ void arrive(Tile& now) {
    if constexpr (Arrangement::in_stage) now.arrive();
  }

  /// Several tiles of the same lanes.
  __device__ __forceinline__ void run_stream() {
    if (a.in_order) return leave();
    threads.template find<true>(base::find_piece(), threads.thread);
    base::wait_for_all_scratch();
    threads.thread.load_still();
    find_saved();
    const stretch_of_lanes range = whole();
    bool fits = true;
    for_each_index(sweep_numbers{}, [&]<int S>(index_constant<S>) {
      if (!fits) return;
      begin_turn<S>();
      if (!base::template reaches<S>() || (S == 0 && carries_are_there())) return;
      with_heading<group, S>(
          a, [&]<bool Back>(std::bool_constant<Back>) { fits = stream_turn<S, Back>(range); });
      if (fits) base::template finish_tallies<S>();
    });
    if (fits) {
      begin_turn<sweep_count<group>>();
    } else {
      threads.meet();  // the exchange is another's now
      leave();
    }
  }

  __device__ __forceinline__ void run(int first_row) {
    threads.template find<true>(base::find_piece(), threads.thread);
    threads.thread.load_still();
    find_saved();
    if constexpr (size_of_list<shared_nodes<group>> > 0) {
      threads.thread.go_on(first_row);
#pragma unroll 1
      for (int row = first_row; row < a.repeats; ++row, threads.thread.go_on(1)) all_sweeps_in_order();
    } else {
      all_sweeps_in_order();
    }
  }

private:
  __device__ __forceinline__ unsigned char* first_stage() const {
    return base::own_stages(shared, stage_bytes);
  }
  __device__ __forceinline__ void all_sweeps_in_order() {
    for_each_index(sweep_numbers{}, [&]<int S>(index_constant<S>) {
      begin_turn<S>();
      if (!base::template reaches<S>() || (S == 0 && carries_are_there())) return;
      with_heading<group, S>(a, [&]<bool Back>(std::bool_constant<Back>) { sweep<S, Back>(); });
      base::template finish_tallies<S>();
    });
    begin_turn<sweep_count<group>>();
  }
  /// What comes once a lane before sweep S, or (of the number of sweeps) behind the last one, if this launch
  /// reaches it; where lanes are in pieces, one of them writes it.
  template <int S> __device__ __forceinline__ void begin_turn() {
    if (!base::template reaches<S>()) return;
    const bool writes = threads.thread.writes;
    threads.thread.writes = writes && base::template writes_boundary<S>();
    if constexpr (S < sweep_count<group>)
      begin_sweep<S>();
    else
      threads.thread.template boundary<S>();
    threads.thread.writes = writes;
  }
  /// Leaves everything, anew, to what can do it whatever the data.
  __device__ __forceinline__ void leave(int first_row = 0) {
    base::wait_for_all_scratch();
    // No block goes on before all have read what was said.
    if constexpr (Arrangement::clustered) threads.meet();
    using robust = typename K::robust;
    sweep_on<robust, typename Arrangement::template slow_of<robust>>(a, shared, first_row);
  }

  /// A part of the lanes through which sweeps go without restarting.
  struct stretch_of_lanes {
    std::int64_t low, high, tiles, first_slot;
  };
  __device__ __forceinline__ int length() const { return Arrangement::tile_steps(a); }
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
  /// Where the tile that begins `from` steps into a stretch lies, in the order of the first sweep.
  __device__ __forceinline__ stretch place_of(const stretch_of_lanes& range, std::int64_t from) const {
    return stretch::after(range.low, range.high, from, length(), a.reversed[0]);
  }
  template <int S, bool Anywhere = false>
  __device__ __forceinline__ auto tile_on(const stretch& where) const {
    return threads.template tile_at<S, Anywhere>(threads.thread, where, a.reversed[0]);
  }
  /// What is kept of a tile's place while that is on its way; tile_on makes the tile of it again.
  template <int S> __device__ __forceinline__ auto kept_place(const stretch& where) const {
    if constexpr (Arrangement::holds_places) {
      const typename Arrangement::place place = tile_on<S>(where);
      return place;
    } else {
      return where;
    }
  }
  template <int S> __device__ __forceinline__ auto tile_on(const typename Arrangement::place& where) const {
    return tile<K, S, typename Arrangement::place, false>(where);
  }
  template <int S> __device__ __forceinline__ void begin_sweep() {
    threads.thread.template boundary<S>();
    if constexpr (is_replayed<group>(S))
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        copy_states<group, scans_in<group, S>>(threads.thread.carry[lane], first_carry[lane]);
    if constexpr (replays_any<group>(S)) threads.meet();  // others saved carries
  }

  /// Sweep S, or what this launch has of it for the block's piece.
  template <int S, bool Back> __device__ __forceinline__ bool stream_turn(const stretch_of_lanes& range) {
    tiles_to_do to_do{0, static_cast<int>(range.tiles), true};
    if constexpr (streams_pieces)
      if (in_pieces()) {
        to_do = base::template own_tiles<S>(to_do.count);
        if (base::template folds_now<S>()) {
          base::template set_no_carry<S>();
        } else if (base::template walks_now<S>()) {
          if constexpr (sweep_has_scans<group, S>)
            if (!base::template begin_piece<S, Back>()) return false;
        } else {
          to_do.count = 0;
        }
      }
    if (!stream_sweep<S, Back>(range, to_do)) return false;
    if constexpr (streams_pieces && sweep_has_scans<group, S>)
      if (in_pieces()) {
        if (base::template folds_now<S>()) {
          base::template publish<S, Back>();
        } else if constexpr (uses_last<group, S>) {
          // (Where there are tallies, which the carry now has, what comes behind is another launch's.)
          if (has_tallies<group, S> && base::template walks_now<S>()) return true;
          // What the sweep began with, found once more: held meanwhile, it costs registers. It may come from
          // last values of sweeps that were gone through again.
          bool known = true;
          for_each_index(std::make_integer_sequence<int, S>{}, [&]<int Q>(index_constant<Q>) {
            if constexpr (replays<group>(S, Q) && uses_last<group, Q>) {
              base::template set_carry<Q>(first_carry);
              known = base::template add_pieces<Q>(a.pieces.count) && known;
            }
          });
          if (!known) return false;
          const bool writes = threads.thread.writes;
          threads.thread.writes = false;
          threads.thread.template boundary<S>();
          threads.thread.writes = writes;
          return base::template add_pieces<S>(a.pieces.count);
        }
      }
    return true;
  }
  template <int S, bool Back>
  __device__ __forceinline__ bool stream_sweep(const stretch_of_lanes& range, const tiles_to_do& to_do) {
    // (Asked of what the kernel is told at each tile: what is held from tile to tile takes registers, of
    // which gradients along strips have none left but for the places of two operands.)
    const auto writes = [&] { return !streams_pieces || !base::template folds_piece<S>(); };
    unsigned char* const stages = first_stage();
    const int begin = Back ? to_do.first + to_do.count - 1 : to_do.first,
              behind = Back ? to_do.first - 1 : to_do.first + to_do.count, step = Back ? -1 : 1;
    const std::int64_t saved_step = Back ? -saved_of_tile : saved_of_tile;
    auto coming = kept_place<S>(place_of(range, std::int64_t{begin} * length()));
    saved_type *saved_here = saved_at(range.first_slot + begin), *saved_coming = saved_here;
    tile_bringer<tile<K, S, typename Arrangement::place, false>, Arrangement::place::can_share, Back,
                 Arrangement::holds_places>
        bringer(a.shares_stages, tile_on<S>(coming), length());
    if (bringer.shares()) threads.meet();
    if (begin != behind) {
      bringer.prefetch(tile_on<S>(coming), stages);
      prefetch_carries<S>(saved_coming, stages);
    }
    __pipeline_commit();
    // (Of the last sweep: strips are paced where carries are there, with which nothing goes before it.)
    pacer<paces<K, Arrangement> && S + 1 == sweep_count<group>> pace(a.pace);
    pace.begin();
    int stage = 0;
#pragma unroll 1
    for (int number = begin; number != behind; number += step) {
      const auto here = coming;
      saved_here = saved_coming;
      const bool more = number + step != behind;
      const int asked = (Back ? begin - number : number - begin) + 1;
      if (more) pace.wait(asked);
      bringer.wait_for_shared(threads);
      if (more) {
        coming = kept_place<S>(place_of(range, std::int64_t{number + step} * length()));
        bringer.prefetch(tile_on<S>(coming), stages + (stage_bytes - stage));
        saved_coming += saved_step;
        prefetch_carries<S>(saved_coming, stages + (stage_bytes - stage));
        pace.say();
      }
      __pipeline_commit();
      auto now = tile_on<S>(here);
      __pipeline_wait_prior(1);
      bringer.load(now, stages + stage);
      pace.look();
      const unsigned char* const carries = stages + stage;
      stage = stage_bytes - stage;
      states<group, C> before[runs];
      bool fits = true;
      for_each_index(std::make_integer_sequence<int, S>{}, [&]<int Q>(index_constant<Q>) {
        if constexpr (replays<group>(S, Q)) {
          if (!fits) return;
          with_heading<group, Q>(a, [&]<bool Backwards>(std::bool_constant<Backwards>) {
            const bool first = number == (Backwards ? static_cast<int>(range.tiles) - 1 : 0);
            restore<Q>([&](int n, int lane) { return *carry_in<const saved_type>(carries, n, lane); });
            fits = base::template scan_fast<Q, scales_others<group>(Q), Backwards>(now, before, first);
          });
        }
      });
      if (fits) {
        if constexpr (is_replayed<group>(S))
          if (writes()) save<S>(saved_here);
        fits = base::template scan_fast<S, true, Back>(now, before, number == begin);
      }
      if (!fits) {
        __pipeline_wait_prior(0);
        pace.finish(more ? asked + 1 : asked);
        return false;
      }
      if (writes()) now.template finish<S, true, Back>(before, threads.thread.carry);
    }
    pace.finish(to_do.count);
    return true;
  }

  /// Restarting where chunks end.
  template <int S, bool Back> __device__ __forceinline__ void sweep() {
    const stretch_of_lanes all = whole();
    states<group, C> seed[lanes];
    base::copy_carries(threads.thread.carry, seed);
    std::int64_t chunks = in_pieces() ? passes : 1, slots = 0, first_slot = all.first_slot;
    if (a.restarts) {
      chunks = (all.high - all.low + a.chunk - 1) / a.chunk;
      slots = tiles_of(a.chunk);
      if (a.offsets != nullptr) first_slot = (all.low / a.chunk + threads.thread.segment_index) * slots;
    }
#pragma unroll 1
    for (std::int64_t i = 0; i < chunks; ++i) {
      stretch_of_lanes here = all;
      tiles_to_do to_do{0, static_cast<int>(all.tiles), true};
      if (in_pieces()) {
        if constexpr (takes_pieces)
          if (!begin_pass<S, Back>(static_cast<int>(i), seed, to_do)) continue;
      } else if (a.restarts) {
        const std::int64_t number = Back != a.reversed[0] ? chunks - 1 - i : i;
        here.low = all.low + number * a.chunk;
        here.high = here.low + a.chunk < all.high ? here.low + a.chunk : all.high;
        here.tiles = tiles_of(here.high - here.low);
        to_do.count = static_cast<int>(here.tiles);
        here.first_slot = first_slot + number * slots;
        base::template set_carry<S>(seed);
      }
      walk_stretch<S, Back>(here, to_do);
      if constexpr (takes_pieces)
        if (in_pieces() && base::template folds_now<S>()) base::template publish<S, Back>();
    }
  }
  template <int S, bool Back>
  __device__ __forceinline__ void walk_stretch(const stretch_of_lanes& range, const tiles_to_do& to_do) {
#pragma unroll 1
    for (int i = 0; i < to_do.count; ++i) {
      const std::int64_t number = to_do.first + (Back ? to_do.count - 1 - i : i);
      saved_type* const saved_here = saved_at(range.first_slot + number);
      auto now = tile_on<S, true>(place_of(range, number * length()));
      now.load();
      states<group, C> before[runs];
      for_each_index(std::make_integer_sequence<int, S>{}, [&]<int Q>(index_constant<Q>) {
        if constexpr (replays<group>(S, Q))
          with_heading<group, Q>(a, [&]<bool Backwards>(std::bool_constant<Backwards>) {
            restore<Q>([&](int n, int lane) { return saved_here[n * saved_lanes + lane * saved_apart]; });
            base::template scan_in_order<Q, Backwards>(now, before);
          });
      });
      if constexpr (is_replayed<group>(S))
        if (to_do.writes) save<S>(saved_here);
      if constexpr (sweep_has_scans<group, S>) base::template scan_in_order<S, Back>(now, before);
      if (to_do.writes) now.template finish<S, false, Back>(before, threads.thread.carry);
    }
  }

  /// A sweep goes through what precedes the block's piece, its own piece, and everything, as far as that is
  /// wanted. (The first and the last only where the folds of pieces do not tell.)
  static constexpr int before_own = 0, own = 1, everything = 2, passes = 3;
  /// Says through which tiles, and sets the carry behind what precedes them. False: there is nothing to do.
  template <int S, bool Back>
  __device__ __forceinline__ bool begin_pass(int pass, const states<group, C> (&seed)[lanes],
                                             tiles_to_do& to_do) {
    const int all = to_do.count;
    const tiles_to_do mine = base::template own_tiles<S>(all);
    if (pass == own) {
      to_do = mine;
      if (!base::template folds_now<S>()) return base::template walks_now<S>();
      base::template set_no_carry<S>();
      return true;
    }
    const bool wanted = pass == everything ? uses_last<group, S> : base::template walks_now<S>();
    if (!sweep_has_scans<group, S> || base::template folds_now<S>() || !wanted) return false;
    const int end = mine.first + mine.count;
    to_do = pass == everything ? tiles_to_do{0, all, false}
            : Back             ? tiles_to_do{end, all - end, false}
                               : tiles_to_do{0, mine.first, false};
    base::template set_carry<S>(seed);
    if (base::template add_pieces<S>(pass == everything ? a.pieces.count
                                                        : base::template pieces_before<Back>()))
      return false;
    base::template set_carry<S>(seed);
    return true;
  }

  // ---- the carries with which a sweep came to its tiles

  states<group, C> first_carry[lanes];  ///< with which each sweep began
  /// Of the lanes' first one, and how far it is to the next lane, the next component and the next tile.
  saved_type* saved = nullptr;
  std::int64_t saved_apart = 1, saved_lanes = 0, saved_of_tile = 0;

  /// Whether the first sweep's carries were left by the scan whose gradient this is: such a sweep is left
  /// out.
  __device__ __forceinline__ bool carries_are_there() const {
    if constexpr (Arrangement::keeps_carries && first_is_replayed<group>)
      return a.carries.data != nullptr;
    else
      return false;
  }
  __device__ __forceinline__ void find_saved() {
    if (carries_are_there()) {
      saved = static_cast<saved_type*>(a.carries.data) + numbered_lane(a, threads.thread.unit);
      saved_apart = a.carries.inner_stride;
      saved_lanes = a.carries.lanes;
      saved_of_tile = std::int64_t{length() / Arrangement::carry_interval} * saved_numbers * saved_lanes;
    } else if (a.saved != nullptr) {
      saved = static_cast<saved_type*>(a.saved) + threads.thread.unit * lanes;
      saved_lanes = a.saved_lanes;
      saved_of_tile = saved_numbers * saved_lanes;
    }
  }
  __device__ __forceinline__ saved_type* saved_at(std::int64_t slot) const {
    return saved + slot * saved_of_tile;
  }
  template <int Q> __device__ __forceinline__ void save(saved_type* to) const {
    if (!threads.thread.writes || a.saved == nullptr) return;
    for_kept<group, C, scans_in<group, Q>>(
        [&]<int N, int S, int Component>(index_constant<N>, index_constant<S>, index_constant<Component>) {
#pragma unroll
          for (int lane = 0; lane < lanes; ++lane)
            if (lane < threads.thread.valid)
              to[N * saved_lanes + lane * saved_apart] =
                  kept_of<group, S, Component>(threads.thread.carry[lane]);
        });
  }
  /// Where a stage holds one of the thread's carries.
  template <class T, class Stage>
  __device__ __forceinline__ T* carry_in(Stage* stage, int number, int lane) const {
    return reinterpret_cast<T*>(stage + carries_in_stage) +
           (number * lanes + lane) * Arrangement::stage_threads + Arrangement::place::in_stage_threads();
  }
  /// Has the copy engine bring what sweep S replays to a stage.
  template <int S>
  __device__ __forceinline__ void prefetch_carries(const saved_type* from, unsigned char* stage) const {
    if (saved == nullptr) return;
    for_each_index(std::make_integer_sequence<int, S>{}, [&]<int Q>(index_constant<Q>) {
      if constexpr (replays<group>(S, Q))
        for_kept<group, C, scans_in<group, Q>>(
            [&]<int N, class Scan, class Component>(index_constant<N>, Scan, Component) {
#pragma unroll
              for (int lane = 0; lane < lanes; ++lane)
                if (lane < threads.thread.valid)
                  __pipeline_memcpy_async(carry_in<saved_type>(stage, N, lane),
                                          from + N * saved_lanes + lane * saved_apart, sizeof(saved_type));
            });
    });
  }
  /// Sets the carries of sweep Q to those of a tile: get(number, lane).
  template <int Q, class Get> __device__ __forceinline__ void restore(Get&& get) {
    if (saved == nullptr) {  // one tile
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        copy_states<group, scans_in<group, Q>>(first_carry[lane], threads.thread.carry[lane]);
      return;
    }
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      set_identity<group, scans_in<group, Q>>(threads.thread.carry[lane]);
    for_kept<group, C, scans_in<group, Q>>(
        [&]<int N, int S, int Component>(index_constant<N>, index_constant<S>, index_constant<Component>) {
#pragma unroll
          for (int lane = 0; lane < lanes; ++lane)
            if (lane < threads.thread.valid)
              restore_kept<group, S, Component>(threads.thread.carry[lane], get(N, lane));
        });
  }
};

template <class K, class Arrangement>
__device__ __noinline__ void sweep_on(const typename K::arguments& a, unsigned char* shared, int first_row) {
  sweeper<K, Arrangement> all(a, shared);
  all.run(first_row);
  all.threads.settle();
}

}  // namespace scandsl::cuda_detail
