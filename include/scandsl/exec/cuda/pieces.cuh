#pragma once
#include "scandsl/exec/cuda/piece_sums.cuh"

/// Few lanes that lie side by side: each is cut into pieces, so that there is work for every multiprocessor,
/// and gone through twice (reduce, then scan). A block has one piece of its lanes, and each of its threads a
/// stretch of that for itself, through which it goes alone: no thread waits for another on the way.
///
///                 piece 0               piece 1               piece 2
///             |--.--.--.--|         |--.--.--.--|         |--.--.--.--|        stretches of four threads
///     fold      f0 f1 f2 f3 -> F0     f4 f5 f6 f7 -> F1     ..         -> F2    each thread, then together
///     walk    ->    ->    ->        F0 ->    ->           F0 + F1 ->            from what precedes it
///
/// The fold keeps what the scans make of each piece, and what precedes each stretch in its piece; where the
/// walk begins, a block adds up the pieces before its own. Both are launches of one kernel. What a stretch
/// alone cannot tell (states that overflow where the scan in order does not) a block finds by going through
/// all that precedes its piece in order.
namespace scandsl::cuda_detail {

template <class K, class Strip> struct piece_worker;

/// What few blocks or threads need, as functions of their own, out of the way of the kernel's registers.
template <class K, class Strip>
__device__ __noinline__ void fold_piece_as_defined(const typename K::arguments& a, const piece_arguments& of,
                                                   unsigned char* shared) {
  piece_worker<K, typename Strip::template slow_of<K>>(a, of, shared).template fold<false>();
}
template <class K, class Strip>
__device__ __noinline__ void walk_stretch_as_defined(const typename K::arguments& a,
                                                     const piece_arguments& of, unsigned char* shared,
                                                     const walk_state<K, Strip::lanes>& state) {
  piece_worker<K, typename Strip::template slow_of<K>>(a, of, shared).walk_rest(state);
}
template <class K, class Strip>
__device__ __noinline__ void walk_from_start(const typename K::arguments& a, const piece_arguments& of,
                                             unsigned char* shared) {
  piece_worker<K, typename Strip::template slow_of<K>>(a, of, shared).walk_in_order();
}

template <class K, class Strip> struct piece_worker : piece_sums<K, Strip> {
  using base = piece_sums<K, Strip>;
  using base::a, base::components, base::groups_of, base::lanes, base::may_overflow, base::of,
      base::only_folds, base::piece, base::segments, base::strip_threads, base::threads;
  using typename base::C, typename base::group, typename base::kept_type, typename base::scans;
  static constexpr int steps = Strip::place::length;
  /// Where a tile lies that is whole: a compiler need not ask.
  struct whole_place : Strip::place {
    static constexpr bool can_share = false, repeats = false, ragged = false;
    __device__ __forceinline__ whole_place(const lane_group<K, lanes>& thread, const stretch& where,
                                           bool reversed)
        : Strip::place(thread, where, 0, reversed) {}
    static constexpr __device__ __forceinline__ int steps(int) { return Strip::place::length; }
    static constexpr __device__ __forceinline__ bool has(int) { return true; }
    static constexpr __device__ __forceinline__ bool has_all() { return true; }
    __device__ __forceinline__ int count(int) const { return this->thread.valid; }
    __device__ __forceinline__ bool whole(int t) const {
      return this->thread.a.tensor[t].mode == access::vector && this->thread.complete;
    }
  };
  using tile_type = tile<K, 0, whole_place, false>;
  static constexpr bool framed = can_be_framed<K, 0>;
  static constexpr int stage_count = cuda_piece_policy::stages, stage_bytes = tile_type::stage_bytes;

  unsigned char *shared, *stages;
  std::int64_t begin = 0;  ///< the piece's first step
  std::int64_t own = 0;    ///< steps of a stretch
  int stage = 0;           ///< of the next tile

  __device__ __forceinline__ piece_worker(const typename K::arguments& given, const piece_arguments& what,
                                          unsigned char* memory)
      : base(given, what, memory), shared(memory), stages(memory + exchange_bytes(given.lane_threads)) {
    std::int64_t block = blockIdx.x, before = 0, side = a.lanes, length = of.length;
    const bool joins = only_folds && !of.folds, listed = only_folds && of.parts.count > 0;
    if (joins && !listed) {
      piece = of.pieces;  // it has all before it
    } else {
      side = of.side;
      std::int64_t number = block;
      block = split_off(number, (side + a.lane_threads - 1) >> a.log2_lane_threads);
      if (joins) {
        this->first_piece = of.parts.before(number);
        piece = of.parts.before(number + 1);
      } else if (listed) {
        const part_list::part part = of.parts[static_cast<std::int32_t>(number)];
        piece = number;
        number = part.sequence;
        begin = part.begin;
        length = part.length;
      } else {
        piece = split_off(number, of.pieces);
        begin = piece * length;
      }
      before = number * side;
      if (listed) this->first_kept = before;
    }
    const std::int64_t at = (block << a.log2_lane_threads) + strip_threads.lane_thread;
    this->first_unit = before + (block << a.log2_lane_threads);
    auto& thread = strip_threads.thread;
    thread.template find<false>(before + at, 0);
    if (at >= side) thread.valid = 0;
    if (only_folds && of.folds) {  // what is left for a lane's last part is shared by all threads
      const std::int64_t tile = (threads * steps) >> a.log2_lane_threads, left = a.steps - begin;
      static_assert((threads * steps & (threads * steps - 1)) == 0);
      if (left < length) length = (left + tile - 1) & -tile;
    }
    own = (length << a.log2_lane_threads) / threads;
  }
  /// Shared memory: of the exchange, and of the stages behind it.
  static constexpr __host__ __device__ int exchange_bytes(int lane_threads) {
    const int elements = larger(Strip::exchange_elements(lane_threads),
                                components * groups_of(lane_threads) * lane_threads * lanes);
    return (static_cast<int>(sizeof(C)) * elements + 15) / 16 * 16;
  }
  static std::size_t shared_bytes(int lane_threads) {
    return static_cast<std::size_t>(exchange_bytes(lane_threads) +
                                    (only_folds ? 0 : stage_count * stage_bytes));
  }
  static std::int64_t state_bytes(const piece_arguments& of, int lane_threads) {
    const std::int64_t stretches = only_folds ? 0 : threads / lane_threads;
    return of.pieces * of.lanes * (components * (1 + stretches) + 1) * static_cast<std::int64_t>(sizeof(C));
  }

  // ---- the two launches

  __device__ __forceinline__ void run() {
    if constexpr (!only_folds)
      if (of.folds) {
        let_next_begin();
        return fold<framed>();
      }
    if constexpr (only_folds) let_next_begin();
    walk();
  }

  /// What the scans make of the stretches, and of the piece, alone.
  template <bool Framed> __device__ __forceinline__ void fold() {
    auto& thread = strip_threads.thread;
    const std::int64_t mine = steps_of_mine();
    begin_stages(mine);
    auto u = tile_type::template fold_stage<0>::evaluate_uniforms(a.parameters);
    states<group, C> local[lanes], preceding[lanes], total[lanes];
    const bool doubtful = begin_piece<Framed>(local, u);
    std::int64_t at = 0;
#pragma unroll 1
    for (; at + steps <= mine; at += steps) {
      tile_type now = tile_at(at);
      load(now, at, mine);
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        now.template fold<0, 0, Framed, tile_mask::none>(u, lane, local[lane], local[lane]);
    }
    // Nobody asks for the piece with which lanes end.
    const bool unfit =
        strip_threads.template join<scans, Framed, true>(local, preceding, total, doubtful, mine > 0);
    if constexpr (Framed) {
      if (unfit) {
        finish_stages();
        wait_for_all(threads);  // the exchange is another's now
        return fold_piece_as_defined<K, Strip>(a, of, shared);
      }
      take_frames(local, preceding);
      take_frames(local, total);
    }
    keep_piece(total, unfit);
    if (!unfit) this->put(this->stretch_at(), of.pieces * of.lanes * segments(), preceding);
  }

  /// Goes through the thread's stretch, from what precedes it.
  __device__ __forceinline__ void walk() {
    auto& thread = strip_threads.thread;
    const std::int64_t mine = only_folds ? 0 : steps_of_mine();
    if (!only_folds && a.chunk_dimension >= 0 && !any_of_all(threads, mine > 0)) return;  // shorter chunks
    if constexpr (!only_folds) begin_stages(mine);
    thread.load_still();
    wait_for_last();  // so far nothing has been read that the fold writes, and nothing written that it reads
    begin_lanes();
    [[maybe_unused]] const bool fit = this->take_preceding();
    if constexpr (may_overflow)
      if (!fit) {
        finish_stages();
        wait_for_all(threads);  // the exchange is another's now
        return walk_from_start<K, Strip>(a, of, shared);
      }
    if constexpr (!only_folds)
      if (!walk_tiles(mine)) return;
    end_lanes();
  }
  /// The same from somewhere on, with the scans' own operators.
  __device__ __forceinline__ void walk_rest(const walk_state<K, lanes>& given) {
    auto& thread = strip_threads.thread;
    walk_state<K, lanes>::copy(given, thread);
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) leave_frames<group, scans>(thread.carry[lane]);
    const std::int64_t mine = steps_of_mine();
#pragma unroll 1
    for (std::int64_t at = given.from; at < mine; at += steps) {
      auto now = part_at(at);
      now.load();
      now.template walk<false, true>(thread.carry, [](const auto&) { return true; });
    }
    end_lanes();
  }
  /// The block's piece by a walk from where its lanes begin.
  __device__ __forceinline__ void walk_in_order() {
    walker<K, Strip> all(a, shared);
    auto& thread = all.threads.thread;
    thread.template find<false>(strip_threads.thread.unit, 0);
    thread.valid = strip_threads.thread.valid;
    thread.load_still();
    begin_lanes(thread);
    const std::int64_t extent = a.chunk_dimension >= 0 ? a.chunk : a.steps,
                       from = only_folds || begin > extent ? extent : begin,
                       to = from + of.length < extent ? from + of.length : extent;
    all.walk_range(thread.low, thread.high, to, 0, from);
    if (only_folds || piece >= of.pieces - 1) thread.template boundary<1>();
  }

protected:
  /// What is once a lane, and the states with which a piece begins. True where its log-sums have no frame.
  template <bool Framed, class Uniforms>
  __device__ __forceinline__ bool begin_piece(states<group, C> (&local)[lanes], Uniforms& u) {
    auto& thread = strip_threads.thread;
    thread.load_still();
    const bool writes = thread.writes;
    thread.writes = false;  // that is for the second launch
    thread.template boundary<0>();
    thread.writes = writes;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      set_identity<group, scans>(local[lane]);
      set_identity<group, scans>(thread.carry[lane]);
    }
    if constexpr (Framed) return !frame_piece(local, u);
    return false;
  }
  /// Says of sums that were joined in the frames of `local` that they are in those.
  static __device__ __forceinline__ void take_frames(const states<group, C> (&local)[lanes],
                                                     states<group, C> (&joined)[lanes]) {
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      for_each_index(sequence_of<scans>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>)
          state_of<Scan>(joined[lane])[0] = state_of<Scan>(local[lane])[0];
      });
  }
  /// Keeps what the scans make of the piece, and whether that is fit, where anybody asks.
  __device__ __forceinline__ void keep_piece(states<group, C> (&total)[lanes], bool unfit) const {
    if (!strip_threads.thread.writes || strip_threads.thread.valid == 0) return;
    if (!unfit) this->put(this->piece_at(piece), of.pieces * of.lanes, total);
    if constexpr (may_overflow)
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        this->fitness_at(piece)[lane] = static_cast<kept_type>(unfit ? 1 : 0);
  }

  /// Walks the stretch's tiles. False where the rest was left to others.
  __device__ __forceinline__ bool walk_tiles(std::int64_t mine) {
    auto& thread = strip_threads.thread;
    bool settled = false;
    std::int64_t at = 0;
#pragma unroll 1
    for (; at + steps <= mine; at += steps) {
      tile_type now = tile_at(at);
      load(now, at, mine);
      if constexpr (framed)
        if (!settled && !frame_tile(now)) break;
      states<group, C> state[lanes];
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) state[lane] = thread.carry[lane];
      const bool fits = now.template walk<framed, false>(state, [&](const states<group, C>(&after)[lanes]) {
        if constexpr (!framed) return true;
        settled = sums_below(0x1p-10F * largest_sum<C>, after);
        return settled || sums_below(largest_sum<C>, after);
      });
      if (!fits) break;
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) copy_states<group, scans>(state[lane], thread.carry[lane]);
    }
    finish_stages();
    if (at < mine) {  // of the tile at hand nothing has been written
      walk_state<K, lanes> rest;
      walk_state<K, lanes>::copy(thread, rest);
      rest.from = at;
      walk_stretch_as_defined<K, Strip>(a, of, shared, rest);
      return false;
    }
    return true;
  }

  // ---- where things lie

  /// How many steps of the thread's stretch there are.
  __device__ __forceinline__ std::int64_t steps_of_mine() const {
    const auto& thread = strip_threads.thread;
    const std::int64_t left = thread.high - thread.low - (begin + strip_threads.segment * own);
    return thread.valid == 0 || left < 0 ? 0 : left < own ? left : own;
  }
  __device__ __forceinline__ std::int64_t before(std::int64_t at) const {
    return begin + strip_threads.segment * own + at;
  }
  /// The tile that begins `at` steps into the thread's stretch, which has all of its steps.
  __device__ __forceinline__ tile_type tile_at(std::int64_t at) const {
    const auto& thread = strip_threads.thread;
    const std::int64_t low = a.reversed[0] ? thread.high - before(at) - steps : thread.low + before(at);
    return tile_type(thread, stretch{low, steps}, a.reversed[0]);
  }
  /// ... which may lack some.
  __device__ __forceinline__ auto part_at(std::int64_t at) const {
    const auto& thread = strip_threads.thread;
    return tile<K, 0, typename Strip::place, false>(
        thread, stretch::after(thread.low, thread.high, before(at), steps, a.reversed[0]), 0, a.reversed[0]);
  }
  // ---- stages: each thread reads what it alone had fetched

  __device__ __forceinline__ void begin_stages(std::int64_t mine) {
#pragma unroll
    for (int i = 0; i + 1 < stage_count; ++i) {
      if ((i + 1) * steps <= mine) tile_at(i * steps).prefetch(stages + i * stage_bytes);
      __pipeline_commit();
    }
  }
  /// Loads the tile at `at`, and has one fetched to the stage of the tile before.
  __device__ __forceinline__ void load(tile_type& now, std::int64_t at, std::int64_t mine) {
    const int before = stage == 0 ? (stage_count - 1) * stage_bytes : stage - stage_bytes;
    const std::int64_t further = at + (stage_count - 1) * steps;
    if (further + steps <= mine) tile_at(further).prefetch(stages + before);
    __pipeline_commit();
    __pipeline_wait_prior(stage_count - 1);
    now.load(stages + stage);
    stage = stage == (stage_count - 1) * stage_bytes ? 0 : stage + stage_bytes;
  }
  static __device__ __forceinline__ void finish_stages() { __pipeline_wait_prior(0); }

  // ---- where lanes begin and end, of which one thread writes

  template <class Thread> __device__ __forceinline__ void begin_lanes(Thread& thread) const {
    const bool writes = thread.writes;
    thread.writes = writes && (only_folds || piece == 0);
    thread.template boundary<0>();
    thread.writes = writes;
  }
  __device__ __forceinline__ void begin_lanes() { begin_lanes(strip_threads.thread); }
  __device__ __forceinline__ void end_lanes() {
    auto& thread = strip_threads.thread;
    const std::int64_t extent = thread.high - thread.low - begin;
    if (only_folds) {
      thread.template boundary<1>();
    } else if (piece == of.pieces - 1) {
      const std::int64_t first = strip_threads.segment * own;
      thread.writes = extent <= 0 ? strip_threads.segment == 0 : first < extent && extent <= first + own;
      thread.template boundary<1>();
    }
  }

  // ---- frames

  /// Gives log-sums a frame somewhat above the piece's first element. False where there is none. (Sums have
  /// more room below than above, where float32 exponents have no bits to spare; below 2^-12 of the first
  /// element, which they include, they are not.)
  static constexpr float above = 8;
  template <class Uniforms>
  __device__ __forceinline__ bool frame_piece(states<group, C> (&state)[lanes], Uniforms& u) const {
    const auto& thread = strip_threads.thread;
    const bool exists = begin < thread.high - thread.low;
    bool framed_all = true;
    look_at<K, 0, false>(thread, a.reversed[0] ? thread.high - 1 - begin : thread.low + begin, exists, u,
                         [&]<int Scan>(index_constant<Scan>, int lane, C element) {
                           auto& carry = state_of<Scan>(state[lane]);
                           if (!set_frame(carry, element, true)) {
                             framed_all = framed_all && lane >= thread.valid;
                             carry = {C(0), C(0)};
                           }
                           carry[0] = carry[0] + C(above);
                         });
    return framed_all;
  }
  /// Sees to it that the thread's log-sums are in a frame. False where they are in none.
  __device__ __forceinline__ bool frame_tile(const tile_type& now) {
    auto& thread = strip_threads.thread;
    bool settled = true;
    for_log_sums(
        [&](int lane, auto& carry) { settled = settled && (lane >= thread.valid || holds_frame(carry)); });
    if (settled) return true;
    auto u = tile_type::template fold_stage<0>::evaluate_uniforms(a.parameters);
    look_at<K, 0, false>(thread, now.position(0, 0), true, u,
                         [&]<int Scan>(index_constant<Scan>, int lane, C element) {
                           auto& carry = state_of<Scan>(thread.carry[lane]);
                           if (!holds_frame(carry)) set_frame(carry, element, true);
                         });
    settled = true;
    for_log_sums([&](int lane, auto& carry) {
      settled = settled && (lane >= thread.valid || (carry[0] > C(-1e30F) && carry[0] < C(1e30F)));
    });
    return settled;
  }
  __device__ __forceinline__ bool sums_below(float limit, const states<group, C> (&state)[lanes]) const {
    bool below = true;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      for_each_index(sequence_of<scans>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>)
          below =
              below & ((lane >= strip_threads.thread.valid) | (state_of<Scan>(state[lane])[1] < C(limit)));
      });
    return below;
  }
  template <class F> __device__ __forceinline__ void for_log_sums(F&& f) {
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      for_each_index(sequence_of<scans>{}, [&]<int Scan>(index_constant<Scan>) {
        if constexpr (is_log_sum<group, Scan>) f(lane, state_of<Scan>(strip_threads.thread.carry[lane]));
      });
  }
};

template <class K, class Strip>
__global__ void __launch_bounds__(Strip::threads, 1)
    piece_kernel(const __grid_constant__ typename K::arguments a,
                 const __grid_constant__ piece_arguments of) {
  extern __shared__ __align__(16) unsigned char shared[];
  piece_worker<K, Strip>(a, of, shared).run();
}

}  // namespace scandsl::cuda_detail
