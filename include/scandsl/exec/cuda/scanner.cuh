#pragma once
#include "scandsl/exec/cuda/published.cuh"
#include "scandsl/pass/cuda_plan.hpp"

/// The scanner of a look-back (lookback.cuh): warps of one block, to which all blocks publish what their
/// tiles come to, and which publish what precedes each tile.
namespace scandsl::cuda_detail {

/// States of tiles in device memory.
template <class Group, class C> struct published_states {
  using scans = scans_in<Group, 0>;
  static constexpr int words = component_capacity<Group> * words_of<C>;
  /// Whether a tile's state may be unfit for combining, and states that are fit may overflow when they are
  /// combined.
  static constexpr bool may_overflow = any_scales<Group, scans>;

  const lookback_arguments& book;

  /// Calls put(word, bits) for every word of a state.
  template <class F>
  static __device__ __forceinline__ void for_words(const states<Group, C>& state, F&& put) {
    for_components<Group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
      constexpr int first = component_index<Group, scans>(S, Component) * words_of<C>;
#pragma unroll
      for (int w = 0; w < words_of<C>; ++w)
        put(first + w, word_of(std::get<Component>(state_of<S>(state)), w));
    });
  }
  /// Makes a state of bits_of(word).
  template <class F> static __device__ __forceinline__ void from_bits(states<Group, C>& state, F&& bits_of) {
    for_components<Group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
      constexpr int first = component_index<Group, scans>(S, Component) * words_of<C>;
      std::uint32_t bits[words_of<C>];
#pragma unroll
      for (int w = 0; w < words_of<C>; ++w) bits[w] = bits_of(first + w);
      std::get<Component>(state_of<S>(state)) = from_words<C>(bits);
    });
  }

  /// What has been read of a state.
  struct raw_state {
    std::uint64_t word[words];

    __device__ __forceinline__ bool is_there() const {
      bool there = true;
#pragma unroll
      for (int w = 0; w < words; ++w) there = there & (word[w] >> 32 != 0);
      return there;
    }
    /// False: it overflowed.
    __device__ __forceinline__ bool take(states<Group, C>& state) const {
      bool fit = true;
      from_bits(state, [&](int w) {
        fit = fit & (word[w] >> 32 == static_cast<std::uint32_t>(published::state));
        return static_cast<std::uint32_t>(word[w]);
      });
      return fit;
    }
  };

  __device__ __forceinline__ std::uint64_t* place_of(tile_state which, std::uint32_t tile) const {
    return book.words + (static_cast<std::int64_t>(which) * book.tiles * book.rows + tile) * words;
  }
  __device__ __forceinline__ void publish(tile_state which, std::uint32_t tile, const states<Group, C>& state,
                                          bool fit = true) const {
    std::uint64_t* const at = place_of(which, tile);
    for_words(state, [&](int w, std::uint32_t bits) {
      store_published(at + w, bits, fit ? published::state : published::overflowed);
    });
  }
  __device__ __forceinline__ raw_state ask(tile_state which, std::uint32_t tile) const {
    const std::uint64_t* const at = place_of(which, tile);
    raw_state raw;
#pragma unroll
    for (int w = 0; w < words; ++w) raw.word[w] = load_published(at + w);
    return raw;
  }
  /// Waits for a state. False: it overflowed.
  __device__ __forceinline__ bool wait_for(tile_state which, std::uint32_t tile,
                                           states<Group, C>& state) const {
    raw_state raw = ask(which, tile);
    while (!raw.is_there()) raw = ask(which, tile);
    return raw.take(state);
  }

  /// Whether a stretch's state may make a NaN where the scan in order does not.
  static __device__ __forceinline__ bool unfit(const states<Group, C>& stretch) {
    if constexpr (may_overflow) {
      states<Group, C> none = stretch;
      set_identity<Group, scans>(none);
      return overflows<Group, scans, false, 32>(none, stretch);
    } else {
      return false;
    }
  }
  /// Whether states that are fit have overflowed when they were combined, of a row from its beginning or of a
  /// stretch of it: what follows them in the row may be NaN, where the scan in order has an infinity.
  static __device__ __forceinline__ bool bursts(const states<Group, C>& state, bool from_beginning) {
    bool burst = false;
    if constexpr (may_overflow) {
      for_components<Group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
        constexpr double identity = identity_of<Group, S, Component>;
        if constexpr (scales<Group, S> && identity - identity == 0.0) {
          const C own = std::get<Component>(state_of<S>(state));
          if (is_live<Group, S, Component> || !from_beginning) burst = burst | !(own - own == C(0));
        }
      });
    }
    return burst;
  }
  /// Whether a scan's state is such that a stretch combined with it may make one.
  static __device__ __forceinline__ bool infinite(const states<Group, C>& carry) {
    if constexpr (may_overflow) {
      states<Group, C> none = carry;
      set_identity<Group, scans>(none);
      return overflows<Group, scans>(carry, none);
    } else {
      return false;
    }
  }
};

/// A warp has a group of 32 tiles at a time, one for each thread, and the warps together a round of groups.
/// What their groups come to and what precedes the round they tell each other through shared memory. So there
/// is one thing to wait for from round to round, and the rest is added up meanwhile. Which states are
/// combined with which depends on the tiles' numbers alone: every run makes the same bits. What precedes a
/// tile is published as soon as all tiles before it are known, for a block may have to finish it before it
/// folds another of the group.
template <class Group, class C> struct scanner {
  using scans = scans_in<Group, 0>;
  using all_states = published_states<Group, C>;
  static constexpr int warps = cuda_lookback_policy::scanner_warps;
  static_assert(warps <= 32 && (warps & (warps - 1)) == 0);
  /// What is told: of each warp's group, and what precedes the round. A warp may be two rounds ahead of
  /// another, but not three: then it waits for what that one tells of the round between.
  static constexpr int rounds_told = 4, told_words = rounds_told * (warps + 1) * all_states::words;

  const all_states all;
  volatile std::uint64_t* told;  ///< zero at first

  __device__ __forceinline__ void run(int warp) const {
    const auto tiles = static_cast<std::uint32_t>(all.book.tiles * all.book.rows);
#pragma unroll 1
    for (auto group = static_cast<std::uint32_t>(warp); group * 32 < tiles; group += warps)
      scan_group(group, warp, tiles);
  }

private:
  __device__ __forceinline__ void scan_group(std::uint32_t group, int warp, std::uint32_t tiles) const {
    const int mine = static_cast<int>(threadIdx.x) & 31;
    const std::uint32_t tile = group * 32 + static_cast<std::uint32_t>(mine), number = number_of(tile);
    // Of the row: tiles of the group before this one, and whether there are others before the group.
    const int since = static_cast<int>(smaller(number, static_cast<std::uint32_t>(mine)));
    const bool takes_carry = number > static_cast<std::uint32_t>(mine),
               ends_row = number + 1 == static_cast<std::uint32_t>(all.book.tiles);
    const unsigned of_row = ((1U << mine) - 1) & ~((1U << (mine - since)) - 1);
    states<Group, C> own, up_to, before, carry;
    set_identity<Group, scans>(own);
    carry = before = up_to = own;
    bool known = tile >= tiles, fit = true, knows_carry = false, carry_fits = true;
    round_part of_round = {};
    unsigned unfit = 0;
    int counted = -1, released = 0;
    while (true) {
      if (!known) {
        const auto raw = all.ask(tile_state::own, tile);
        if (raw.is_there()) {
          known = true;
          fit = raw.take(own) && !(number == 0 ? all.infinite(own) : all.unfit(own));
        }
      }
      const unsigned missing = __ballot_sync(~0U, !known);
      const int count = missing == 0 ? 32 : __ffs(static_cast<int>(missing)) - 1;
      if (count > counted) {
        counted = count;
        up_to = own;
        add_up(up_to, mine, since);
        before = shuffle_from<Group, scans, false>(up_to, mine - 1, 32);
        if (since == 0) set_identity<Group, scans>(before);
        unfit = __ballot_sync(~0U, !fit || all.bursts(before, !takes_carry));
        if (count == 32 && mine == 31) {
          const bool whole_fits = takes_carry ? !all.unfit(up_to) : !all.bursts(up_to, true);
          tell(group / warps, warp, up_to, (unfit & (of_row | 1U << 31)) == 0 && whole_fits);
        }
      }
      if (!knows_carry) knows_carry = find_carry(group, warp, of_round, carry, carry_fits);
      if (!knows_carry) continue;
      states<Group, C> found = before;
      if constexpr (all_states::may_overflow) {
        if (takes_carry) combine_onto<Group, scans>(carry, found);
        unfit |= __ballot_sync(~0U, all.bursts(found, true));
      }
      const bool tells = count == 32 && warp == warps - 1 && mine == 31 && tile + 1 < tiles,
                 has_to_wait =
                     !ends_row && ((unfit & (of_row | 1U << 31)) != 0 || (takes_carry && !carry_fits));
      if (tells && !has_to_wait) {
        if (takes_carry) combine_onto<Group, scans>(carry, up_to);
        tell(group / warps + 1, warps, up_to, true);
      }
      if (mine >= released && mine <= count && number > 0 && tile < tiles) {
        if (!all_states::may_overflow && takes_carry) combine_onto<Group, scans>(carry, found);
        all.publish(tile_state::before, tile, found, (unfit & of_row) == 0 && (!takes_carry || carry_fits));
      }
      __syncwarp();
      if (tells && has_to_wait) {  // for tiles that wait for what has just been published
        all.wait_for(tile_state::past, tile, up_to);
        tell(group / warps + 1, warps, up_to, true);
      }
      released = count + 1;
      if (count == 32) return;
    }
  }

  /// Of its row.
  __device__ __forceinline__ std::uint32_t number_of(std::uint32_t tile) const {
    return tile % static_cast<std::uint32_t>(all.book.tiles);
  }
  /// Each thread's state with those of the `since` threads before it.
  static __device__ __forceinline__ void add_up(states<Group, C>& state, int mine, int since) {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const states<Group, C> left = shuffle_from<Group, scans, false>(state, mine - distance, 32);
      combine_onto_if<Group, scans>(distance <= since, left, state);
    }
  }

  struct round_part {
    bool known;             ///< what precedes the group in its round
    bool takes_carry, fit;  ///< whether no row begins there, and whether nothing there is unfit
  };
  /// What precedes the group; false while it is not known. `carry` is nothing at first, and then what of it
  /// is known.
  __device__ __forceinline__ bool find_carry(std::uint32_t group, int warp, round_part& of_round,
                                             states<Group, C>& carry, bool& fits) const {
    if (!of_round.known) add_up_round(group, warp, of_round, carry);
    if (!of_round.known) return false;
    states<Group, C> start;
    set_identity<Group, scans>(start);
    bool there = true;
    if (group >= warps) there = hear(group / warps, warps, start).there;
    if (!__all_sync(~0U, there)) return false;
    fits = of_round.fit;
    if (of_round.takes_carry) {
      fits = fits && !all.infinite(start);
      combine_onto<Group, scans>(start, carry);
    }
    fits = fits && !all.infinite(carry);
    return true;
  }
  /// Adds up what the warps before this one tell of the round.
  __device__ __forceinline__ void add_up_round(std::uint32_t group, int warp, round_part& of_round,
                                               states<Group, C>& before) const {
    const int mine = static_cast<int>(threadIdx.x) & 31;
    states<Group, C> total = before;
    heard of_mine = {true, true};
    if (mine < warp) of_mine = hear(group / warps, mine, total);
    of_round.known = __all_sync(~0U, of_mine.there);
    if (!of_round.known) return;
    of_round.takes_carry = of_round.fit = true;
    if (warp == 0) return;
    const std::uint32_t last = (group - static_cast<std::uint32_t>(warp - mine)) * 32 + 31;
    const unsigned begins = __ballot_sync(~0U, mine < warp && number_of(last) < 32) & ((2U << mine) - 1),
                   told_unfit = __ballot_sync(~0U, !of_mine.fit);
    const int from = begins == 0 ? 0 : 31 - __clz(static_cast<int>(begins));
    add_up(total, mine, mine - from);
    const unsigned unfit = told_unfit | __ballot_sync(~0U, all.bursts(total, begins != 0));
    before = shuffle_from<Group, scans, false>(total, warp - 1, 32);
    of_round.takes_carry = __shfl_sync(~0U, begins, warp - 1) == 0;
    of_round.fit = (unfit & ((1U << warp) - 1)) >> __shfl_sync(~0U, from, warp - 1) == 0;
  }

  __device__ __forceinline__ volatile std::uint64_t* place_of(std::uint32_t round, int which) const {
    return told + (static_cast<int>(round % rounds_told) * (warps + 1) + which) * all_states::words;
  }
  /// Words have 32 bits of value, and above them the round, counted from 1, and whether the state is fit.
  __device__ __forceinline__ void tell(std::uint32_t round, int which, const states<Group, C>& state,
                                       bool fit) const {
    volatile std::uint64_t* const to = place_of(round, which);
    const std::uint64_t tag = static_cast<std::uint64_t>((round + 1) * 2 + (fit ? 1 : 0)) << 32;
    all_states::for_words(state, [&](int w, std::uint32_t bits) { to[w] = tag | bits; });
  }
  struct heard {
    bool there, fit;
  };
  __device__ __forceinline__ heard hear(std::uint32_t round, int which, states<Group, C>& state) const {
    const volatile std::uint64_t* const from = place_of(round, which);
    heard of = {true, true};
    all_states::from_bits(state, [&](int w) {
      const std::uint64_t word = from[w];
      of.there = of.there & (word >> 33 == round + 1);
      of.fit = of.fit & ((word >> 32 & 1) != 0);
      return static_cast<std::uint32_t>(word);
    });
    return of;
  }
};

}  // namespace scandsl::cuda_detail
