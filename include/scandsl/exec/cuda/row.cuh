#pragma once
#include "scandsl/exec/cuda/barriers.cuh"
#include "scandsl/exec/cuda/staged_tile.cuh"

/// The arrangement for lanes whose steps lie side by side in memory (the scanned axis is contiguous): a
/// thread holds `Vectors` vectors of `Width` consecutive steps of one lane. A warp instruction covers 32
/// vectors in address order; a warp's vectors follow one another, then comes the next warp:
///
///     steps   0 .. 32 W - 1          .. 2 * 32 W - 1             ..
///           | w0 v0: t0 t1 .. t31 | w0 v1: t0 t1 .. t31 | w1 v0: ...
///
/// The threads of a row meet by shuffles, its warps in shared memory. Rows shorter than a warp share one;
/// rows longer than a block's tile have the blocks of a cluster, which write to each other's shared memory,
/// so that they are held in registers all the same.
namespace scandsl::cuda_detail {

/// RowThreads: the threads along a row where that is known when compiling; whole_warps: a number of warps;
/// part_of_warp: less than one; whole_blocks: the blocks of a cluster; any_threads: the first or the second
/// of these. Rolled: of what is seldom run.
inline constexpr int whole_warps = 0, part_of_warp = -1, whole_blocks = -2, any_threads = -3;
/// What is not common to all rows: Repeats, a thread takes several that share what is computed for them, one
/// after the other; Ragged, of several sweeps, they may end within a vector, so that steps are masked;
/// Staged, what is read twice waits in shared memory, and the row's length is any; One_tile, a row is one
/// tile, of threads that hold more of it than of a longer row.
enum class row_kind { plain, repeats, ragged, staged, one_tile };
template <class K, int Width, int Vectors, int RowThreads, bool Rolled = false,
          row_kind Kind = row_kind::plain>
struct row {
  using group = typename K::group;
  using C = typename K::compute;
  /// Several tiles of several sweeps: these have no kernel for one.
  static constexpr bool walks_sweeps = sweep_count<group> > 1 && knows_types<K> && !reads_twice<K> &&
                                       RowThreads == whole_warps &&
                                       (Kind == row_kind::plain || Kind == row_kind::ragged);
  /// Few numbers, of few rows: sums_scratch, of types that are known and not float64.
  static constexpr bool adds_scratch = sums_scratch<K> && knows_types<K> && sizeof(C) == 4;
  static constexpr int lanes = 1, runs = Vectors,
                       threads = RowThreads > 0 ? RowThreads
                                 : walks_sweeps ? cuda_row_policy::threads_of_walked_sweeps
                                 : adds_scratch ? cuda_row_policy::threads_of_sums
                                                : cuda_row_policy::threads;
  static constexpr bool clustered = RowThreads == whole_blocks;
  /// Where a block's threads are as many as they have to be, each warp has stages of its own.
  static constexpr int stage_threads = RowThreads > 0 ? RowThreads : 32;
  static constexpr bool repeats = Kind == row_kind::repeats, in_stage = Kind == row_kind::staged;
  template <class Other> using of = row<Other, Width, Vectors, RowThreads, Rolled, Kind>;
  static constexpr int seldom_run_threads =
      RowThreads == whole_warps || RowThreads == part_of_warp ? any_threads : RowThreads;
  static constexpr int slow_vectors = larger(1, Vectors / (Kind == row_kind::one_tile ? 4 : 2));
  /// Of what is seldom run: smaller tiles, where carries are not saved by tiles, else rolled loops.
  template <class Other>
  using slow_of = row<Other, Width, (sweep_count<group> == 1 ? slow_vectors : Vectors), seldom_run_threads,
                      !leaves_wide_data<Other> || (sweep_count<group> > 1)>;
  /// Of threads that do nothing but join.
  template <class Other> using joining = row<Other, Width, 1, seldom_run_threads, true>;
  static constexpr bool has_streams =
      RowThreads >= 0 && !repeats && !in_stage && Kind != row_kind::one_tile;  ///< else a row is one tile
  /// What rows are staged for has no other kernel for one tile of several warps.
  static constexpr bool has_one_tile =
      !walks_sweeps && !(reads_twice<K> && Kind == row_kind::plain && RowThreads == whole_warps);
  /// Else one tile has a kernel of its own, of more blocks.
  static constexpr bool streams_one_tile = Kind == row_kind::ragged && has_streams && !walks_sweeps;
  /// Of several tiles: these may be left for gradients.
  static constexpr bool keeps_carries = (RowThreads == whole_warps || RowThreads == any_threads) &&
                                        (Kind == row_kind::plain || Kind == row_kind::ragged),
                        one_tile_leaves_carries = false;
  static constexpr int carry_interval = cuda_row_policy::carry_steps;
  /// Several rows may share a warp.
  static constexpr bool shares_warps = RowThreads == part_of_warp || RowThreads == any_threads;
  /// A thread may lack some of its vectors. (Of a look-back, which has many tiles, the last one does not
  /// matter; its registers do.)
  static constexpr bool may_lack_vectors = RowThreads <= 0;
  static constexpr int blocks_resident = walks_sweeps   ? cuda_row_policy::blocks_resident_of_walked_sweeps
                                         : adds_scratch ? 1
                                                        : cuda_row_policy::blocks_resident;
  static constexpr int blocks_resident_of_one_tile(int held_bytes) {
    using policy = cuda_row_policy;
    if (in_stage) return policy::blocks_resident_of_stages;
    return repeats && held_bytes <= policy::held_bytes_of_four    ? policy::blocks_resident_of_repeats
           : repeats || held_bytes <= policy::held_bytes_of_three ? policy::blocks_resident_of_one_tile
                                                                  : blocks_resident;
  }
  using lane_state = lane_group<K, 1>;

  struct place {
    static constexpr int runs = Vectors, length = Width, vectors = Vectors, width = Width,
                         threads = row::threads, lane_count = 1, stage_threads = row::stage_threads;
    static constexpr int run_apart = 32 * Width;  ///< steps between a thread's runs, of whole warps
    static constexpr bool repeats = row::repeats, ragged = Kind == row_kind::ragged;
    using lane_state = row::lane_state;
    static constexpr bool can_flip = true, vector_is_step = false, rolled = Rolled, can_share = false;
    static constexpr __device__ __forceinline__ int run_of(int v, int) { return v; }
    static constexpr __device__ __forceinline__ int step_of(int, int e) { return e; }
    static constexpr __device__ __forceinline__ int vector_of(int run, int) { return run; }
    static constexpr __device__ __forceinline__ int element_of(int, int step) { return step; }
    static constexpr __device__ __forceinline__ int lane_of(int) { return 0; }
    static __device__ __forceinline__ int in_stage_threads() {
      return static_cast<int>(threadIdx.x) & (stage_threads - 1);
    }

    const lane_state& thread;
    stretch of_tile;
    int start;  ///< the thread's first step, counted from the stretch's low end
    int left;   ///< steps from there to the stretch's end
    int apart;  ///< steps between the thread's vectors
    bool reversed,
        within;  ///< within: each vector of its warp is complete or empty, and begins where vectors do

    /// `from`: the thread's first step in scan order.
    __device__ __forceinline__ place(const lane_state& t, const stretch& tile, int from, int distance,
                                     bool backwards)
        : thread(t), of_tile(tile), start(backwards ? tile.steps - 1 - from : from),
          left(t.valid == 0 ? 0 : tile.steps - from), apart(distance), reversed(backwards) {
      // From what its warp has in common: one way for all (tile::load_one).
      constexpr int of_warp = 32 * Vectors * Width;
      const int low = static_cast<int>(of_tile.low), steps = of_tile.steps, first = from & -of_warp;
      const bool complete =
          may_lack_vectors
              ? (steps & (Width - 1)) == 0 || (!shares_warps && (steps >= first + of_warp || steps <= first))
              : steps >= threads * Vectors * Width;
      within = complete && (((reversed ? low + steps : low) & (Width - 1)) == 0);
      if constexpr (shares_warps) within = __all_sync(__activemask(), within);
    }

    place(const place&) = default;
    /// Of another tile of the same lanes.
    __device__ __forceinline__ place& operator=(const place& other) {
      of_tile = other.of_tile, start = other.start, left = other.left, within = other.within;
      return *this;
    }

    __device__ __forceinline__ bool flipped() const { return reversed; }
    __device__ __forceinline__ int direction() const { return reversed ? -1 : 1; }
    __device__ __forceinline__ int steps(int run) const { return clamped(left - run * apart, 0, Width); }
    __device__ __forceinline__ std::int64_t position(int run, int step) const {
      const int further = run * apart + step;
      return of_tile.low + (reversed ? start - further : start + further);
    }
    __device__ __forceinline__ int count(int v) const { return steps(v); }
    __device__ __forceinline__ bool whole(int t) const {
      return thread.a.tensor[t].mode == access::vector && within;
    }
    __device__ __forceinline__ bool has(int v) const { return !may_lack_vectors || left > v * apart; }
    __device__ __forceinline__ bool has_all() const {
      return !may_lack_vectors || left >= (Vectors - 1) * apart + Width;
    }
    static constexpr bool tells_of_all = !repeats && !Rolled, shares_warps = row::shares_warps;
    __device__ __forceinline__ bool reads_all() const {
      return thread.a.reads_vectors && within && has_all();
    }
    __device__ __forceinline__ std::int64_t first(int t) const {
      return thread.place[t] + of_tile.low + (reversed ? start - (Width - 1) : start);
    }
    __device__ __forceinline__ std::int64_t next(int) const { return reversed ? -apart : apart; }
    __device__ __forceinline__ element_path path(int t) const {
      return {thread.place[t],           position(0, 0),      0, reversed ? -1 : 1,
              reversed ? -apart : apart, {left, apart, Width}};
    }
  };

  static __device__ __forceinline__ int tile_steps(const typename K::arguments& a) {
    return tile_steps(a.lane_threads);
  }
  static constexpr __host__ __device__ int tile_steps(int lane_threads) {
    return lane_threads * Vectors * Width;
  }
  /// Of every warp, and of a cluster's block.
  static constexpr int exchange_slots = threads / 32 + (clustered ? cuda_row_policy::most_blocks : 0);
  static constexpr int exchange_elements(int) {
    return 2 * component_capacity<group> * exchange_slots +
           (clustered ? 2 * cuda_row_policy::most_blocks : 0);
  }
  /// Warps that hold a row, at most.
  static constexpr int joined_warps =
      RowThreads == part_of_warp ? 1 : threads / 32 * (clustered ? cuda_row_policy::most_blocks : 1);
  static int blocks_of_row(const typename K::arguments& a) {
    return clustered ? a.lane_threads / threads : 1;
  }
  static std::int64_t blocks(const typename K::arguments& a) {
    return (((a.lanes - 1) >> a.log2_rows) + 1) * a.segments * blocks_of_row(a);
  }
  static int block_size(const typename K::arguments& a) {
    return clustered ? threads : a.lane_threads << a.log2_rows;
  }

  lane_state thread;
  C* exchange;
  int parity = 0, turn = -1;

  __device__ __forceinline__ row(const typename K::arguments& a, C* shared) : thread(a), exchange(shared) {
    thread.writes = in_row() == 0;
    if constexpr (clustered) {
      arrive_at_cluster();
      has_arrived = true;
    }
  }
  /// Which of the row's threads this is.
  __device__ __forceinline__ int in_row() const {
    if (clustered) return block_of_cluster() * threads + static_cast<int>(threadIdx.x);
    return static_cast<int>(threadIdx.x) & (lane_threads() - 1);
  }
  __device__ __forceinline__ int lane_threads() const {
    return RowThreads > 0 ? RowThreads : thread.a.lane_threads;
  }
  /// Threads of the block that hold rows.
  __device__ __forceinline__ int block_threads() const {
    return RowThreads > 0 || clustered ? threads : static_cast<int>(blockDim.x);
  }
  /// Waits for those that come and go together: a warp of short rows, the block, or the cluster.
  __device__ __forceinline__ void meet() {
    if constexpr (clustered) {
      settle();
      publish_in_cluster();
      arrive_at_cluster();
      wait_for_cluster();
    } else if (RowThreads == part_of_warp || lane_threads() <= 32)
      __syncwarp();
    else
      wait_for_all(block_threads());
  }
  /// Whether any of them says so; not of a cluster.
  __device__ __forceinline__ bool any(bool mine) const {
    static_assert(!clustered);
    if (RowThreads == part_of_warp || lane_threads() <= 32) return __any_sync(~0U, mine);
    return any_of_all(block_threads(), mine);
  }
  /// Waits until all blocks of the cluster have begun, so that their shared memory is there. At the end too:
  /// whoever arrives at the barrier waits at it.
  __device__ __forceinline__ void settle() {
    if constexpr (clustered) {
      if (has_arrived) wait_for_cluster();
      has_arrived = false;
    }
  }
  /// Threads of one row in one warp.
  __device__ __forceinline__ int group_width() const {
    return shares_warps && thread.a.lane_threads < 32 ? thread.a.lane_threads : 32;
  }
  /// As in a strip.
  __device__ __forceinline__ int sharing() const { return lane_threads(); }
  /// Steps of a tile before the thread's own, in scan order. (Of several tiles, which whole warps have.)
  __device__ __forceinline__ int first_step() const {
    const int in_row = this->in_row();
    return ((in_row >> 5) * Vectors * 32 + (in_row & 31)) * Width;
  }
  __device__ __forceinline__ int of_sharing() const { return in_row(); }
  __device__ __forceinline__ std::int64_t unit_of(std::int64_t block) const {
    const int log2_row =
        RowThreads > 0 ? std::countr_zero(static_cast<unsigned>(RowThreads)) : thread.a.log2_lane_threads;
    return (block << log2_rows()) + (static_cast<int>(threadIdx.x) >> log2_row);
  }
  /// Of a block.
  __device__ __forceinline__ int log2_rows() const { return RowThreads > 0 ? 0 : thread.a.log2_rows; }
  /// Finds the lanes of a block.
  template <bool Packed, bool Few = false>
  __device__ __forceinline__ void find(std::int64_t block, lane_state& found) const {
    const auto& a = thread.a;
    std::int64_t sequence = 0;
    if constexpr (clustered) {
      block >>= a.log2_lane_threads - std::countr_zero(static_cast<unsigned>(threads));
      return found.template find<Packed, Few>(block, 0);
    }
    if (Packed && a.segments > 1)
      sequence = block, block = split_off(sequence, ((a.lanes - 1) >> log2_rows()) + 1);
    found.template find<Packed, Few>(unit_of(block), sequence);
  }

  /// Stages of a block, and which of them are the thread's.
  static int stages_of_block(const typename K::arguments& a) {
    return (block_size(a) + stage_threads - 1) / stage_threads;
  }
  static __device__ __forceinline__ int own_stages() {
    return RowThreads > 0 || in_stage ? 0 : static_cast<int>(threadIdx.x) / stage_threads;
  }
  static int units_of_block(const typename K::arguments& a) { return 1 << a.log2_rows; }
  /// Elements that a block has fetched ahead of a tensor at once; 0: its rows are not one behind the other.
  static std::int64_t elements_at_once(const typename K::arguments& a, int t) {
    const bool side_by_side = a.log2_rows == 0 || a.lane[a.lane_dimensions - 1].stride[t] == steps_of_lane(a);
    return side_by_side ? steps_of_lane(a) << a.log2_rows : 0;
  }
  /// Has the L2 cache fetch what is said of tensor t.
  template <class T>
  __device__ __forceinline__ void fetch(const lane_state& lane, const stretch& where, int t) const {
    if (threadIdx.x == 0)
      fetch_into_cache<T, false>(thread.a.tensor[t], lane.place[t] + where.low, thread.a.ahead[t]);
  }

  /// Shared memory of a block for what is staged of its rows.
  static std::size_t staged_bytes(const typename K::arguments& a) {
    std::int64_t steps = steps_of_lane(a);
    if (a.tensor[staged_tile<K, place>::input].mode != access::vector) steps += Width - 1;  // begins anywhere
    return static_cast<std::size_t>(detail::staged_bytes_of_thread(steps, a.lane_threads, Width)) *
           static_cast<std::size_t>(block_size(a));
  }

  /// Of several sweeps: what is known of the next tile is kept until it is gone through. (A strip's threads
  /// have no registers for it, and walks of one sweep lose by it.)
  static constexpr bool holds_places = !in_stage && !repeats;
  template <int S, bool Anywhere = false>
  __device__ __forceinline__ auto tile_at(const lane_state& lane, const stretch& where, bool reversed) const {
    const int in_row = this->in_row();
    if constexpr (in_stage) {
      return staged_tile<K, place>(lane, where, in_row, block_threads(), reversed);
    } else {
      const int width = group_width(), warp = in_row >> 5, in_group = in_row & (width - 1);
      return tile<K, S, place, Anywhere>(lane, where, (warp * Vectors * width + in_group) * Width,
                                         width * Width, reversed);
    }
  }

  /// As in a strip.
  template <class Holder> __device__ __forceinline__ void set_start(int, states<group, C>& state) const {
    if (turn < 0)
      set_identity<group, Holder>(state);
    else
      copy_states<group, Holder>(handed, state);
  }
  template <class Holder, bool Framed, bool Total, bool Back = false>
  __device__ __forceinline__ bool join(states<group, C> (&local)[Vectors],
                                       states<group, C> (&preceding)[Vectors], states<group, C> (&total)[1],
                                       bool suspect, bool exists) {
    parity ^= 1;
    if constexpr (reduces<group, Holder>)
      return reduce<Holder, Framed>(local, preceding, total, suspect, exists);
    const int last = this->group_width() - 1, in_group = static_cast<int>(threadIdx.x) & last,
              rank = Back ? last - in_group : in_group,
              last_of_group = Back ? static_cast<int>(threadIdx.x) & 31 & ~last
                                   : (static_cast<int>(threadIdx.x) & 31) | last;
    for_distances<32>([&](int distance) {
#pragma unroll
      for (int run = 0; run < Vectors; ++run) {
        const states<group, C> left = shuffle_before<group, Holder, Framed, Back>(local[run], distance);
        combine_onto_if<group, Holder, Framed>(rank >= distance, left, local[run]);
      }
    });
#pragma unroll
    for (int run = 0; run < Vectors; ++run) {
      if constexpr (!whole_tells<group, Holder, Framed>)
        suspect = suspect | (exists & overflows<group, Holder, Framed>(thread.carry[0], local[run]));
      else
        suspect = suspect | (exists & factors_overflow<group, Holder>(local[run]));
      preceding[run] = shuffle_before<group, Holder, Framed, Back>(local[run], 1);
      if (rank == 0) set_identity<group, Holder, Framed>(preceding[run]);
    }
    states<group, C>& of_warp = total[0];
#pragma unroll
    for (int i = 0; i < Vectors; ++i) {
      const int run = Back ? Vectors - 1 - i : i;
      states<group, C> all = shuffle_from<group, Holder, Framed>(local[run], last_of_group, 32);
      if (i > 0) {
        combine_onto<group, Holder, Framed>(of_warp, preceding[run]);
        combine_onto<group, Holder, Framed>(of_warp, all);
      }
      of_warp = all;
    }
    suspect = suspect | (exists & overflows<group, Holder, Framed, joined_warps>(thread.carry[0], of_warp));
    if (RowThreads == part_of_warp || (!clustered && lane_threads() <= 32)) return __any_sync(~0U, suspect);
    const int warp = static_cast<int>(threadIdx.x) / 32, warps = (clustered ? threads : lane_threads()) / 32,
              in_row = warp & (warps - 1), rank_in_row = Back ? warps - 1 - in_row : in_row;
    if (in_group == 0) put<Holder, Framed>(warp - in_row + rank_in_row, of_warp);
    suspect = any_of_all(block_threads(), suspect);
    if (!clustered && suspect) return true;
    // Every warp scans its row's warps: thread w has the state of warp w.
    const int mine = in_group & (warps - 1);
    states<group, C> up_to = get<Holder, Framed>(warp - in_row + mine, of_warp);
    for_distances<threads / 32>([&](int distance) {
      const states<group, C> left = shuffle_before<group, Holder, Framed, false>(up_to, distance);
      combine_onto_if<group, Holder, Framed>(mine >= distance && distance < warps, left, up_to);
    });
    total[0] = shuffle_from<group, Holder, Framed>(up_to, warps - 1, 32);
    states<group, C> before = shuffle_from<group, Holder, Framed>(up_to, rank_in_row - 1, 32);
    if (rank_in_row == 0) set_identity<group, Holder, Framed>(before);
#pragma unroll
    for (int run = 0; run < Vectors; ++run) combine_onto<group, Holder, Framed>(before, preceding[run]);
    if constexpr (clustered) return join_blocks<Holder, Framed, Back>(preceding, total, suspect);
    return false;
  }

  /// As in a strip. Turns go through a row's vectors in scan order: warps, then vectors of a warp, then its
  /// threads.
  template <class Holder> __device__ __forceinline__ void begin_turns() {
    turn = 0;
    handed = thread.carry[0];
  }
  template <class Holder, bool Back = false>
  __device__ __forceinline__ bool take_turn(states<group, C> (&local)[Vectors],
                                            states<group, C> (&before)[Vectors]) {
    const int in_row = this->in_row();
    const int group_width = this->group_width(), now = Back ? lane_threads() * Vectors - 1 - turn : turn;
    const int each = now % group_width, run = now / group_width % Vectors,
              warp_in_row = now / (group_width * Vectors);
    const bool mine = (in_row >> 5) == warp_in_row && (in_row & (group_width - 1)) == each;
    states<group, C> next = handed;
#pragma unroll
    for (int r = 0; r < Vectors; ++r)
      if (r == run) {
        if (mine) copy_states<group, Holder>(handed, before[r]);
        copy_states<group, Holder>(local[r], next);
      }
    if constexpr (clustered) {
      meet();  // all have read what the turn before handed on
      for (int block = 0; mine && block < lane_threads() / threads; ++block) put<Holder>(0, next, block);
      meet();
      handed = get<Holder>(0, next);
    } else if (lane_threads() > 32) {
      const int first = static_cast<int>(threadIdx.x) / 32 & ~(lane_threads() / 32 - 1);
      wait_for_all(block_threads());  // all have read what the turn before handed on
      if (mine) put<Holder>(first, next);
      wait_for_all(block_threads());
      handed = get<Holder>(first, next);
    } else {
      handed = shuffle_from<group, Holder>(next, each, group_width);
    }
    if (++turn < lane_threads() * Vectors) return true;
    copy_states<group, Holder>(handed, thread.carry[0]);
    turn = -1;
    return false;
  }

private:
  /// Calls f(distance) with 1, 2, 4 .. below Limit.
  template <int Limit, class F> static __device__ __forceinline__ void for_distances(F&& f) {
    for_count<Rolled, std::bit_width(static_cast<unsigned>(Limit - 1))>([&](int power) { f(1 << power); });
  }
  /// As join, where nothing but the total is wanted and the order does not matter.
  template <class Holder, bool Framed>
  __device__ __forceinline__ bool reduce(const states<group, C> (&local)[Vectors],
                                         states<group, C> (&preceding)[Vectors], states<group, C> (&total)[1],
                                         bool suspect, bool exists) {
    states<group, C>& all = total[0];
    all = local[0];
#pragma unroll
    for (int run = 1; run < Vectors; ++run) combine_onto<group, Holder, Framed>(local[run], all);
    const int width = this->group_width();
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2)
      if (!shares_warps || distance < width) add_other<Holder, Framed>(all, distance);
    suspect = suspect | (exists & overflows<group, Holder, Framed, joined_warps>(thread.carry[0], all));
#pragma unroll
    for (int run = 0; run < Vectors; ++run) {
      preceding[run] = local[run];
      set_identity<group, Holder, Framed>(preceding[run]);
    }
    if (RowThreads == part_of_warp || (!clustered && lane_threads() <= 32)) return __any_sync(~0U, suspect);
    const int warp = static_cast<int>(threadIdx.x) / 32, warps = (clustered ? threads : lane_threads()) / 32,
              in_warp = static_cast<int>(threadIdx.x) & 31;
    if (in_warp == 0) put<Holder, Framed>(warp, all);
    suspect = any_of_all(block_threads(), suspect);
    if (!clustered && suspect) return true;
    all = get<Holder, Framed>((warp & ~(warps - 1)) + (in_warp & (warps - 1)), all);
#pragma unroll
    for (int distance = 1; distance < threads / 32; distance *= 2)
      if (distance < warps) add_other<Holder, Framed>(all, distance);
    if constexpr (!clustered) return false;
    const int blocks = lane_threads() / threads, block = in_warp & (blocks - 1);
    publish<Holder, Framed>(all, suspect);
    if (__any_sync(~0U, flag(block) != C(0))) return true;
    all = get<Holder, Framed>(threads / 32 + block, all);
#pragma unroll
    for (int distance = 1; distance < cuda_row_policy::most_blocks; distance *= 2)
      if (distance < blocks) add_other<Holder, Framed>(all, distance);
    return false;
  }
  template <class Holder, bool Framed>
  __device__ __forceinline__ void add_other(states<group, C>& all, int distance) const {
    const int other = (static_cast<int>(threadIdx.x) & 31) ^ distance;
    combine_onto<group, Holder, Framed>(shuffle_from<group, Holder, Framed>(all, other, 32), all);
  }

  /// Writes what the block has to the shared memory of every block of the cluster, and waits until all have.
  template <class Holder, bool Framed>
  __device__ __forceinline__ void publish(const states<group, C>& of_block, bool suspect) {
    settle();
    if (const int to = static_cast<int>(threadIdx.x); to < lane_threads() / threads) {
      put<Holder, Framed>(threads / 32 + block_of_cluster(), of_block, to);
      *in_block_of_cluster(&flag(block_of_cluster()), to) = suspect ? C(1) : C(0);
      publish_in_cluster();
    }
    __syncwarp();
    arrive_at_cluster();
    wait_for_cluster();
  }
  /// Whether a block said that it was suspect.
  __device__ __forceinline__ C& flag(int block) const {
    return exchange[2 * component_capacity<group> * exchange_slots + parity * cuda_row_policy::most_blocks +
                    block];
  }

  /// Joins what the blocks of a cluster have: `total` of each, and what precedes its runs in itself.
  template <class Holder, bool Framed, bool Back>
  __device__ __forceinline__ bool join_blocks(states<group, C> (&preceding)[Vectors],
                                              states<group, C> (&total)[1], bool suspect) {
    const int blocks = lane_threads() / threads, block = block_of_cluster(),
              rank = Back ? blocks - 1 - block : block, mine = static_cast<int>(threadIdx.x) & (blocks - 1),
              of_mine = Back ? blocks - 1 - mine : mine;
    publish<Holder, Framed>(total[0], suspect);
    if (__any_sync(~0U, flag(of_mine) != C(0))) return true;
    // Every warp scans the row's blocks: thread b has the state of block b.
    states<group, C> up_to = get<Holder, Framed>(threads / 32 + of_mine, total[0]);
    for_distances<cuda_row_policy::most_blocks>([&](int distance) {
      const states<group, C> left = shuffle_before<group, Holder, Framed, false>(up_to, distance);
      combine_onto_if<group, Holder, Framed>(mine >= distance && distance < blocks, left, up_to);
    });
    total[0] = shuffle_from<group, Holder, Framed>(up_to, blocks - 1, 32);
    const states<group, C> before = shuffle_from<group, Holder, Framed>(up_to, rank - 1, 32);
    if (rank > 0) {
#pragma unroll
      for (int run = 0; run < Vectors; ++run) combine_onto<group, Holder, Framed>(before, preceding[run]);
    }
    return false;
  }

  /// In the shared memory of block `rank` of the cluster; own: this one's.
  static constexpr int own = -1;
  __device__ __forceinline__ C& exchanged(int component, int warp, int rank) const {
    C* const here = exchange + (parity * component_capacity<group> + component) * exchange_slots + warp;
    return rank == own ? *here : *in_block_of_cluster(here, rank);
  }
  template <class Holder, bool Framed = false>
  __device__ __forceinline__ void put(int warp, const states<group, C>& s, int rank = own) const {
    for_components<group, Holder, Framed>(
        [&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
          exchanged(component_index<group, Holder>(N, Component), warp, rank) =
              std::get<Component>(state_of<N>(s));
        });
  }
  /// What is not exchanged is as in `like`.
  template <class Holder, bool Framed = false>
  __device__ __forceinline__ states<group, C> get(int warp, const states<group, C>& like) const {
    states<group, C> s = like;
    for_components<group, Holder, Framed>(
        [&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
          std::get<Component>(state_of<N>(s)) =
              exchanged(component_index<group, Holder>(N, Component), warp, own);
        });
    return s;
  }

  states<group, C> handed;   ///< in turns: what the turn before handed on
  bool has_arrived = false;  ///< at the barrier behind which all blocks of the cluster have begun
};

}  // namespace scandsl::cuda_detail
