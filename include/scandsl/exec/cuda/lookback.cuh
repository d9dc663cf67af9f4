#pragma once
#include "scandsl/exec/cuda/published.cuh"
#include "scandsl/exec/cuda/row.cuh"

/// The look-back: many blocks share the tiles of a few rows, each tile read and written once.
///
/// Tiles are handed out by ticket, in the order in which the scan goes through them. A block folds a tile and
/// publishes its state (its aggregate); what precedes the tile it learns from what other blocks published.
/// Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016, is the scheme;
/// here
///   - the published states form a fixed tree, so that every run adds in the same order: groups of tiles,
///     groups of groups, and one chain over the largest. Who folds the last tile of a group publishes the
///     group's state;
///   - a tile is finished only after the block has folded its next few, when what precedes it has long been
///     known. Tiles wait in shared memory meanwhile, where the copy engine also brings the tiles to come;
///   - waiting and adding up is the work of warps of their own (the scouts).
/// A block waits for lower tickets than its own only, whose blocks are running: however few blocks the device
/// runs at a time, the lowest ticket can always go on.
namespace scandsl::cuda_detail {

template <class K, class Arrangement> struct lookback;

/// What few tiles need, as functions of their own, out of the way of the kernel's registers.
template <class K, class Arrangement>
__device__ __noinline__ void fold_in_order(const typename K::arguments& a, const lookback_arguments& book,
                                           unsigned char* shared, unsigned i) {
  lookback<K, Arrangement>(a, book, shared).fold_as_defined(i);
}
template <class K, class Arrangement>
__device__ __noinline__ void finish_in_order(const typename K::arguments& a, const lookback_arguments& book,
                                             unsigned char* shared, unsigned i) {
  lookback<K, Arrangement>(a, book, shared).finish_as_defined(i);
}
template <class K, class Arrangement>
__device__ __noinline__ void finish_in_turns(const typename K::arguments& a, const lookback_arguments& book,
                                             unsigned char* shared, unsigned i) {
  lookback<K, Arrangement>(a, book, shared).finish_by_turns(i);
}

template <class K, class Arrangement> struct lookback {
  using group = typename K::group;
  using C = typename K::compute;
  using scans = scans_in<group, 0>;
  static constexpr int runs = Arrangement::runs, threads = Arrangement::threads;
  static_assert(Arrangement::lanes == 1);
  /// A group of the tree, as a power of two, and how many levels of groups there are: a warp of scouts looks
  /// at a group's tiles side by side.
  static constexpr int log2_radix = 5, radix = 1 << log2_radix, levels = 2;
  /// Tiles folded before one is finished; slots for what is known of them; stages for their elements. There
  /// are as many warps of scouts, each of which follows one tile at a time.
  static constexpr int delay = cuda_lookback_policy::delay, slots = delay + 1, stage_count = delay + 2,
                       tickets = 16;
  static constexpr int scouts = 32, all_threads = threads + delay * scouts, meeting = threads + scouts;
  static constexpr int components = component_capacity<group>;
  static constexpr int words = components * words_of<C>;
  /// Whether a tile's aggregate may be unfit for combining.
  static constexpr bool may_overflow = any_scales<group, scans>;
  static constexpr bool framed = can_be_framed<K, 0>;

  struct tile_name {
    std::uint32_t row, number;  ///< of the tile along it
    static constexpr std::uint32_t none = 0xffffffffU;
    __device__ __forceinline__ bool exists() const { return number != none; }
  };
  using tile_type = tile<K, 0, typename Arrangement::place, false>;

  const typename K::arguments& a;
  const lookback_arguments& book;
  Arrangement block_threads;
  unsigned char* stages;
  C *preceding, *aggregate, *seed, *prefix;
  volatile std::uint32_t *unfit_tile, *in_frame;
  volatile tile_name* names;
  std::uint32_t* late;

  static constexpr int stage_bytes = tile_type::stage_bytes;
  static constexpr int kept_states = slots * components * (runs * threads + 3),
                       exchange_elements = Arrangement::exchange_elements(threads);
  /// Shared memory, in order: stages; what precedes each thread's runs in a tile; the tile's aggregate, seed
  /// and prefix; the threads' exchange; flags and tickets.
  static constexpr std::size_t shared_bytes() {
    return static_cast<std::size_t>(stage_count * stage_bytes) +
           sizeof(C) * static_cast<std::size_t>(kept_states + exchange_elements) +
           sizeof(std::uint32_t) * (3 * slots + 2 * tickets);
  }

  __device__ __forceinline__ lookback(const typename K::arguments& given, const lookback_arguments& where,
                                      unsigned char* shared)
      : a(given), book(where),
        block_threads(given, reinterpret_cast<C*>(shared + stage_count * stage_bytes) + kept_states),
        stages(shared), preceding(reinterpret_cast<C*>(shared + stage_count * stage_bytes)),
        aggregate(preceding + slots * components * runs * threads), seed(aggregate + slots * components),
        prefix(seed + slots * components) {
    std::uint32_t* const flags = reinterpret_cast<std::uint32_t*>(block_threads.exchange + exchange_elements);
    unfit_tile = flags;
    in_frame = flags + slots;
    names = reinterpret_cast<tile_name*>(flags + 2 * slots);
    late = flags + 2 * slots + 2 * tickets;
  }
  /// Barriers: a tile has been folded (an own one for each group of scouts, two tiles apart), and what
  /// precedes it has been found.
  static __device__ __forceinline__ int folded_barrier(unsigned i) {
    return 1 + static_cast<int>(i % (2 * delay));
  }
  static __device__ __forceinline__ int found_barrier(unsigned i) { return 1 + 2 * delay + slot_of(i); }
  static __device__ __forceinline__ int slot_of(unsigned i) { return static_cast<int>(i % slots); }

  /// Notes what ticket the block's tile i has. One thread draws all tickets of a block, so that they ascend.
  __device__ __forceinline__ void note(unsigned i, std::uint32_t at) const {
    volatile tile_name& name = names[i % tickets];
    name.number = tile_name::none;
    if (at >= static_cast<std::uint64_t>(book.tiles * book.rows)) return;
    const auto tiles = static_cast<std::uint32_t>(book.tiles);
    name.row = at / tiles;
    name.number = at - at / tiles * tiles;
  }
  __device__ __forceinline__ tile_name name_of(unsigned i) const {
    return {names[i % tickets].row, names[i % tickets].number};
  }

  // ---- published states

  __device__ __forceinline__ std::uint64_t* place_of(std::int64_t row, int level, std::int64_t index) const {
    return book.words + (row * book.states + book.level[level] + index) * words;
  }
  __device__ __forceinline__ void publish(std::int64_t row, int level, std::int64_t index,
                                          const states<group, C>& state, published what) const {
    std::uint64_t* const at = place_of(row, level, index);
    for_components<group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
      constexpr int component = component_index<group, scans>(S, Component);
#pragma unroll
      for (int w = 0; w < words_of<C>; ++w)
        store_published(at + component * words_of<C> + w, word_of(std::get<Component>(state_of<S>(state)), w),
                        what);
    });
  }
  struct raw_state {
    std::uint64_t word[words];
  };
  __device__ __forceinline__ raw_state ask(const std::uint64_t* at) const {
    raw_state raw;
#pragma unroll
    for (int w = 0; w < words; ++w) raw.word[w] = load_published(at + w);
    return raw;
  }
  /// Waits until all of it has been published. False: it overflowed.
  __device__ __forceinline__ bool wait_for(const std::uint64_t* at, raw_state raw,
                                           states<group, C>& state) const {
    bool good = true;
#pragma unroll
    for (int w = 0; w < words; ++w) {
      while (raw.word[w] >> 32 == static_cast<std::uint32_t>(published::nothing))
        raw.word[w] = load_published(at + w);
      good = good && raw.word[w] >> 32 == static_cast<std::uint32_t>(published::state);
    }
    for_components<group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
      constexpr int component = component_index<group, scans>(S, Component);
      std::uint32_t bits[words_of<C>];
#pragma unroll
      for (int w = 0; w < words_of<C>; ++w)
        bits[w] = static_cast<std::uint32_t>(raw.word[component * words_of<C> + w]);
      std::get<Component>(state_of<S>(state)) = from_words<C>(bits);
    });
    return good;
  }

  // ---- states in shared memory

  __device__ __forceinline__ void put(C* slot, const states<group, C>& state) const {
    for_components<group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
      slot[component_index<group, scans>(S, Component)] = std::get<Component>(state_of<S>(state));
    });
  }
  __device__ __forceinline__ states<group, C> get(const C* slot) const {
    states<group, C> state;
    for_components<group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
      std::get<Component>(state_of<S>(state)) = slot[component_index<group, scans>(S, Component)];
    });
    return state;
  }

  // ---- the scouts

  __device__ __forceinline__ void scout() {
    const int which = (static_cast<int>(threadIdx.x) - threads) / scouts;
#pragma unroll 1
    for (unsigned i = static_cast<unsigned>(which);; i += delay) {
      wait_at<meeting>(folded_barrier(i));
      const tile_name now = name_of(i);
      if (!now.exists()) return;
      find_prefix(now, slot_of(i));
      __syncwarp();
      arrive_at<meeting>(found_barrier(i));
    }
  }

  __device__ __forceinline__ void publish(std::int64_t row, int level, std::int64_t index,
                                          const states<group, C>& state, bool fit) const {
    publish(row, level, index, state, fit ? published::state : published::overflowed);
  }

  /// Publishes the tile's state and those of the groups that it ends, and finds what precedes it.
  __device__ __forceinline__ void find_prefix(const tile_name& now, int slot) {
    const std::int64_t t = now.number;
    const int mine = static_cast<int>(threadIdx.x) & 31;
    states<group, C> group_state = get(aggregate + slot * components), before[levels];
    bool group_fit = !may_overflow || unfit_tile[slot] == 0, fit = true, ends_group = true;
    if (mine == 0) publish(now.row, 0, t, group_state, group_fit);
    int counts[levels];
    raw_state raw[levels], raw_start, raw_near;
#pragma unroll
    for (int level = 0; level < levels; ++level) {
      const std::int64_t index = t >> (level * log2_radix);
      counts[level] = static_cast<int>(index & (radix - 1));
      if (mine < counts[level]) raw[level] = ask(place_of(now.row, level, index - counts[level] + mine));
    }
    const bool nearby = counts[1] > 0;
    const std::uint64_t* const near_at = place_of(now.row, 0, t - counts[0] - radix + mine);
    if (nearby) raw_near = ask(near_at);
    const std::int64_t link = t >> (levels * log2_radix);
    const std::uint64_t* const chain = place_of(now.row, levels, link);
    if (t > 0) raw_start = ask(chain);
    // The group just before is added up here, too, as its last tile's scouts do: that state comes a hop
    // later.
    states<group, C> near_group;
    set_identity<group, scans>(near_group);
    bool near_fit = true;
    if (nearby) {
      near_fit = wait_for(near_at, raw_near, near_group) && !unfit(near_group);
      add_up(near_group, mine);
      if constexpr (may_overflow) near_fit = __all_sync(~0U, near_fit);
      for_components<group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
        C& component = std::get<Component>(state_of<S>(near_group));
        component = shuffle_from(component, 0, 32);
      });
      near_fit = near_fit && !unfit(near_group);
    }
#pragma unroll
    for (int level = 0; level < levels; ++level) {
      const std::int64_t index = t >> (level * log2_radix);
      states<group, C>& all = before[level];
      set_identity<group, scans>(all);
      bool good = true;
      if (level == 1 && mine == counts[level] - 1) {
        all = near_group;
        good = near_fit;
      } else if (mine < counts[level]) {
        good =
            wait_for(place_of(now.row, level, index - counts[level] + mine), raw[level], all) && !unfit(all);
      }
      add_up(all, mine);
      if constexpr (may_overflow) fit = __all_sync(~0U, good) && fit;
      ends_group = ends_group && counts[level] == radix - 1;
      if (ends_group && mine == 0) {
        combine_onto<group, scans>(all, group_state);
        group_fit = group_fit && fit && !unfit(group_state);
        if (level + 1 < levels) publish(now.row, level + 1, index >> log2_radix, group_state, group_fit);
      }
    }
    if (mine > 0) return;
    states<group, C> found;
    if (t == 0) {
      found = get(seed + slot * components);
      publish(now.row, levels, 0, found, published::state);
    } else {
      wait_for(chain, raw_start, found);
    }
    end_prefix(now, slot, found, before, group_state, fit, group_fit, ends_group);
  }

  /// Combines what a warp's threads hold, in order: thread 0 has it. Log-sums are restated in one frame
  /// first, and then added.
  __device__ __forceinline__ void add_up(states<group, C>& all, int mine) const {
    __syncwarp();
    for_each_index(sequence_of<scans>{}, [&]<int Scan>(index_constant<Scan>) {
      if constexpr (is_log_sum<group, Scan>) {
        auto& [m, s] = state_of<Scan>(all);
        C most = m;
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
          const C other = shuffle_from(most, mine ^ distance, 32);
          most = other > most ? other : most;
        }
        if (!(m == most)) s = s * arithmetic<C>::exp(m - most);
        m = most;
      }
    });
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      states<group, C> right = all;
      for_components<group, scans, true>(
          [&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
            std::get<Component>(state_of<S>(right)) =
                shuffle_from(std::get<Component>(state_of<S>(all)), mine + distance, 32);
          });
      if ((mine & (2 * distance - 1)) == 0) {
        combine_onto<group, scans, true>(all, right);
        copy_states<group, scans>(right, all);
      }
    }
  }

  /// From the chain's state before the tile's largest group to what precedes the tile.
  __device__ __forceinline__ void end_prefix(const tile_name& now, int slot, states<group, C>& found,
                                             states<group, C> (&before)[levels],
                                             states<group, C>& group_state, bool fit, bool group_fit,
                                             bool ends_group) {
    const bool starts_finite = !infinite(found);
    const bool owes_link = ends_group && !(group_fit && starts_finite);
    if (ends_group && !owes_link) {
      combine_onto<group, scans>(found, group_state);
      publish(now.row, levels, static_cast<std::int64_t>(now.number >> (levels * log2_radix)) + 1,
              group_state, published::state);
    }
#pragma unroll
    for (int level = levels - 1; level >= 0; --level) {
      combine_onto<group, scans>(found, before[level]);
      found = before[level];
    }
    if constexpr (may_overflow) {
      if (now.number > 0 && (!fit || !starts_finite)) {
        const std::uint64_t* const at =
            place_of(now.row, levels + 1, static_cast<std::int64_t>(now.number) - 1);
        wait_for(at, ask(at), found);
      }
      late[slot] = owes_link;
    }
    choose_frames(found);
    put(prefix + slot * components, found);
  }
  /// Gives sums that hold one a frame near their value, for the tile that they precede.
  __device__ __forceinline__ void choose_frames(states<group, C>& before) const {
    for_each_index(sequence_of<scans>{}, [&]<int Scan>(index_constant<Scan>) {
      if constexpr (framed && is_log_sum<group, Scan>) {
        auto& [m, s] = state_of<Scan>(before);
        const float value =
            static_cast<float>(m) + log2_approximate(static_cast<float>(s)) * 0.6931471805599453F;
        if (!holds_frame(C(value))) return;
        const C frame = C(rintf(4.0F * value) * 0.25F);
        s = s * arithmetic<C>::exp(m - frame);
        m = frame;
      }
    });
  }
  static __device__ __forceinline__ bool holds_frame(C value) {
    return static_cast<float>(value) > -1e30F && static_cast<float>(value) < 1e30F;
  }
  /// Whether a stretch's state may make a NaN where the scan in order does not.
  __device__ __forceinline__ bool unfit(const states<group, C>& stretch) const {
    if constexpr (may_overflow) {
      states<group, C> none = stretch;
      set_identity<group, scans>(none);
      return overflows<group, scans, false, radix>(none, stretch);
    } else {
      return false;
    }
  }
  /// Whether a scan's state is such that a stretch combined with it may make one.
  __device__ __forceinline__ bool infinite(const states<group, C>& carry) const {
    if constexpr (may_overflow) {
      states<group, C> none = carry;
      set_identity<group, scans>(none);
      return overflows<group, scans>(carry, none);
    } else {
      return false;
    }
  }

  // ---- the threads that fold and finish

  C first_element[scan_count<group>];      ///< of the next tile
  std::uint32_t row_at = tile_name::none;  ///< the row that the threads have found,
  std::uint32_t whole_tiles = 0;           ///< and how many tiles of it are whole

  __device__ __forceinline__ C& preceding_of(int slot, int run, int component) const {
    return preceding[((slot * components + component) * runs + run) * threads +
                     static_cast<int>(threadIdx.x)];
  }
  /// Framed: all are in the tile's frame.
  template <bool Framed>
  __device__ __forceinline__ void keep_preceding(int slot, const states<group, C> (&of_runs)[runs]) const {
#pragma unroll
    for (int run = 0; run < runs; ++run)
      for_components<group, scans, Framed>(
          [&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
            preceding_of(slot, run, component_index<group, scans>(S, Component)) =
                std::get<Component>(state_of<S>(of_runs[run]));
          });
  }
  template <bool Framed> __device__ __forceinline__ states<group, C> preceding_sums(int slot, int run) const {
    states<group, C> state;
    for_components<group, scans, Framed>(
        [&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
          std::get<Component>(state_of<S>(state)) =
              preceding_of(slot, run, component_index<group, scans>(S, Component));
        });
    return state;
  }
  /// What precedes a run in its tile, however that was folded.
  __device__ __forceinline__ states<group, C> preceding_run(int slot, int run) const {
    if (!framed || in_frame[slot] == 0) return preceding_sums<false>(slot, run);
    states<group, C> state = preceding_sums<true>(slot, run);
    const states<group, C> all = get(aggregate + slot * components);
    for_each_index(sequence_of<scans>{}, [&]<int Scan>(index_constant<Scan>) {
      if constexpr (is_log_sum<group, Scan>) state_of<Scan>(state)[0] = state_of<Scan>(all)[0];
    });
    return state;
  }

  /// Takes the row of a tile. `begins`: to fold its first tile, which stores what is due and tells the
  /// scouts the scans' seeds.
  __device__ __forceinline__ void find_row(const tile_name& now, bool begins = false, int slot = 0) {
    if (now.row == row_at && !begins) return;
    row_at = now.row;
    auto& thread = block_threads.thread;
    block_threads.template find<false>(now.row, thread);
    const bool writer = thread.writes;
    thread.writes = writer && begins;
    thread.load_still();
    thread.template boundary<0>();
    thread.writes = writer;
    const std::int64_t extent = thread.high > thread.low ? thread.high - thread.low : 0;
    whole_tiles = static_cast<std::uint32_t>(extent / tile_steps);
    if (begins && writer) put(seed + slot * components, thread.carry[0]);
  }
  /// Of a whole tile.
  static constexpr int tile_steps = Arrangement::tile_steps(threads);
  __device__ __forceinline__ std::int64_t steps_before(const tile_name& now) const {
    return static_cast<std::int64_t>(now.number) * tile_steps;
  }
  __device__ __forceinline__ tile_type tile_at(const tile_name& now) const {
    const auto& thread = block_threads.thread;
    const std::int64_t before = steps_before(now);
    int steps = tile_steps;
    if (now.number >= whole_tiles)
      steps = now.number == whole_tiles ? static_cast<int>(thread.high - thread.low - before) : 0;
    return block_threads.template tile_at<0>(
        thread, {a.reversed[0] ? thread.high - before - steps : thread.low + before, steps}, a.reversed[0]);
  }
  __device__ __forceinline__ bool ends_early(const tile_name& now) const { return now.number >= whole_tiles; }
  __device__ __forceinline__ unsigned char* stage(unsigned i) const {
    return stages + static_cast<int>(i % stage_count) * stage_bytes;
  }

  __device__ __forceinline__ void prefetch(const tile_name& now, unsigned i) {
    if (now.exists()) {
      find_row(now);
      tile_at(now).prefetch(stage(i));
    }
    __pipeline_commit();
  }

  /// Folds a tile and leaves its state for the scouts.
  __device__ __forceinline__ void fold(const tile_name& now, unsigned i) {
    find_row(now, now.number == 0, slot_of(i));
    if constexpr (framed) {
      auto& thread = block_threads.thread;
      auto here = tile_at(now);
      here.load(stage(i));
      states<group, C> total[1], of_runs[runs];
      set_identity<group, scans>(thread.carry[0]);
      if (!(uses_last<group> && ends_early(now)) && fold_in_frame(here, of_runs, total))
        leave_state<true>(i, of_runs, total, false);
      else
        fold_in_order<K, Arrangement>(a, book, stages, i);
    } else {
      fold_here(now, i);
    }
  }
  __device__ __forceinline__ void fold_as_defined(unsigned i) {
    const tile_name now = name_of(i);
    find_row(now);
    fold_here(now, i);
    wait_for_all(threads);  // the exchange is the caller's again
  }
  __device__ __forceinline__ void fold_here(const tile_name& now, unsigned i) {
    auto& thread = block_threads.thread;
    auto here = tile_at(now);
    here.load(stage(i));
    states<group, C> total[1], of_runs[runs], local[runs];
    set_identity<group, scans>(thread.carry[0]);
    auto u = tile_type::template fold_stage<0>::evaluate_uniforms(a.parameters);
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      set_identity<group, scans>(local[run]);
      here.template fold<0, 0, false, uses_last<group> ? tile_mask::steps : tile_mask::none>(
          u, run, local[run], local[run]);
    }
    const bool unfit_stretch =
        block_threads.template join<scans, false, true>(local, of_runs, total, false, here.steps(0) > 0);
    leave_state<false>(i, of_runs, total, unfit_stretch);
  }
  template <bool Framed>
  __device__ __forceinline__ void leave_state(unsigned i, const states<group, C> (&of_runs)[runs],
                                              const states<group, C> (&total)[1], bool unfit_stretch) const {
    const int slot = slot_of(i);
    keep_preceding<Framed>(slot, of_runs);
    if (block_threads.thread.writes) put(aggregate + slot * components, total[0]);
    if (threadIdx.x == 0) {
      unfit_tile[slot] = unfit_stretch;
      in_frame[slot] = Framed;
    }
  }

  /// Has the first element of a tile fetched, for its frame.
  __device__ __forceinline__ void look_ahead(const tile_name& now) {
    if constexpr (framed) {
      if (!now.exists()) return;
      find_row(now);
      const auto& thread = block_threads.thread;
      const std::int64_t before = steps_before(now);
      auto u = tile_type::template fold_stage<0>::evaluate_uniforms(a.parameters);
      look_at<K, 0, false>(
          thread, a.reversed[0] ? thread.high - 1 - before : thread.low + before,
          before < thread.high - thread.low, u,
          [&]<int Scan>(index_constant<Scan>, int, C element) { first_element[Scan] = element; });
    }
  }

  /// With the tile's first element as the frame of its sums, of its own: what was handed to the block before
  /// differs from run to run.
  __device__ __forceinline__ bool fold_in_frame(tile_type& here, states<group, C> (&of_runs)[runs],
                                                states<group, C> (&total)[1]) {
    auto u = tile_type::template fold_stage<0>::evaluate_uniforms(a.parameters);
    bool doubtful = false;
    states<group, C> local[runs], start;
    set_identity<group, scans, true>(start);
    for_each_index(sequence_of<scans>{}, [&]<int Scan>(index_constant<Scan>) {
      if constexpr (is_log_sum<group, Scan>) {
        const float frame = rintf(4.0F * static_cast<float>(first_element[Scan])) * 0.25F;
        doubtful = doubtful || (!holds_frame(C(frame)) && block_threads.thread.valid > 0);
        state_of<Scan>(start)[0] = C(frame);
      }
    });
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      local[run] = start;
      here.template fold<0, 0, true, tile_mask::none>(u, run, local[run], local[run]);
    }
    return !block_threads.template join<scans, true, true>(local, of_runs, total, doubtful,
                                                           here.steps(0) > 0);
  }

  __device__ __forceinline__ void take_prefix(int slot) {
    const states<group, C> found = get(prefix + slot * components);
    copy_states<group, scans>(found, block_threads.thread.carry[0]);
  }
  /// The carry past the tile.
  __device__ __forceinline__ void pass_tile(const tile_name& now, int slot) {
    if (!may_overflow && !(uses_last<group> && static_cast<std::int64_t>(now.number) == book.tiles - 1))
      return;
    auto& carry = block_threads.thread.carry[0];
    states<group, C> all = get(aggregate + slot * components);
    combine_onto<group, scans>(carry, all);
    copy_states<group, scans>(all, carry);
    settle(now, slot);
  }

  /// Finishes a tile: from what the scouts found.
  __device__ __forceinline__ void finish(const tile_name& now, unsigned i) {
    const int slot = slot_of(i);
    find_row(now);
    take_prefix(slot);
    if constexpr (may_overflow) {
      const auto& thread = block_threads.thread;
      if (unfit_tile[slot] != 0 || (thread.valid > 0 && infinite(thread.carry[0])))  // all threads know it
        return finish_in_turns<K, Arrangement>(a, book, stages, i);
    }
    if constexpr (framed) {
      states<group, C> before[runs];
      if (set_frames(slot, before)) {
        auto here = tile_at(now);
        here.load(stage(i));
        here.template finish<0, true>(before);
      } else {
        return finish_in_order<K, Arrangement>(a, book, stages, i);
      }
    } else {
      finish_here(now, i);
    }
    pass_tile(now, slot);
  }
  /// One frame for the tile and what precedes it. False where there is none.
  __device__ __forceinline__ bool set_frames(int slot, states<group, C> (&before)[runs]) const {
    auto& thread = block_threads.thread;
    const bool folded_in_frame = in_frame[slot] != 0;
    bool in_one_frame = true;
    C frame[scan_count<group>], sum[scan_count<group>], scale[scan_count<group>];
    const states<group, C> all = get(aggregate + slot * components);
    for_each_index(sequence_of<scans>{}, [&]<int Scan>(index_constant<Scan>) {
      if constexpr (is_log_sum<group, Scan>) {
        const auto& [m, s] = state_of<Scan>(thread.carry[0]);  // as choose_frames left it
        const auto& [own_m, own_s] = state_of<Scan>(all);
        const bool carries = holds_frame(m) && s > C(0);
        frame[Scan] = carries ? m : own_m;
        sum[Scan] = carries ? s : C(0);
        scale[Scan] = exp_in_frame(own_m, frame[Scan]);
        const C most = sum[Scan] + own_s * scale[Scan];
        if (thread.valid > 0)
          in_one_frame =
              in_one_frame && (carries || (s == C(0) && folded_in_frame)) && most < C(largest_sum<C>);
      }
    });
    if (!in_one_frame) return false;
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      before[run] = preceding_sums<true>(slot, run);
      for_each_index(sequence_of<scans>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>) {
          auto& [m, s] = state_of<Scan>(before[run]);
          m = frame[Scan];
          C factor = scale[Scan];
          if (!folded_in_frame)
            factor = exp_in_frame(preceding_of(slot, run, component_index<group, scans>(Scan, 0)), m);
          s = sum[Scan] + s * factor;
        } else {
          auto left = state_of<Scan>(thread.carry[0]);
          combiner<group, Scan, all_components<group, Scan>>::apply(left, state_of<Scan>(before[run]));
          state_of<Scan>(before[run]) = left;
        }
      });
    }
    return true;
  }
  __device__ __forceinline__ void finish_as_defined(unsigned i) {
    const tile_name now = name_of(i);
    find_row(now);
    take_prefix(slot_of(i));
    finish_here(now, i);
    pass_tile(now, slot_of(i));
  }
  __device__ __forceinline__ void finish_here(const tile_name& now, unsigned i) {
    const int slot = slot_of(i);
    auto here = tile_at(now);
    here.load(stage(i));
    states<group, C> before[runs];
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      before[run] = preceding_run(slot, run);
      leave_frames<group, scans>(before[run]);
      combine_onto<group, scans>(block_threads.thread.carry[0], before[run]);
    }
    here.template finish<0, false>(before);
  }
  __device__ __forceinline__ void finish_by_turns(unsigned i) {
    const tile_name now = name_of(i);
    find_row(now);
    take_prefix(slot_of(i));
    auto& thread = block_threads.thread;
    auto here = tile_at(now);
    here.load(stage(i));
    auto folding = tile_type::template fold_stage<0>::evaluate_uniforms(a.parameters);
    states<group, C> before[runs];
#pragma unroll
    for (int run = 0; run < runs; ++run) before[run] = thread.carry[0];
    block_threads.template begin_turns<scans>();
    bool again = true;
#pragma unroll 1
    while (again) {
      states<group, C> local[runs];
#pragma unroll
      for (int run = 0; run < runs; ++run) {
        local[run] = before[run];
        block_threads.template set_start<scans>(run, local[run]);
        here.template fold<0, 0, false, uses_last<group> ? tile_mask::steps : tile_mask::none>(
            folding, run, local[run], local[run]);
      }
      again = block_threads.template take_turn<scans>(local, before);
    }
    here.template finish<0, false>(before);
    settle(now, slot_of(i));
    wait_for_all(threads);  // the exchange is the caller's again
  }

  /// The carry has moved past the tile: publishes it where others may want it; at the end of the row it is
  /// the last state.
  __device__ __forceinline__ void settle(const tile_name& now, int slot) {
    auto& thread = block_threads.thread;
    if constexpr (may_overflow) {
      if (thread.writes) {
        publish(now.row, levels + 1, now.number, thread.carry[0], published::state);
        if (late[slot] != 0)
          publish(now.row, levels, (now.number + 1) >> (levels * log2_radix), thread.carry[0],
                  published::state);
      }
    }
    if (static_cast<std::int64_t>(now.number) == book.tiles - 1) thread.template boundary<1>();
  }

  __device__ __forceinline__ void work() {
#pragma unroll 1
    for (unsigned i = 0; i < 2; ++i)
      if (threadIdx.x == 0) note(i, atomicAdd(book.ticket, 1U));
    wait_for_all(threads);
    prefetch(name_of(0), 0);
    unsigned end = 0xffffffffU;  // the first tile that is none
#pragma unroll 1
    for (unsigned i = 0;; ++i) {
      const tile_name now = name_of(i);
      look_ahead(now);
      wait_for_all(threads);
      prefetch(name_of(i + 1), i + 1);
      if (now.exists()) {
        __pipeline_wait_prior(1);
        fold(now, i);
      } else if (i < end) {
        end = i;
      }
      arrive_at<meeting>(folded_barrier(i));
      if (i >= delay) wait_at<meeting>(found_barrier(i - delay));
      std::uint32_t drawn = 0;  // no sooner: a ticket that is drawn and not folded keeps others waiting
      if (threadIdx.x == 0) drawn = atomicAdd(book.ticket, 1U);
      if (i >= delay) finish(name_of(i - delay), i - delay);
      if (threadIdx.x == 0) note(i + 2, drawn);
      if (end != 0xffffffffU && i + 1 >= end + delay) return;
    }
  }

  __device__ __forceinline__ void run() {
    if (threadIdx.x < threads)
      work();
    else
      scout();
  }
};

template <class K, class Arrangement>
__global__ void __launch_bounds__(lookback<K, Arrangement>::all_threads,
                                  cuda_lookback_policy::blocks_resident)
    lookback_kernel(const __grid_constant__ typename K::arguments a,
                    const __grid_constant__ lookback_arguments book) {
  extern __shared__ __align__(16) unsigned char shared[];
  lookback<K, Arrangement>(a, book, shared).run();
}

}  // namespace scandsl::cuda_detail
