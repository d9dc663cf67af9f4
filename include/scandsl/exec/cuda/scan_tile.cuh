#pragma once
#include "scandsl/exec/cuda/row.cuh"
#include "scandsl/exec/cuda/strip.cuh"

/// One sweep's scans over one tile: every thread folds its runs, the threads join, and each run learns what
/// precedes it. Three ways: in a frame, with plain sums of exponentials; with the scans' own operators; and,
/// where a stretch alone would overflow, in turns.
namespace scandsl::cuda_detail {

/// Whether the carry's m serves for another tile: its sum is neither small nor large.
template <class C> __device__ __forceinline__ bool holds_frame(const std::array<C, 2>& carry) {
  const float m = static_cast<float>(carry[0]), sum = static_cast<float>(carry[1]);
  return sum >= 0.5F && sum < largest_sum<C> * 0x1p-10F && m > -1e30F;
}
/// Chooses m for a tile, from the carry, or where that is empty and it is the first tile, from the tile's
/// first element; and restates the carry in it. False where that is not finite.
template <class C>
__device__ __forceinline__ bool set_frame(std::array<C, 2>& carry, std::type_identity_t<C> element,
                                          bool first) {
  auto& [m, s] = carry;
  // (Of an empty carry without a logarithm: at a row's start a compiler knows that it is empty.)
  const float value = s == C(0) ? -INFINITY : static_cast<float>(m + arithmetic<C>::log(s));
  const bool carries = value > -1e30F && value < 1e30F;  // neither infinite nor NaN
  const float wanted = !carries && first && value == -INFINITY ? static_cast<float>(element) : value;
  const float chosen = rintf(4.0F * wanted) * 0.25F;
  const bool finite = chosen > -1e30F && chosen < 1e30F;
  const C restated = carries ? s * arithmetic<C>::exp(m - C(chosen)) : C(0);
  s = finite ? restated : s;
  m = finite ? C(chosen) : m;
  return finite;
}

/// Whether blocks of one tile have the L2 cache fetch what later blocks read: of scans, whose threads wait
/// for each other. (Where several sweeps have no kernel for one tile it is not measured. Programs without
/// scans, as grids and what encodes a softmax's gradient over the sequence, gain nothing. Nor do rows that
/// share what is computed for them, which have the next one on its way: 1 % slower. Of clusters it is not
/// measured.)
template <class K, class Arrangement>
inline constexpr bool looks_ahead = [] {
  if constexpr (scan_count<typename K::group> == 0 || !knows_types<K> || Arrangement::repeats ||
                Arrangement::in_stage || Arrangement::clustered || !Arrangement::has_one_tile ||
                (Arrangement::streams_one_tile && sweep_count<typename K::group> > 1)) {
    return false;
  } else {
    constexpr int of_thread =
        tile<K, all_sweeps, typename Arrangement::place, false>::stage_bytes / Arrangement::stage_threads;
    return of_thread * Arrangement::threads * Arrangement::blocks_resident_of_one_tile(of_thread) <=
           cuda_ahead_policy::most_held_bytes;
  }
}();

template <class K, class Arrangement> struct tile_scanner {
  using group = typename K::group;
  using C = typename K::compute;
  static constexpr int runs = Arrangement::runs, lanes = Arrangement::lanes;

  const typename K::arguments& a;
  Arrangement threads;

  __device__ __forceinline__ tile_scanner(const typename K::arguments& given, unsigned char* shared)
      : a(given), threads(given, reinterpret_cast<C*>(shared)) {}
  /// Shared memory in which threads exchange states.
  static __host__ __device__ constexpr std::size_t exchange_bytes(int lane_threads) {
    return (sizeof(C) * static_cast<std::size_t>(Arrangement::exchange_elements(lane_threads)) + 15) / 16 *
           16;
  }

  /// The thread's two stages, of so many bytes each, behind what threads exchange.
  __device__ __forceinline__ unsigned char* own_stages(unsigned char* shared, int stage_bytes) const {
    return shared + exchange_bytes(a.lane_threads) + Arrangement::own_stages() * 2 * stage_bytes;
  }

  // A program that reads what earlier launches of its run left waits for that, once, before it reads of it or
  // writes anything. (Its other operands were there before the first of them began.)

  /// In front of the first tile's steps, if they are of that;
  static __device__ __forceinline__ void wait_to_walk() {
    if constexpr (walks_scratch<K>) wait_for_last();
  }
  /// behind them, if they are not;
  static __device__ __forceinline__ void wait_for_scratch() {
    if constexpr (reads_scratch<K> && !walks_scratch<K>) wait_for_last();
  }
  /// or in either case.
  static __device__ __forceinline__ void wait_for_all_scratch() {
    if constexpr (reads_scratch<K>) wait_for_last();
  }

  /// Has the L2 cache fetch what a block will read of its tile that begins a while later.
  __device__ __forceinline__ void fetch_for_later(const stretch& where) const {
    if constexpr (!looks_ahead<K, Arrangement>) return;
    for_each_index(sequence_of<walked_loads<group, all_sweeps>>{}, [&]<int I>(index_constant<I>) {
      constexpr int t = node_at<group, I>.target;
      using T = typename K::template element<t>;
      if constexpr (!std::is_same_v<T, any_type>)
        if (a.ahead[t].apart != 0) threads.template fetch<T>(threads.thread, where, t);
    });
  }

  /// In a frame or as stretches: `before` becomes the states of sweep S before each run, and the carry moves
  /// past the tile. False, with the carry worth what it was, for the whole block, where the tile's sums hold
  /// no frame or a stretch alone overflows. Total: the carry after the tile is wanted. `first`: whether it is
  /// the lanes' first tile, a bool, or true_type where there is no other.
  template <int S, bool Total, bool Back, class Tile, class IsFirst>
  __device__ __forceinline__ bool scan_fast(Tile& now, states<group, C> (&before)[runs], IsFirst first) {
    return scan_fast<S, Total, Back>(now, before, first, [&] { return look_at_first<S>(now, first); });
  }
  /// What a frame is chosen by: the first element of a tile that is its lanes' first one.
  template <int S, class Tile>
  __device__ __forceinline__ auto look_at_first(const Tile& now, bool first) const {
    const stretch& all = now.of_tile;
    return look<K, S, Tile::anywhere, lanes>(threads.thread, all.low + (a.reversed[S] ? all.steps - 1 : 0),
                                             first && all.steps > 0);
  }
  /// The same of the lanes' first tile, before that is there.
  template <int S> struct seen_elements {
    C of[lanes][scan_count<group>];
    template <class Uniforms, class F> __device__ __forceinline__ void for_elements(Uniforms&, F&& f) const {
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        for_each_index(sequence_of<scans_in<group, S>>{}, [&]<int Scan>(index_constant<Scan> scan) {
          if constexpr (is_log_sum<group, Scan>) f(scan, lane, of[lane][Scan]);
        });
    }
  };
  template <int S, class Tile> __device__ __forceinline__ auto see_first(const Tile& first) const {
    seen_elements<S> seen;
    auto u = Tile::template fold_stage<S>::evaluate_uniforms(a.parameters);
    look_at_first<S>(first, true).for_elements(u, [&]<int Scan>(index_constant<Scan>, int lane, C element) {
      seen.of[lane][Scan] = element;
    });
    return seen;
  }
  /// Whether sweep S looks before its first tile is there: of a strip it would take registers, of each lane
  /// some.
  template <int S> static constexpr bool looks_early = lanes == 1 && can_be_framed<K, S>;
  /// scan_fast by what was seen there; nullptr: nothing was.
  template <int S, bool Total, bool Back, class Tile, class IsFirst, class Seen>
  __device__ __forceinline__ bool scan_seen(Tile& now, states<group, C> (&before)[runs], IsFirst first,
                                            const Seen& seen) {
    if constexpr (std::is_same_v<Seen, std::nullptr_t>)
      return scan_fast<S, Total, Back>(now, before, first);
    else
      return scan_fast<S, Total, Back>(now, before, first, [&]() -> auto& { return seen; });
  }
  /// ... which may have been looked at: first_element() says what there is.
  template <int S, bool Total, bool Back, class Tile, class IsFirst, class First>
  __device__ __forceinline__ bool scan_fast(Tile& now, states<group, C> (&before)[runs], IsFirst first,
                                            First&& first_element) {
    if constexpr (!sweep_has_scans<group, S>)
      return true;
    else if constexpr (can_be_framed<K, S>)
      return scan_in_frame<S, Total, Back>(now, before, first, first_element);
    else
      return scan<S, Total, Back>(now, before);
  }

  /// The same with every scan's own operator, if need be in turns: always fits.
  template <int S, bool Back, class Tile>
  __device__ __forceinline__ void scan_in_order(Tile& now, states<group, C> (&before)[runs]) {
    auto& thread = threads.thread;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) leave_frames<group, scans_in<group, S>>(thread.carry[lane]);
    auto u = Tile::template fold_stage<S>::evaluate_uniforms(a.parameters);
#pragma unroll
    for (int run = 0; run < runs; ++run)
      copy_states<group, scans_in<group, S>>(thread.carry[Tile::lane_of(run)], before[run]);
    for_each_index(std::make_integer_sequence<int, rounds_of<group, S>>{}, [&]<int Round>(
                                                                               index_constant<Round>) {
      using here = scans_in<group, S, Round>;
      bool again = true;
#pragma unroll 1
      while (again) {
        states<group, C> local[runs], preceding[runs], total[lanes];
#pragma unroll
        for (int run = 0; run < runs; ++run) {
          local[run] = before[run];
          threads.template set_start<here>(run, local[run]);
          now.template fold<S, Round, false, Back || uses_last<group, S> ? tile_mask::steps : tile_mask::none,
                            Back>(u, run, before[run], local[run]);
        }
        if constexpr (any_scales<group, here>)
          if (threads.turn >= 0) {
            again = threads.template take_turn<here, Back>(local, before);
            continue;
          }
        thread.wait_for_gathers();
        const bool unfit =
            threads.template join<here, false, true, Back>(local, preceding, total, false, now.steps(0) > 0);
        if constexpr (any_scales<group, here>)
          if (unfit) {
            threads.template begin_turns<here>();
            continue;
          }
        pass_on<Tile, here, false, true>(preceding, total, before);
        again = false;
      }
    });
  }

  /// Whether of sweep S nothing is wanted but what its steps make together, in whatever order: threads then
  /// join at its end instead of at every tile.
  template <int S>
  static constexpr bool joins_once =
      sweep_has_scans<group, S> && rounds_of<group, S> == 1 && reduces<group, scans_in<group, S>> &&
      !any_scales<group, scans_in<group, S>> && !can_be_framed<K, S> && !has_tallies<group, S> &&
      stage_of<group, stage_kind::sweep, S>.stores.count == 0;
  /// Adds a tile to what each of the thread's runs has so far, the identity at first.
  template <int S, class Tile>
  __device__ __forceinline__ void add_tile(Tile& now, states<group, C> (&sums)[runs]) {
    auto u = Tile::template fold_stage<S>::evaluate_uniforms(a.parameters);
#pragma unroll
    for (int run = 0; run < runs; ++run)
      now.template fold<S, 0, true, tile_mask::steps>(u, run, sums[run], sums[run]);
    threads.thread.wait_for_gathers();
  }
  /// Moves the carry past all that has been added.
  template <int S, class Tile> __device__ __forceinline__ void join_sums(states<group, C> (&sums)[runs]) {
    using here = scans_in<group, S>;
    states<group, C> preceding[runs], total[lanes], unused[runs];
    threads.template join<here, false, true>(sums, preceding, total, false, true);
    pass_on<Tile, here, false, true>(preceding, total, unused);
  }

  /// Makes the tallies of sweep S, of which each thread has its own steps', those of all.
  template <int S> __device__ __forceinline__ void join_tallies() {
    if constexpr (has_tallies<group, S>) {
      using here = tallies_in<group, S>;
      auto& carry = threads.thread.carry;
      states<group, C> local[runs], preceding[runs], total[lanes];
#pragma unroll
      for (int run = 0; run < runs; ++run) {  // the first runs are of different lanes
        local[run] = carry[run < lanes ? run : 0];
        if (run >= lanes) set_identity<group, here>(local[run]);
      }
      threads.template join<here, false, true>(local, preceding, total, false, true);
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) copy_states<group, here>(total[lane], carry[lane]);
    }
  }

private:
  states<group, C> begin[lanes];  ///< of sums that scale others: the carry before the tile

  /// What comes into a tile is r; inside it is in units of the sum, which at that end is the carry behind the
  /// tile. What goes out is at the other end.
  template <class Holder> __device__ __forceinline__ void scale_carry() {
    for_scaled<Holder>([&](C& r, int lane, const auto& sum_of) {
      r = r * reciprocal_of_sum(sum_of(threads.thread.carry[lane]));
    });
  }
  template <class Holder> __device__ __forceinline__ void unscale_carry() {
    for_scaled<Holder>([&](C& r, int lane, const auto& sum_of) { r = r * sum_of(begin[lane]); });
  }
  template <class Holder, class F> __device__ __forceinline__ void for_scaled(F&& f) {
    for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) {
      if constexpr (scale_of<group, S> >= 0)
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
          f(std::get<0>(state_of<S>(threads.thread.carry[lane])), lane,
            [](const states<group, C>& s) { return std::get<1>(state_of<scale_of<group, S>>(s)); });
    });
  }

  /// Steps that do not exist come last. Where the states behind them are wanted they are masked; but a single
  /// scan, whose tiles are full but for the last ones, leaves those to others where it would be step by step.
  template <int S> static constexpr bool single_scan = sweep_count<group> == 1 && !only_reduces<group, S>;
  template <int S, class Tile>
  static constexpr bool behind_wanted =
      !(single_scan<S> && Tile::has_parts) && (uses_last<group, S> || scales_others<group>(S));
  template <int S, bool Back, class Tile>
  static constexpr tile_mask mask = !Back && !behind_wanted<S, Tile> ? tile_mask::none
                                    : Tile::has_parts                ? tile_mask::steps
                                                                     : tile_mask::runs;
  /// Whether a tile has runs that exist in part, and that matters, as it does to tallies.
  template <int S, bool Back, class Tile> __device__ __forceinline__ bool is_ragged(const Tile& now) const {
    using place = typename Arrangement::place;
    if constexpr (ragged_rows_apart<K> && !place::vector_is_step && !place::ragged && !place::rolled)
      return false;  // other kernels have those
    return (mask<S, Back, Tile> == tile_mask::runs || has_tallies<group, S>) &&
           (!single_scan<S> || a.last_wanted) && now.in_parts();
  }

  template <int S, bool Total, bool Back, class Tile>
  __device__ __forceinline__ bool scan(Tile& now, states<group, C> (&before)[runs]) {
    auto u = Tile::template fold_stage<S>::evaluate_uniforms(a.parameters);
    states<group, C> start[lanes];
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) start[lane] = threads.thread.carry[lane];
#pragma unroll
    for (int run = 0; run < runs; ++run)
      copy_states<group, scans_in<group, S>>(start[Tile::lane_of(run)], before[run]);
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
            now.template fold<S, Round, true, mask<S, Back, Tile>, Back>(u, run, before[run], local[run]);
          }
          threads.thread.wait_for_gathers();
          fits = !threads.template join<here, false, Total, Back>(local, preceding, total,
                                                                  is_ragged<S, Back>(now), now.steps(0) > 0);
          if (!fits) return;
          scale_carry<here>();
          pass_on<Tile, here, false, Total>(preceding, total, before);
          unscale_carry<here>();
        });
    if (rounds_of<group, S> > 1 && !fits)
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) threads.thread.carry[lane] = start[lane];
    return fits;
  }

  /// As scan, with the m of every log-sum held fixed: the elements' exponentials are added as they are. False
  /// where that is not exact all over the tile, for the whole block; the carry is then worth what it was.
  template <int S, bool Total, bool Back, class Tile, class IsFirst, class First>
  __device__ __forceinline__ bool scan_in_frame(Tile& now, states<group, C> (&before)[runs], IsFirst first,
                                                First&& first_element) {
    using here = scans_in<group, S, 0>;
    auto u = Tile::template fold_stage<S>::evaluate_uniforms(a.parameters);
    bool doubtful = is_ragged<S, Back>(now), settled = true;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      for_each_index(sequence_of<here>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>)
          settled = settled && holds_frame(state_of<Scan>(threads.thread.carry[lane]));
      });
    // A row's only tile always asks for one: a branch would keep apart what compilers may put in turns.
    constexpr bool asks = lanes == 1 && std::is_same_v<IsFirst, std::true_type>;
    if (asks || !settled) {
      first_element().for_elements(u, [&]<int Scan>(index_constant<Scan>, int lane, C element) {
        auto& carry = state_of<Scan>(threads.thread.carry[lane]);
        const bool holds = holds_frame(carry);
        auto chosen = carry;
        const bool found = set_frame(chosen, element, first);
        carry[0] = holds ? carry[0] : chosen[0];
        carry[1] = holds ? carry[1] : chosen[1];
        doubtful = doubtful | (!holds & !found & (lane < threads.thread.valid));
      });
    }
    if constexpr (scales_others<group>(S))
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        copy_states<group, here>(threads.thread.carry[lane], begin[lane]);
    states<group, C> local[runs], preceding[runs], total[lanes];
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      copy_states<group, here>(threads.thread.carry[Tile::lane_of(run)], before[run]);
      local[run] = before[run];
      set_identity<group, here, true>(local[run]);
      now.template fold<S, 0, true, mask<S, Back, Tile>, Back>(u, run, before[run], local[run]);
    }
    threads.thread.wait_for_gathers();
    if (threads.template join<here, true, Total, Back>(local, preceding, total, doubtful, now.steps(0) > 0))
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
};

}  // namespace scandsl::cuda_detail
