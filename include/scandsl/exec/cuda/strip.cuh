#pragma once
#include "scandsl/exec/cuda/barriers.cuh"
#include "scandsl/exec/cuda/tile.cuh"

/// The arrangement for lanes that lie side by side in memory (the scanned axis is strided): a thread holds
/// `Lanes` neighbouring lanes, a vector, and `Steps` consecutive steps of each.
///
///              lanes, a vector a thread
///            thread 0   thread 1  ...  lane_threads - 1
///   steps  +----------+----------+---
///   0..R-1 | t0       | t1       |      segment 0
///   R..    | t0 + W   |          |      segment 1      segments of one warp meet by shuffles,
///          ...                                         warps in shared memory
namespace scandsl::cuda_detail {

template <class K, int Lanes, int Steps, int Threads, bool Rolled = false> struct strip {
  using group = typename K::group;
  using C = typename K::compute;
  static constexpr int lanes = Lanes, runs = Lanes, threads = Threads, stage_threads = Threads;
  static constexpr bool has_streams = true, clustered = false, repeats = false;
  /// One tile is stream_kernel's, too.
  static constexpr bool streams_one_tile = sweep_count<group> > 1 || leaves_wide_data<K>;
  static constexpr bool keeps_carries = true, one_tile_leaves_carries = true;  ///< ... for gradients
  static constexpr int carry_interval = cuda_strip_policy::carry_steps;
  template <class Other> using of = strip<Other, Lanes, Steps, Threads, Rolled>;
  /// Of what is seldom run: smaller tiles, where carries are not saved by tiles, and rolled loops.
  template <class Other>
  using slow_of = strip<Other, Lanes, (sweep_count<group> == 1 && Steps > 4 ? Steps / 2 : Steps), Threads,
                        !leaves_wide_data<Other>>;
  /// Of threads that do nothing but join.
  template <class Other> using joining = strip<Other, Lanes, 1, Threads, true>;
  static constexpr int blocks_resident =
      (sweep_count<group> > 1                      ? cuda_strip_policy::resident_threads_of_sweeps
       : component_capacity<group> * sizeof(C) > 4 ? cuda_strip_policy::resident_threads_of_large_states
                                                   : cuda_strip_policy::resident_threads) /
      Threads;
  static constexpr int blocks_resident_of_one_tile(int) { return blocks_resident; }
  static constexpr bool in_stage = false, has_one_tile = true;
  using lane_state = lane_group<K, Lanes>;

  /// Where the thread's part of one tile lies.
  struct place {
    static constexpr int runs = Lanes, length = Steps, vectors = Steps, width = Lanes, threads = Threads,
                         lane_count = Lanes, stage_threads = Threads, run_apart = 1;
    static constexpr bool can_flip = false, vector_is_step = true, rolled = Rolled,
                          can_share = shares_tiles<group>, repeats = false, ragged = false;
    static constexpr __device__ __forceinline__ int run_of(int, int e) { return e; }
    static constexpr __device__ __forceinline__ int step_of(int v, int) { return v; }
    static constexpr __device__ __forceinline__ int vector_of(int, int step) { return step; }
    static constexpr __device__ __forceinline__ int element_of(int run, int) { return run; }
    static constexpr __device__ __forceinline__ int lane_of(int run) { return run; }
    static __device__ __forceinline__ int in_stage_threads() { return static_cast<int>(threadIdx.x); }

    const lane_state& thread;
    stretch of_tile;
    int start;  ///< step 0, counted from the stretch's low end
    int heading;
    int existing;  ///< steps that exist

    /// `from`: the thread's first step in scan order.
    __device__ __forceinline__ place(const lane_state& t, const stretch& tile, int from, bool reversed)
        : thread(t), of_tile(tile), start(reversed ? tile.steps - 1 - from : from),
          heading(reversed ? -1 : 1), existing(t.valid == 0 ? 0 : clamped(tile.steps - from, 0, Steps)) {}
    __device__ __forceinline__ bool flipped() const { return false; }
    __device__ __forceinline__ int direction() const { return heading; }
    __device__ __forceinline__ int steps(int) const { return existing; }
    __device__ __forceinline__ std::int64_t position(int, int step) const {
      return of_tile.low + (start + heading * step);
    }
    __device__ __forceinline__ int count(int v) const { return v < existing ? thread.valid : 0; }
    __device__ __forceinline__ bool whole(int t) const {
      return thread.a.tensor[t].mode == access::vector && thread.complete;
    }
    __device__ __forceinline__ bool has(int v) const { return v < existing; }
    __device__ __forceinline__ bool has_all() const { return existing == Steps; }
    __device__ __forceinline__ std::int64_t first(int t) const {
      return thread.place[t] + position(0, 0) * thread.a.walk[0].stride[t];
    }
    __device__ __forceinline__ std::int64_t next(int t) const { return heading * thread.a.walk[0].stride[t]; }

    /// Where the block's threads bring what a stage holds of tensor t together, rows of 16 bytes a thread:
    /// the row, counted in scan order, and the piece of it that are the thread's first.
    template <class T> struct shared_piece {
      static constexpr int vector = Lanes * static_cast<int>(sizeof(T)), count = Steps * vector / 16;
      int row, rows, piece;
      __device__ __forceinline__ explicit shared_piece(const typename K::arguments& a) {
        const int log2_row =
            a.log2_lane_threads + std::countr_zero(static_cast<unsigned>(vector)) - std::countr_zero(16u);
        row = static_cast<int>(threadIdx.x) >> log2_row;
        rows = Threads >> log2_row;
        piece = static_cast<int>(threadIdx.x) & ((1 << log2_row) - 1);
      }
      /// As threads' own vectors lie: a multiple of Steps rows further on it is the same step of threads
      /// further on (shares_stages).
      __device__ __forceinline__ std::uint32_t in_stage(const typename K::arguments& a) const {
        const int step = row & (Steps - 1), segment = row >> std::countr_zero(static_cast<unsigned>(Steps));
        return static_cast<std::uint32_t>((step * Threads + (segment << a.log2_lane_threads)) * vector +
                                          piece * 16);
      }
    };
    template <class T> __device__ __forceinline__ const unsigned char* shared_source(int t) const {
      const shared_piece<T> own(thread.a);
      const int lane_thread = static_cast<int>(threadIdx.x) & (thread.a.lane_threads - 1);
      return static_cast<const unsigned char*>(thread.a.tensor[t].data) + own.piece * 16 +
             (thread.place[t] - lane_thread * Lanes +
              (of_tile.low + (heading < 0 ? of_tile.steps - 1 - own.row : own.row)) *
                  thread.a.walk[0].stride[t]) *
                 static_cast<int>(sizeof(T));
    }
    /// Has the copy engine bring to a stage what the thread does, from `at` on. Whole: of a tile that has all
    /// steps.
    template <class T, bool Whole>
    __device__ __forceinline__ void bring(int t, std::uint32_t stage, const unsigned char* at) const {
      const shared_piece<T> own(thread.a);
      std::uint32_t to = stage + own.in_stage(thread.a);
      for_count<!Whole, shared_piece<T>::count>([&](int i) {
        if (Whole || own.row + i * own.rows < of_tile.steps) copy_16_async(to, at);
        at += thread.a.row_apart[t];
        to += Threads * 16 / Steps;
      });
    }
    /// Whether the tile has all steps.
    __device__ __forceinline__ bool is_whole() const { return of_tile.steps == tile_steps(thread.a); }
    __device__ __forceinline__ element_path path(int t) const {
      return {thread.place[t],
              position(0, 0),
              thread.a.inner_stride[t],
              0,
              heading,
              {existing * thread.valid, thread.valid, thread.valid}};
    }
  };

  static constexpr __host__ __device__ int tile_steps(int lane_threads) {
    return quotient_of_powers(threads, lane_threads) * Steps;
  }
  static __device__ __forceinline__ int tile_steps(const typename K::arguments& a) {
    return (threads * Steps) >> a.log2_lane_threads;
  }
  /// Elements of shared memory in which warps exchange states, twice.
  static constexpr int exchange_elements(int lane_threads) {
    return 2 * component_capacity<group> * (threads / larger(lane_threads, 32)) * Lanes * lane_threads;
  }

  lane_state thread;
  C* exchange;
  int lane_threads, lane_thread, segment;
  int bundles, bundle;  ///< the segments of one warp (or one segment, where it is more than a warp)
  int parity = 0, turn = -1;

  __device__ __forceinline__ strip(const typename K::arguments& a, C* shared)
      : thread(a), exchange(shared), lane_threads(a.lane_threads),
        lane_thread(static_cast<int>(threadIdx.x) & (a.lane_threads - 1)),
        segment(static_cast<int>(threadIdx.x) >> a.log2_lane_threads),
        bundles(Threads >> (a.lane_threads < 32 ? 5 : a.log2_lane_threads)),
        bundle(static_cast<int>(threadIdx.x) >> (a.lane_threads < 32 ? 5 : a.log2_lane_threads)) {
    thread.writes = segment == 0;
  }
  static constexpr __device__ __forceinline__ int block_threads() { return threads; }
  /// Waits for those that come and go together.
  static __device__ __forceinline__ void meet() { wait_for_all(threads); }
  static __device__ __forceinline__ void settle() {}
  /// Whether any of them says so.
  static __device__ __forceinline__ bool any(bool mine) { return any_of_all(threads, mine); }
  /// How many threads share a lane, and which of them this is, in the order of the first sweep.
  __device__ __forceinline__ int sharing() const { return threads >> thread.a.log2_lane_threads; }
  __device__ __forceinline__ int of_sharing() const { return segment; }
  /// As in a row: all threads of a block have one pair.
  static int stages_of_block(const typename K::arguments&) { return 1; }
  static constexpr __device__ __forceinline__ int own_stages() { return 0; }
  /// Steps of a tile before the thread's own.
  __device__ __forceinline__ int first_step() const { return segment * Steps; }
  /// The thread's unit of lanes in a block.
  __device__ __forceinline__ std::int64_t unit_of(std::int64_t block) const {
    return (block << thread.a.log2_lane_threads) + lane_thread;
  }
  /// Finds the lanes of a block.
  template <bool Packed> __device__ __forceinline__ void find(std::int64_t block, lane_state& found) const {
    const auto& a = thread.a;
    std::int64_t sequence = 0;
    if (Packed && a.segments > 1)
      sequence = block, block = split_off(sequence, (a.lanes + lane_threads - 1) >> a.log2_lane_threads);
    found.template find<Packed>(unit_of(block), sequence);
  }
  static std::int64_t blocks(const typename K::arguments& a) {
    return (a.lanes + a.lane_threads - 1) / a.lane_threads * a.segments;
  }
  static int block_size(const typename K::arguments&) { return threads; }
  static int units_of_block(const typename K::arguments& a) { return a.lane_threads; }
  /// As of rows, of each step; 0: of some blocks they are not side by side.
  static std::int64_t elements_at_once(const typename K::arguments& a, int) {
    const std::int64_t elements = std::int64_t{a.lane_threads} * Lanes;
    return a.inner_extent % elements == 0 ? elements : 0;
  }
  template <class T>
  __device__ __forceinline__ void fetch(const lane_state& lane, const stretch& where, int t) const {
    const std::int64_t first = lane.place[t] - lane_thread * Lanes;
#pragma unroll 1
    for (int step = static_cast<int>(threadIdx.x); step < where.steps; step += threads)
      fetch_into_cache<T, true>(thread.a.tensor[t], first + (where.low + step) * thread.a.walk[0].stride[t],
                                thread.a.ahead[t]);
  }

  static constexpr bool holds_places = false;
  template <int S, bool Anywhere = false>
  __device__ __forceinline__ tile<K, S, place, Anywhere> tile_at(const lane_state& lane, const stretch& where,
                                                                 bool reversed) const {
    return tile<K, S, place, Anywhere>(lane, where, segment * Steps, reversed);
  }

  /// The state onto which the next fold of run `lane` goes: the identity, or in turns what the turn before
  /// handed on.
  template <class Holder> __device__ __forceinline__ void set_start(int lane, states<group, C>& state) const {
    if (turn < 0)
      set_identity<group, Holder>(state);
    else
      state = get<Holder>(0, lane, state);
  }

  /// Joins the threads' states of the scans in Holder, which go through the tile in its own order or Back.
  /// `local` is each run folded onto the identity; `preceding` becomes what precedes the run in the tile,
  /// `total` the whole tile's state of each lane. True (for the whole block): nothing of that, for a thread
  /// was suspect, or overflows() says so, or (Framed) the frame does not hold. `exists`: some of the thread's
  /// steps do. Without Total, `total` is not wanted.
  template <class Holder, bool Framed, bool Total, bool Back = false>
  __device__ __forceinline__ bool join(states<group, C> (&local)[Lanes], states<group, C> (&preceding)[Lanes],
                                       states<group, C> (&total)[Lanes], bool suspect, bool exists) {
    parity ^= 1;
    const int in_warp = Back ? 31 - (static_cast<int>(threadIdx.x) & 31) : static_cast<int>(threadIdx.x) & 31,
              rank = Back ? bundles - 1 - bundle : bundle;
#pragma unroll 1
    for (int distance = lane_threads; distance < 32; distance *= 2) {
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane) {
        const states<group, C> left = shuffle_before<group, Holder, Framed, Back>(local[lane], distance);
        if (in_warp >= distance) combine_onto<group, Holder, Framed>(left, local[lane]);
      }
    }
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane) {
      preceding[lane] = shuffle_before<group, Holder, Framed, Back>(local[lane], lane_threads & 31);
      if (in_warp < lane_threads) set_identity<group, Holder, Framed>(preceding[lane]);
      suspect = suspect | (exists & (lane < thread.valid) &
                           overflows<group, Holder, Framed, Threads / 32>(thread.carry[lane], local[lane]));
    }
    if (in_warp >= 32 - lane_threads) {
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane) put<Holder, Framed>(rank, lane, local[lane]);
    }
    if (any_of_all(threads, suspect)) return true;
    states<group, C> before[Lanes];
    if constexpr (Total && takes_all<Holder, Framed>) {
      add_bundles<Holder, Framed>(rank, local, before, total);
    } else {
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane) before[lane] = get<Holder, Framed>(0, lane, local[lane]);
#pragma unroll 1
      for (int each = 1; each < rank; ++each) add_bundle<Holder, Framed>(each, local, before);
      if constexpr (Total) {
#pragma unroll
        for (int lane = 0; lane < Lanes; ++lane) total[lane] = before[lane];
#pragma unroll 1
        for (int each = rank > 0 ? rank : 1; each < bundles; ++each)
          add_bundle<Holder, Framed>(each, local, total);
      }
    }
    if (rank > 0) {
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane)
        combine_onto<group, Holder, Framed>(before[lane], preceding[lane]);
    }
    return false;
  }

  /// Where a stretch alone overflows, the scan through it may not: then one segment after the other takes its
  /// turn. Begin; set the starts and fold; take_turn; and again while that is true. At the end `before` is
  /// what precedes each run, the carry included, and the carry has moved past the tile.
  template <class Holder> __device__ __forceinline__ void begin_turns() {
    turn = 0;
    if (segment == 0) {
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane) put<Holder>(0, lane, thread.carry[lane]);
    }
    wait_for_all(threads);
  }
  template <class Holder, bool Back = false>
  __device__ __forceinline__ bool take_turn(states<group, C> (&local)[Lanes],
                                            states<group, C> (&before)[Lanes]) {
    const int turns = threads >> thread.a.log2_lane_threads, now = Back ? turns - 1 - turn : turn;
    if (segment == now) {
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane) before[lane] = get<Holder>(0, lane, before[lane]);
    }
    wait_for_all(threads);  // all have read their starts
    if (segment == now) {
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane) put<Holder>(0, lane, local[lane]);
    }
    wait_for_all(threads);
    if (++turn < turns) return true;
    turn = -1;
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane) thread.carry[lane] = get<Holder>(0, lane, thread.carry[lane]);
    return false;
  }

private:
  template <class Holder, bool Framed>
  __device__ __forceinline__ void add_bundle(int each, const states<group, C> (&like)[Lanes],
                                             states<group, C> (&sum)[Lanes]) const {
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane) {
      states<group, C> next = get<Holder, Framed>(each, lane, like[lane]);
      combine_onto<group, Holder, Framed>(sum[lane], next);
      copy_states<group, Holder>(next, sum[lane]);
    }
  }
  /// Whether the states of all bundles fit in registers: they are then read at once, and added up without
  /// branches.
  static constexpr int most_bundles = Threads / 32;
  template <class Holder, bool Framed>
  static constexpr bool takes_all =
      most_bundles <= 4 &&
      most_bundles * Lanes * component_count<group, Holder, Framed> <= cuda_strip_policy::joined_states;
  /// `before` becomes what the first `rank` bundles make together (if there are any), `total` what all do.
  template <class Holder, bool Framed>
  __device__ __forceinline__ void add_bundles(int rank, const states<group, C> (&like)[Lanes],
                                              states<group, C> (&before)[Lanes],
                                              states<group, C> (&total)[Lanes]) const {
    states<group, C> next[most_bundles][Lanes];
#pragma unroll
    for (int i = 0; i < most_bundles; ++i)  // beyond the last bundle it is read once more, and left out
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane)
        next[i][lane] = get<Holder, Framed>(smaller(i, bundles - 1), lane, like[lane]);
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane) {
      before[lane] = total[lane] = next[0][lane];
#pragma unroll
      for (int i = 1; i < most_bundles; ++i) {
        combine_onto<group, Holder, Framed>(next[i - 1][lane], next[i][lane]);
        for_components<group, Holder, Framed>(
            [&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
              const C sum = std::get<Component>(state_of<N>(next[i][lane]));
              C &of_all = std::get<Component>(state_of<N>(total[lane])),
                &of_first = std::get<Component>(state_of<N>(before[lane]));
              of_all = i < bundles ? sum : of_all;
              of_first = i < rank ? sum : of_first;
            });
      }
    }
  }
  __device__ __forceinline__ C& exchanged(int component, int of_bundle, int lane) const {
    // Four lanes of a thread side by side: one access.
    constexpr int side = Lanes < 4 ? Lanes : 4;
    const int row = ((parity * component_capacity<group> + component) * bundles + of_bundle) * (Lanes / side);
    return exchange[((row + lane / side) * lane_threads + lane_thread) * side + lane % side];
  }
  template <class Holder, bool Framed = false>
  __device__ __forceinline__ void put(int of_bundle, int lane, const states<group, C>& s) const {
    for_components<group, Holder, Framed>(
        [&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
          exchanged(component_index<group, Holder>(N, Component), of_bundle, lane) =
              std::get<Component>(state_of<N>(s));
        });
  }
  /// What is not exchanged is as in `like`.
  template <class Holder, bool Framed = false>
  __device__ __forceinline__ states<group, C> get(int of_bundle, int lane,
                                                  const states<group, C>& like) const {
    states<group, C> s = like;
    for_components<group, Holder, Framed>(
        [&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
          std::get<Component>(state_of<N>(s)) =
              exchanged(component_index<group, Holder>(N, Component), of_bundle, lane);
        });
    return s;
  }
};

}  // namespace scandsl::cuda_detail
