#pragma once
#include "scandsl/exec/cuda/tile.cuh"

/// The arrangement for lanes whose steps lie side by side in memory (the scanned axis is contiguous): a
/// thread holds `Vectors` vectors of `Width` consecutive steps of one lane. A warp instruction covers 32
/// vectors in address order; a warp's vectors follow one another, then comes the next warp:
///
///     steps   0 .. 32 W - 1          .. 2 * 32 W - 1             ..
///           | w0 v0: t0 t1 .. t31 | w0 v1: t0 t1 .. t31 | w1 v0: ...
///
/// The threads of a row meet by shuffles, its warps in shared memory. Rows shorter than a warp share one.
namespace scandsl::cuda_detail {

template <class K, int Width, int Vectors> struct row {
  using group = typename K::group;
  using C = typename K::compute;
  static constexpr int lanes = 1, runs = Vectors, threads = cuda_row_policy::threads;
  static constexpr int log2_threads = std::countr_zero(static_cast<unsigned>(threads));
  static constexpr int blocks_resident = cuda_row_policy::blocks_resident;
  using lane_state = lane_group<K, 1>;

  struct place {
    static constexpr int runs = Vectors, length = Width, vectors = Vectors, width = Width;
    static constexpr bool can_flip = true;
    static constexpr __device__ __forceinline__ int run_of(int v, int) { return v; }
    static constexpr __device__ __forceinline__ int step_of(int, int e) { return e; }
    static constexpr __device__ __forceinline__ int vector_of(int run, int) { return run; }
    static constexpr __device__ __forceinline__ int element_of(int, int step) { return step; }
    static constexpr __device__ __forceinline__ int lane_of(int) { return 0; }

    const lane_state& thread;
    std::int64_t low, high, from;
    int distance;  ///< steps between the thread's vectors
    bool reversed;

    __device__ __forceinline__ place(const lane_state& t, std::int64_t range_low, std::int64_t range_high,
                                     std::int64_t first, int apart, bool backwards)
        : thread(t), low(range_low), high(range_high), from(first), distance(apart), reversed(backwards) {}

    __device__ __forceinline__ bool flipped() const { return reversed; }
    __device__ __forceinline__ int steps(int run) const {
      const std::int64_t left = high - low - from - run * distance;
      return thread.valid == 0 || left < 0 ? 0 : left < Width ? static_cast<int>(left) : Width;
    }
    __device__ __forceinline__ std::int64_t position(int run, int step) const {
      const std::int64_t at = from + run * distance + step;
      return reversed ? high - 1 - at : low + at;
    }
    __device__ __forceinline__ int count(int v) const { return steps(v); }
    /// Position of the vector's lowest address.
    __device__ __forceinline__ std::int64_t lowest(int v) const {
      return position(v, reversed ? Width - 1 : 0);
    }
    __device__ __forceinline__ bool whole(int t) const {
      return thread.a.tensor[t].mode == access::vector && count(Vectors - 1) == Width &&
             lowest(0) % Width == 0;
    }
    __device__ __forceinline__ std::int64_t first(int t) const {
      return thread.place[t] + lowest(0) * thread.a.walk[0].stride[t];  // which is 0 or 1
    }
    __device__ __forceinline__ std::int64_t next(int t) const {
      return (reversed ? -distance : distance) * thread.a.walk[0].stride[t];
    }
    __device__ __forceinline__ element_path path(int t, int v) const {
      return {thread.place[t], position(v, 0), 0, reversed ? -1 : 1, count(v)};
    }
  };

  static constexpr __host__ __device__ int tile_steps(int lane_threads) {
    return lane_threads * Vectors * Width;
  }
  static constexpr int exchange_elements(int) { return 2 * component_capacity<group> * (threads / 32); }
  static std::int64_t blocks(const typename K::arguments& a) {
    const std::int64_t rows = threads / a.lane_threads;
    return (a.lanes + rows - 1) / rows * a.segments;
  }

  lane_state thread;
  C* exchange;
  int lane_threads, group_width, parity = 0, turn = -1;

  __device__ __forceinline__ row(const typename K::arguments& a, C* shared, std::int64_t block)
      : thread(a), exchange(shared), lane_threads(a.lane_threads),
        group_width(a.lane_threads < 32 ? a.lane_threads : 32) {
    const int log2_rows = log2_threads - a.log2_lane_threads;
    std::int64_t sequence = 0;
    if (a.segments > 1)
      sequence = block, block = split_off(sequence, (a.lanes + (1 << log2_rows) - 1) >> log2_rows);
    thread.find((block << log2_rows) + (static_cast<int>(threadIdx.x) >> a.log2_lane_threads), sequence);
    thread.writes = (static_cast<int>(threadIdx.x) & (lane_threads - 1)) == 0;
  }

  template <int S>
  __device__ __forceinline__ tile<K, S, place> tile_at(std::int64_t low, std::int64_t high,
                                                       std::int64_t start, bool reversed) const {
    const int in_row = static_cast<int>(threadIdx.x) & (lane_threads - 1);
    const int warp = in_row >> 5, in_group = in_row & (group_width - 1);
    return tile<K, S, place>(thread, low, high, start + (warp * Vectors * group_width + in_group) * Width,
                             group_width * Width, reversed);
  }

  /// As in a strip.
  template <class Holder> __device__ __forceinline__ void set_start(int, states<group, C>& state) const {
    if (turn < 0)
      set_identity<group, Holder>(state);
    else
      copy_states<group, Holder>(handed, state);
  }
  template <class Holder, bool Framed>
  __device__ __forceinline__ bool join(states<group, C> (&local)[Vectors],
                                       states<group, C> (&before)[Vectors], bool doubtful = false) {
    if (turn >= 0) return take_turn<Holder>(local, before);
    parity ^= 1;
    const int in_group = static_cast<int>(threadIdx.x) & (group_width - 1);
    states<group, C> preceding[Vectors], total;
    bool suspect = doubtful;
#pragma unroll
    for (int run = 0; run < Vectors; ++run) {
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const states<group, C> left = shuffle_up<group, Holder, Framed>(local[run], distance, group_width);
        if (distance < group_width && in_group >= distance)
          combine_onto<group, Holder, Framed>(left, local[run]);
      }
      suspect = suspect || overflows<group, Holder, Framed>(thread.carry[0], local[run]);
      preceding[run] = shuffle_up<group, Holder, Framed>(local[run], 1, group_width);
      if (in_group == 0) set_identity<group, Holder, Framed>(preceding[run]);
    }
#pragma unroll
    for (int run = 0; run < Vectors; ++run) {
      states<group, C> all = shuffle_from<group, Holder, Framed>(local[run], group_width - 1, group_width);
      if (run > 0) {
        combine_onto<group, Holder, Framed>(total, preceding[run]);
        combine_onto<group, Holder, Framed>(total, all);
      }
      copy_states<group, Holder>(all, total);
    }
    suspect = thread.valid > 0 && (suspect || overflows<group, Holder, Framed>(thread.carry[0], total));
    states<group, C>& passed = thread.carry[0];
    states<group, C> prefix = passed;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (lane_threads > 32 && in_group == 0) put<Holder, Framed>(warp, total);
    if (lane_threads > 32 ? __syncthreads_or(suspect) : __any_sync(~0U, suspect)) {
      if constexpr (!Framed) {
        turn = 0;
        handed = passed;
      }
      return true;
    }
    if (lane_threads > 32) {
      const int warps = lane_threads / 32, first = warp & ~(warps - 1);
#pragma unroll 1
      for (int w = first; w < first + warps; ++w) {
        states<group, C> next = get<Holder, Framed>(w, passed);
        combine_onto<group, Holder, Framed>(passed, next);
        copy_states<group, Holder>(next, passed);
        if (w + 1 == warp) copy_states<group, Holder>(passed, prefix);
      }
    } else {
      combine_onto<group, Holder, Framed>(prefix, total);
      copy_states<group, Holder>(total, passed);
    }
#pragma unroll
    for (int run = 0; run < Vectors; ++run) {
      combine_onto<group, Holder, Framed>(prefix, preceding[run]);
      copy_states<group, Holder>(preceding[run], before[run]);
    }
    return false;
  }

private:
  __device__ __forceinline__ C& exchanged(int component, int warp) const {
    return exchange[(parity * component_capacity<group> + component) * (threads / 32) + warp];
  }
  template <class Holder, bool Framed = false>
  __device__ __forceinline__ void put(int warp, const states<group, C>& s) const {
    for_components<group, Holder, Framed>(
        [&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
          exchanged(component_index<group, Holder>(N, Component), warp) = std::get<Component>(state_of<N>(s));
        });
  }
  /// What is not exchanged is as in `like`.
  template <class Holder, bool Framed = false>
  __device__ __forceinline__ states<group, C> get(int warp, const states<group, C>& like) const {
    states<group, C> s = like;
    for_components<group, Holder, Framed>(
        [&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
          std::get<Component>(state_of<N>(s)) = exchanged(component_index<group, Holder>(N, Component), warp);
        });
    return s;
  }

  /// Turns go through a row's vectors in scan order: warps, then vectors of a warp, then its threads.
  template <class Holder>
  __device__ __forceinline__ bool take_turn(states<group, C> (&local)[Vectors],
                                            states<group, C> (&before)[Vectors]) {
    const int in_row = static_cast<int>(threadIdx.x) & (lane_threads - 1);
    const int each = turn % group_width, run = turn / group_width % Vectors,
              warp_in_row = turn / (group_width * Vectors);
    const bool mine = (in_row >> 5) == warp_in_row && (in_row & (group_width - 1)) == each;
    states<group, C> next = handed;
#pragma unroll
    for (int r = 0; r < Vectors; ++r)
      if (r == run) {
        if (mine) copy_states<group, Holder>(handed, before[r]);
        copy_states<group, Holder>(local[r], next);
      }
    if (lane_threads > 32) {
      const int first = static_cast<int>(threadIdx.x) / 32 & ~(lane_threads / 32 - 1);
      __syncthreads();  // all have read what the turn before handed on
      if (mine) put<Holder>(first, next);
      __syncthreads();
      handed = get<Holder>(first, next);
    } else {
      handed = shuffle_from<group, Holder>(next, each, group_width);
    }
    if (++turn < lane_threads * Vectors) return true;
    copy_states<group, Holder>(handed, thread.carry[0]);
    turn = -1;
    return false;
  }

  states<group, C> handed;  ///< in turns: what the turn before handed on
};

}  // namespace scandsl::cuda_detail
