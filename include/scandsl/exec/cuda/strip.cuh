#pragma once
#include "scandsl/exec/cuda/tile.cuh"

/// The arrangement for lanes that lie side by side in memory (the scanned axis is strided): a thread holds
/// `Lanes` neighbouring lanes, read with one access, and `Steps` consecutive steps of each.
///
///              lanes, 16 bytes a thread
///            thread 0   thread 1  ...  lane_threads - 1
///   steps  +----------+----------+---
///   0..R-1 | t0       | t1       |      segment 0
///   R..    | t0 + W   |          |      segment 1      segments of one warp meet by shuffles,
///          ...                                         warps in shared memory
namespace scandsl::cuda_detail {

template <class K, int Lanes, int Steps> struct strip {
  using group = typename K::group;
  using C = typename K::compute;
  static constexpr int lanes = Lanes, runs = Lanes, threads = 256;
  using lane_state = lane_group<K, Lanes>;

  /// Where the thread's part of one tile lies.
  struct place {
    static constexpr int runs = Lanes, length = Steps, vectors = Steps, width = Lanes;
    static constexpr bool can_flip = false;
    static constexpr __device__ __forceinline__ int run_of(int, int e) { return e; }
    static constexpr __device__ __forceinline__ int step_of(int v, int) { return v; }
    static constexpr __device__ __forceinline__ int vector_of(int, int step) { return step; }
    static constexpr __device__ __forceinline__ int element_of(int run, int) { return run; }
    static constexpr __device__ __forceinline__ int lane_of(int run) { return run; }

    const lane_state& thread;
    std::int64_t first;  ///< position of step 0
    std::int64_t direction;
    int existing;  ///< steps that exist

    /// `from`: the thread's first step in scan order, counted from the start of [low, high).
    __device__ __forceinline__ place(const lane_state& t, std::int64_t low, std::int64_t high,
                                     std::int64_t from, bool reversed)
        : thread(t), first(reversed ? high - 1 - from : low + from), direction(reversed ? -1 : 1) {
      const std::int64_t left = high - low - from;
      existing = t.valid == 0 || left < 0 ? 0 : left < Steps ? static_cast<int>(left) : Steps;
    }
    __device__ __forceinline__ bool flipped() const { return false; }
    __device__ __forceinline__ int steps(int) const { return existing; }
    __device__ __forceinline__ std::int64_t position(int, int step) const { return first + direction * step; }
    template <class F> __device__ __forceinline__ void reach(int t, int v, F&& f) const {
      const auto& memory = thread.a.tensor[t];
      const std::int64_t offset = v < existing ? thread.place[t] + thread.walk_offset(t, position(0, v)) : 0;
      f(memory.mode == access::vector && thread.valid == Lanes, offset, thread.a.inner_stride[t],
        v < existing ? thread.valid : 0);
    }
  };

  static constexpr __host__ __device__ int tile_steps(int lane_threads) {
    return threads / lane_threads * Steps;
  }
  /// Elements of shared memory in which warps exchange states, twice.
  static constexpr int exchange_elements(int lane_threads) {
    return 2 * component_capacity<group> * (threads / std::max(lane_threads, 32)) * Lanes * lane_threads;
  }

  lane_state thread;
  C* exchange;
  int lane_threads, lane_thread, segment;
  int bundles, bundle;  ///< the segments of one warp (or one segment, where it is more than a warp)
  int parity = 0, turn = -1;

  __device__ __forceinline__ strip(const typename K::arguments& a, C* shared, std::int64_t block)
      : thread(a), exchange(shared), lane_threads(a.lane_threads),
        lane_thread(static_cast<int>(threadIdx.x) & (a.lane_threads - 1)),
        segment(static_cast<int>(threadIdx.x) / a.lane_threads),
        bundles(threads / (a.lane_threads < 32 ? 32 : a.lane_threads)),
        bundle(static_cast<int>(threadIdx.x) / (a.lane_threads < 32 ? 32 : a.lane_threads)) {
    const std::int64_t blocks = (a.lanes + lane_threads - 1) / lane_threads;
    thread.find(block % blocks * lane_threads + lane_thread, block / blocks);
    thread.writes = segment == 0;
  }
  static std::int64_t blocks(const typename K::arguments& a) {
    return (a.lanes + a.lane_threads - 1) / a.lane_threads * a.segments;
  }

  template <int S>
  __device__ __forceinline__ tile<K, S, place> tile_at(std::int64_t low, std::int64_t high,
                                                       std::int64_t start, bool reversed) const {
    return tile<K, S, place>(thread, low, high, start + segment * Steps, reversed);
  }

  /// Joins the threads' states of the scans in Holder. `local` is each run folded onto `start`, which was the
  /// identity; `before` becomes what precedes the run, and the carry moves past the tile. True: fold again,
  /// onto the new `start` (one segment after the other, for where a stretch alone overflows, the scan through
  /// it may not).
  template <class Holder>
  __device__ __forceinline__ bool join(states<group, C> (&local)[Lanes], states<group, C> (&start)[Lanes],
                                       states<group, C> (&before)[Lanes]) {
    parity ^= 1;
    if (turn >= 0) return take_turn<Holder>(local, start, before);
    const int in_warp = static_cast<int>(threadIdx.x) & 31;
    states<group, C> preceding[Lanes];
    bool suspect = false;
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane) {
#pragma unroll 1
      for (int distance = lane_threads; distance < 32; distance *= 2) {
        const states<group, C> left = shuffle_up<group, Holder>(local[lane], distance, 32);
        if (in_warp >= distance) combine_onto<group, Holder>(left, local[lane]);
      }
      preceding[lane] = shuffle_up<group, Holder>(local[lane], lane_threads & 31, 32);
      if (in_warp < lane_threads) set_identity<group, Holder>(preceding[lane]);
      suspect = suspect || (thread.valid > 0 && overflows<group, Holder>(thread.carry[lane], local[lane]));
      if (in_warp >= 32 - lane_threads) put<Holder>(bundle, lane, local[lane]);
    }
    if (__syncthreads_or(suspect)) {
      turn = 0;
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane) copy_states<group, Holder>(thread.carry[lane], start[lane]);
      return true;
    }
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane) {
      states<group, C>& passed = thread.carry[lane];
      copy_states<group, Holder>(passed, before[lane]);
#pragma unroll 1
      for (int each = 0; each < bundles; ++each) {
        states<group, C> next = get<Holder>(each, lane);
        combine_onto<group, Holder>(passed, next);
        copy_states<group, Holder>(next, passed);
        if (each + 1 == bundle) copy_states<group, Holder>(passed, before[lane]);
      }
      combine_onto<group, Holder>(before[lane], preceding[lane]);
      copy_states<group, Holder>(preceding[lane], before[lane]);
    }
    return false;
  }

private:
  __device__ __forceinline__ C& exchanged(int component, int of_bundle, int lane) const {
    return exchange[(((parity * component_capacity<group> + component) * bundles + of_bundle) * Lanes +
                     lane) *
                        lane_threads +
                    lane_thread];
  }
  template <class Holder>
  __device__ __forceinline__ void put(int of_bundle, int lane, const states<group, C>& s) const {
    for_components<group, Holder>([&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
      exchanged(component_index<group, Holder>(N, Component), of_bundle, lane) =
          std::get<Component>(state_of<N>(s));
    });
  }
  template <class Holder> __device__ __forceinline__ states<group, C> get(int of_bundle, int lane) const {
    states<group, C> s;
    for_components<group, Holder>([&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
      std::get<Component>(state_of<N>(s)) =
          exchanged(component_index<group, Holder>(N, Component), of_bundle, lane);
    });
    return s;
  }

  template <class Holder>
  __device__ __forceinline__ bool take_turn(states<group, C> (&local)[Lanes],
                                            states<group, C> (&start)[Lanes],
                                            states<group, C> (&before)[Lanes]) {
    if (segment == turn) {
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane) {
        copy_states<group, Holder>(start[lane], before[lane]);
        put<Holder>(0, lane, local[lane]);
      }
    }
    __syncthreads();
    const bool more = ++turn < threads / lane_threads;
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane) {
      copy_states<group, Holder>(get<Holder>(0, lane), start[lane]);
      if (!more) copy_states<group, Holder>(start[lane], thread.carry[lane]);
    }
    if (!more) turn = -1;
    return more;
  }
};

}  // namespace scandsl::cuda_detail
