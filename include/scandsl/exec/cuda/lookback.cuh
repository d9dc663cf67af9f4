#pragma once
#include "scandsl/exec/cuda/row.cuh"
#include "scandsl/exec/cuda/scanner.cuh"

/// The look-back: many blocks share the tiles of a few rows, each tile read and written once.
///
/// Tiles are handed out by ticket, in the order in which the scan goes through them. A block folds a tile and
/// publishes its state (its aggregate); the block that began first, the scanner (scanner.cuh), publishes what
/// precedes each tile.
/// Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016, is the scheme;
/// here
///   - no block looks back itself: it publishes one state and reads one. What precedes a tile is known two
///     trips through memory after the last tile before it has been folded;
///   - a tile is finished only after the block has folded its next few, when what precedes it has long been
///     known. Tiles wait in shared memory meanwhile, where the copy engine also brings the tiles to come;
///   - waiting is the work of a warp of its own (the messenger).
/// A block waits for the scanner, which is running, and through it for lower tickets than its own, whose
/// blocks are running: where the device runs two blocks at a time, the lowest ticket can always go on.
namespace scandsl::cuda_detail {

template <class K, class Arrangement> struct lookback;

/// What few tiles need, as functions of their own, out of the way of the kernel's registers.
template <class K, class Row>
using rolled_row = row<K, Row::place::width, Row::runs, Row::threads, !leaves_wide_data<K>>;
template <class K, class Arrangement>
__device__ __noinline__ void fold_in_order(const typename K::arguments& a, const lookback_arguments& book,
                                           unsigned char* shared, unsigned i) {
  lookback<K, rolled_row<K, Arrangement>>(a, book, shared).fold_as_defined(i);
}
template <class K, class Arrangement>
__device__ __noinline__ void finish_in_order(const typename K::arguments& a, const lookback_arguments& book,
                                             unsigned char* shared, unsigned i) {
  lookback<K, rolled_row<K, Arrangement>>(a, book, shared).finish_as_defined(i);
}
template <class K, class Arrangement>
__device__ __noinline__ void finish_in_turns(const typename K::arguments& a, const lookback_arguments& book,
                                             unsigned char* shared, unsigned i) {
  lookback<K, rolled_row<K, Arrangement>>(a, book, shared).finish_by_turns(i);
}

template <class K, class Arrangement> struct lookback {
  using group = typename K::group;
  using C = typename K::compute;
  using scans = scans_in<group, 0>;
  static constexpr int runs = Arrangement::runs, threads = Arrangement::threads;
  static_assert(Arrangement::lanes == 1);
  /// Tiles folded before one is finished; slots for what is known of them; stages for their elements.
  static constexpr int delay = cuda_lookback_policy::delay, slots = delay + 1, stage_count = delay + 2,
                       tickets = 16;
  /// Behind the threads that fold and finish comes the messenger's warp.
  static constexpr int all_threads = threads + 32;
  static_assert(32 * scanner<group, C>::warps <= all_threads);
  static constexpr int components = component_capacity<group>;
  using all_states = published_states<group, C>;
  static constexpr bool may_overflow = all_states::may_overflow;
  static constexpr bool framed = can_be_framed<K, 0>;

  struct tile_name {
    std::uint32_t row, number;  ///< of the tile along it
    static constexpr std::uint32_t none = 0xffffffffU;
    __device__ __forceinline__ bool exists() const { return number != none; }
  };
  /// Where tiles wait as exponentials, of which the fold has all, the finish computes none.
  struct waiting_place : Arrangement::place {
    static constexpr bool waits = true;
    __device__ __forceinline__ explicit waiting_place(const typename Arrangement::place& where)
        : Arrangement::place(where) {}
  };
  static constexpr bool waits = exponentials_wait<K> && !Arrangement::place::rolled;
  using tile_type = tile<K, 0, std::conditional_t<waits, waiting_place, typename Arrangement::place>, false>;

  const typename K::arguments& a;
  all_states all;
  Arrangement block_threads;
  unsigned char* stages;
  volatile std::uint64_t* told;
  C *preceding, *aggregate, *seed, *prefix;
  volatile std::uint32_t *unfit_tile, *in_frame;
  volatile tile_name* names;
  volatile std::uint32_t* scans_here;

  static constexpr int stage_bytes = tile_type::stage_bytes;
  static constexpr int kept_states = slots * components * (runs * threads + 3),
                       exchange_elements = Arrangement::exchange_elements(threads);
  /// Shared memory, in order: stages, or what the scanner's warps tell each other; what precedes each
  /// thread's runs in a tile; the tile's aggregate, seed and prefix; the threads' exchange; flags and
  /// tickets.
  static constexpr std::size_t all_stage_bytes =
      larger(static_cast<std::size_t>(stage_count * stage_bytes),
             sizeof(std::uint64_t) * scanner<group, C>::told_words);
  static constexpr std::size_t shared_bytes() {
    return all_stage_bytes + sizeof(C) * static_cast<std::size_t>(kept_states + exchange_elements) +
           sizeof(std::uint32_t) * static_cast<std::size_t>(2 * slots + 2 * tickets + 1);
  }

  static __device__ __forceinline__ C* behind_stages(unsigned char* shared) {
    return reinterpret_cast<C*>(shared + all_stage_bytes);
  }
  __device__ __forceinline__ lookback(const typename K::arguments& given, const lookback_arguments& where,
                                      unsigned char* shared)
      : a(given), all{where}, block_threads(given, behind_stages(shared) + kept_states), stages(shared),
        told(reinterpret_cast<std::uint64_t*>(shared)), preceding(behind_stages(shared)),
        aggregate(preceding + slots * components * runs * threads), seed(aggregate + slots * components),
        prefix(seed + slots * components) {
    std::uint32_t* const flags = reinterpret_cast<std::uint32_t*>(block_threads.exchange + exchange_elements);
    unfit_tile = flags;
    in_frame = flags + slots;
    names = reinterpret_cast<tile_name*>(flags + 2 * slots);
    scans_here = flags + 2 * slots + 2 * tickets;
  }
  /// Barriers: a tile has been folded, and what precedes it has been found.
  static __device__ __forceinline__ int folded_barrier(unsigned i) { return 1 + slot_of(i); }
  static __device__ __forceinline__ int found_barrier(unsigned i) { return 1 + slots + slot_of(i); }
  static __device__ __forceinline__ int slot_of(unsigned i) { return static_cast<int>(i % slots); }

  /// Notes what ticket the block's tile i has, of which the scanner had the first. One thread draws all
  /// tickets of a block, so that they ascend.
  __device__ __forceinline__ void note(unsigned i, std::uint32_t ticket) const {
    volatile tile_name& name = names[i % tickets];
    name.number = tile_name::none;
    const std::uint32_t at = ticket - 1;
    if (at >= static_cast<std::uint64_t>(tiles_of_row() * all.book.rows)) return;
    const auto tiles = static_cast<std::uint32_t>(tiles_of_row());
    name.row = at / tiles;
    name.number = at - at / tiles * tiles;
  }
  __device__ __forceinline__ tile_name name_of(unsigned i) const {
    return {names[i % tickets].row, names[i % tickets].number};
  }

  __device__ __forceinline__ std::int64_t tiles_of_row() const { return all.book.tiles; }
  /// The tile's number among those of all rows.
  __device__ __forceinline__ std::uint32_t of_all(const tile_name& now) const {
    return now.row * static_cast<std::uint32_t>(tiles_of_row()) + now.number;
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

  // ---- the messenger

  /// Brings what precedes each tile of the block.
  __device__ __forceinline__ void follow() const {
#pragma unroll 1
    for (unsigned i = 0;; ++i) {
      wait_at<all_threads>(folded_barrier(i));
      const tile_name now = name_of(i);
      if (!now.exists()) return;
      if (threadIdx.x % 32 == 0) {
        states<group, C> found;
        const std::uint32_t tile = of_all(now);
        if (now.number == 0)
          found = get(seed + slot_of(i) * components);
        else if (!all.wait_for(tile_state::before, tile, found))
          all.wait_for(tile_state::past, tile - 1, found);
        choose_frames(found);
        put(prefix + slot_of(i) * components, found);
      }
      __syncwarp();
      arrive_at<all_threads>(found_barrier(i));
    }
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
  // ---- the threads that fold and finish

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

  /// Takes the row of a tile. `begins`: to fold its first tile, which stores what is due and leaves the
  /// scans' seeds.
  __device__ __forceinline__ void find_row(const tile_name& now, bool begins = false, int slot = 0) {
    if (now.row == row_at && !begins) return;
    row_at = now.row;
    auto& thread = block_threads.thread;
    block_threads.template find<false, true>(now.row, thread);  // fewer rows than the 2^31 tiles there may be
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
  /// Where a tile of the row at hand lies.
  __device__ __forceinline__ stretch stretch_of(const tile_name& now) const {
    const auto& thread = block_threads.thread;
    const std::int64_t before = static_cast<std::int64_t>(now.number) * tile_steps;
    int steps = tile_steps;
    if (ends_early(now))
      steps = now.number == whole_tiles ? static_cast<int>(thread.high - thread.low - before) : 0;
    return {a.reversed[0] ? thread.high - before - steps : thread.low + before, steps};
  }
  __device__ __forceinline__ tile_type tile_at(const stretch& where) const {
    const typename Arrangement::place& place =
        block_threads.template tile_at<0>(block_threads.thread, where, a.reversed[0]);
    return tile_type(place);
  }
  __device__ __forceinline__ bool ends_early(const tile_name& now) const { return now.number >= whole_tiles; }
  __device__ __forceinline__ unsigned char* stage(unsigned i) const {
    return stages + static_cast<int>(i % stage_count) * stage_bytes;
  }

  /// Has a tile fetched; where that lies.
  __device__ __forceinline__ stretch prefetch(const tile_name& now, unsigned i) {
    stretch where{0, 0};
    if (now.exists()) {
      find_row(now);
      where = stretch_of(now);
      tile_at(where).prefetch(stage(i));
    }
    __pipeline_commit();
    return where;
  }

  using first_step = look<K, 0, false, 1>;

  /// Folds a tile, whose first step has been looked at, and publishes its state.
  __device__ __forceinline__ void fold(const tile_name& now, const stretch& where, unsigned i,
                                       const first_step& first) {
    find_row(now, now.number == 0, slot_of(i));
    if constexpr (framed) {
      auto& thread = block_threads.thread;
      auto here = tile_at(where);
      here.load(stage(i));
      states<group, C> total[1], of_runs[runs];
      set_identity<group, scans>(thread.carry[0]);
      if (!(uses_last<group> && ends_early(now)) && fold_in_frame(here, first, of_runs, total)) {
        if constexpr (waits) here.leave_exponentials(stage(i));
        leave_state<true>(now, i, of_runs, total, false);
      } else {
        fold_in_order<K, Arrangement>(a, all.book, stages, i);
      }
    } else {
      fold_here(now, where, i);
    }
  }
  __device__ __forceinline__ void fold_as_defined(unsigned i) {
    const tile_name now = name_of(i);
    find_row(now);
    fold_here(now, stretch_of(now), i);
    wait_for_all(threads);  // the exchange is the caller's again
  }
  __device__ __forceinline__ void fold_here(const tile_name& now, const stretch& where, unsigned i) {
    auto& thread = block_threads.thread;
    auto here = tile_at(where);
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
    leave_state<false>(now, i, of_runs, total, unfit_stretch);
  }
  template <bool Framed>
  __device__ __forceinline__ void leave_state(const tile_name& now, unsigned i,
                                              const states<group, C> (&of_runs)[runs],
                                              const states<group, C> (&total)[1], bool unfit_stretch) const {
    const int slot = slot_of(i);
    if (block_threads.thread.writes) {
      states<group, C> own = total[0];
      bool fit = !unfit_stretch;
      if (now.number == 0) {
        const states<group, C> start = get(seed + slot * components);
        fit = fit && !all.infinite(start);
        combine_onto<group, scans>(start, own);
      }
      all.publish(tile_state::own, of_all(now), own, fit);
      put(aggregate + slot * components, total[0]);
    }
    keep_preceding<Framed>(slot, of_runs);
    if (threadIdx.x == 0) {
      unfit_tile[slot] = unfit_stretch;
      in_frame[slot] = Framed;
    }
  }

  /// Has the first step of a tile fetched, for its frame: the tile is on its way, and so is that then.
  /// Nothing is computed of it before the threads have met, so that they do not wait for both.
  __device__ __forceinline__ first_step look_ahead(const tile_name& now, const stretch& where) {
    const bool exists = framed && where.steps > 0;  // only a tile that exists has some
    if (exists) find_row(now);
    return {block_threads.thread, a.reversed[0] ? where.low + where.steps - 1 : where.low, exists};
  }

  /// With the tile's first element as the frame of its sums, of its own: what was handed to the block before
  /// differs from run to run.
  __device__ __forceinline__ bool fold_in_frame(tile_type& here, const first_step& first,
                                                states<group, C> (&of_runs)[runs],
                                                states<group, C> (&total)[1]) {
    auto u = tile_type::template fold_stage<0>::evaluate_uniforms(a.parameters);
    bool doubtful = false;
    states<group, C> local[runs], start;
    set_identity<group, scans, true>(start);
    first.for_elements(u, [&]<int Scan>(index_constant<Scan>, int, C element) {
      const float frame = rintf(4.0F * static_cast<float>(element)) * 0.25F;
      doubtful = doubtful || (!holds_frame(C(frame)) && block_threads.thread.valid > 0);
      state_of<Scan>(start)[0] = C(frame);
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
    if (!may_overflow && !(uses_last<group> && ends_row(now))) return;
    auto& carry = block_threads.thread.carry[0];
    states<group, C> own = get(aggregate + slot * components);
    combine_onto<group, scans>(carry, own);
    copy_states<group, scans>(own, carry);
    settle(now);
  }

  /// Finishes a tile, for which what precedes it is there.
  __device__ __forceinline__ void finish(const tile_name& now, unsigned i) {
    const int slot = slot_of(i);
    find_row(now);
    take_prefix(slot);
    if constexpr (may_overflow) {
      const auto& thread = block_threads.thread;
      if (unfit_tile[slot] != 0 ||
          (thread.valid > 0 && all.infinite(thread.carry[0])))  // all threads know it
        return finish_in_turns<K, Arrangement>(a, all.book, stages, i);
    }
    if constexpr (framed) {
      states<group, C> before[runs];
      C scale[scan_count<group>];
      if (set_frames(slot, before, scale)) {
        auto here = tile_at(stretch_of(now));
        if constexpr (waits)
          here.take_exponentials(stage(i), scale[kept_exponentials<group>::list[0]]);
        else
          here.load(stage(i));
        here.template finish<0, true, false, waits>(before, block_threads.thread.carry);
      } else {
        return finish_in_order<K, Arrangement>(a, all.book, stages, i);
      }
    } else {
      finish_here(now, i);
    }
    pass_tile(now, slot);
  }
  /// One frame for the tile and what precedes it, and what the tile's own sums are scaled by for it. False
  /// where there is none.
  __device__ __forceinline__ bool set_frames(int slot, states<group, C> (&before)[runs],
                                             C (&scale)[scan_count<group>]) const {
    auto& thread = block_threads.thread;
    const bool folded_in_frame = in_frame[slot] != 0;
    bool in_one_frame = !waits || folded_in_frame;
    C frame[scan_count<group>], sum[scan_count<group>];
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
          if (!waits && !folded_in_frame)
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
  /// Loads a tile that has been folded.
  __device__ __forceinline__ void load(tile_type& here, unsigned i) const {
    if (exponentials_wait<K> && in_frame[slot_of(i)] != 0)
      here.load();  // what waits is not what was read
    else
      here.load(stage(i));
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
    auto here = tile_at(stretch_of(now));
    load(here, i);
    states<group, C> before[runs];
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      before[run] = preceding_run(slot, run);
      leave_frames<group, scans>(before[run]);
      combine_onto<group, scans>(block_threads.thread.carry[0], before[run]);
    }
    here.template finish<0, false>(before, block_threads.thread.carry);
  }
  __device__ __forceinline__ void finish_by_turns(unsigned i) {
    const tile_name now = name_of(i);
    find_row(now);
    take_prefix(slot_of(i));
    auto& thread = block_threads.thread;
    auto here = tile_at(stretch_of(now));
    load(here, i);
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
    here.template finish<0, false>(before, block_threads.thread.carry);
    settle(now);
    wait_for_all(threads);  // the exchange is the caller's again
  }

  __device__ __forceinline__ bool ends_row(const tile_name& now) const {
    return static_cast<std::int64_t>(now.number) == tiles_of_row() - 1;
  }
  /// The carry has moved past the tile: publishes it for those who cannot do with less; at the end of the row
  /// it is the last state.
  __device__ __forceinline__ void settle(const tile_name& now) {
    auto& thread = block_threads.thread;
    if constexpr (may_overflow)
      if (thread.writes) all.publish(tile_state::past, of_all(now), thread.carry[0]);
    if (ends_row(now)) thread.template boundary<1>();
  }

  __device__ __forceinline__ void work() {
    tile_name now = name_of(0);
    stretch where = prefetch(now, 0);
    unsigned end = 0xffffffffU;  // the first tile that is none
#pragma unroll 1
    for (unsigned i = 0;; ++i) {
      const first_step first = look_ahead(now, where);
      wait_for_all(threads);
      const tile_name next = name_of(i + 1);
      const stretch where_next = prefetch(next, i + 1);
      if (now.exists()) {
        __pipeline_wait_prior(1);
        fold(now, where, i, first);
      } else if (i < end) {
        end = i;
      }
      if (i <= end) arrive_at<all_threads>(folded_barrier(i));
      if (i >= delay) wait_at<all_threads>(found_barrier(i - delay));
      std::uint32_t drawn = 0;  // no sooner: a ticket that is drawn and not folded keeps others waiting
      if (threadIdx.x == 0) drawn = atomicAdd(all.book.ticket, 1U);
      if (i >= delay) finish(name_of(i - delay), i - delay);
      if (threadIdx.x == 0) note(i + 2, drawn);
      if (end != 0xffffffffU && i + 1 >= end + delay) return;
      now = next;
      where = where_next;
    }
  }

  __device__ __forceinline__ void run() {
    if (threadIdx.x == 0) {
      const std::uint32_t first = atomicAdd(all.book.ticket, 1U);
      *scans_here = first == 0;
      if (first > 0) {
        note(0, first);
        note(1, atomicAdd(all.book.ticket, 1U));
      }
    }
    for (int i = static_cast<int>(threadIdx.x); i < scanner<group, C>::told_words; i += all_threads)
      told[i] = 0;
    __syncthreads();
    if (*scans_here != 0) {
      if (threadIdx.x < 32 * scanner<group, C>::warps)
        scanner<group, C>{all, told}.run(static_cast<int>(threadIdx.x) / 32);
    } else if (threadIdx.x < threads) {
      work();
    } else {
      follow();
    }
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
