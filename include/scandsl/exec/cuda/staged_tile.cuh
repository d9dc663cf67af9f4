#pragma once
#include "scandsl/exec/cuda/tile.cuh"

/// The part of a row's tile that one thread holds in shared memory, where registers are not enough for all
/// of it: of what is read twice, by a reduction and then with its result. Its vectors, as many as the row
/// needs, are read, computed and written one after the other, each as a tile of its own. They lie where 16
/// bytes do, wherever the row begins:
///
///     steps   |  .. t0 | t1 | .. | t255 | t0 | t1 | .. | t255 | t0 ..  |  of a row with 256 threads
///                ^       vector 0         vector 1              ^
///                begins                                         ends
///
/// Of a warp's vectors all but those two are whole for all of its threads. Those two are masked, and their
/// elements read and written one by one; so are all vectors of rows whose elements lie apart, or the other
/// way round.
namespace scandsl::cuda_detail {

/// Where one vector of a thread lies; of its steps so many of the first are missing.
template <class Place> struct vector_place : Place {
  static constexpr bool begins_late = true, tells_of_all = false;
  int missing = 0;
  __device__ __forceinline__ explicit vector_place(const Place& place) : Place(place) {}
};

template <class K, class Place> struct staged_tile {
  using group = typename K::group;
  using C = typename K::compute;
  using vector_tile = tile<K, all_sweeps, vector_place<Place>, false>;
  template <int Q> using fold_stage = typename vector_tile::template fold_stage<Q>;
  static constexpr int read = walked_loads<group, all_sweeps>::list[0], input = node_at<group, read>.target;
  static constexpr int width = Place::width, vector_bytes = vector_tile::template vector_bytes<read>;
  static_assert(vector_bytes == 16 && Place::vectors == 1);
  static constexpr bool anywhere = false, has_parts = true, keeps_shared = false;
  static constexpr __device__ __forceinline__ int lane_of(int) { return 0; }

  const typename Place::lane_state& thread;
  stretch of_tile;
  Place first;           ///< of vector 0
  int whole;             ///< behind the vectors that all threads of the warp have,
  bool begins, ends;     ///< and whether the row begins in vector 0, and ends in vector `whole`
  int apart;             ///< bytes from vector to vector in the stage
  unsigned char* own{};  ///< the thread's vector 0 in the stage

  /// For the thread `in_row` of a row; the block has `threads`.
  __device__ __forceinline__ staged_tile(const typename Place::lane_state& of, const stretch& where,
                                         int in_row, int threads, bool reversed)
      : thread(of), of_tile(where), first(of, where, in_row * width, of.a.lane_threads * width, reversed),
        apart(threads * vector_bytes) {
    const int shift = shift_of<input>();
    first.start -= shift;
    first.left += shift;
    const int steps = of.valid == 0 ? 0 : where.steps + shift, low = (in_row & ~31) * width,
              rest = steps - low - 32 * width,
              log2_apart = of.a.log2_lane_threads + std::countr_zero(static_cast<unsigned>(width));
    whole = rest < 0 ? 0 : (rest >> log2_apart) + 1;
    ends = low + (whole << log2_apart) < steps;
    begins = shift > 0 && low == 0 && whole > 0;
  }

  __device__ __forceinline__ int steps(int) const { return first.steps(0); }
  static constexpr __device__ __forceinline__ bool in_parts() { return false; }

  /// Has the copy engine bring the row to a stage.
  __device__ __forceinline__ void prefetch(unsigned char* stage) {
    own = stage + threadIdx.x * vector_bytes;
    if (!is_plain<input>()) return;
    const auto* at = in_memory<input>();
    std::uint32_t to = shared_address(stage_of(0));
#pragma unroll 2
    for (int v = 0; v < whole; ++v, at += first.apart, to += static_cast<std::uint32_t>(apart))
      if (v > 0 || !begins) copy_16_async(to, at);
  }
  /// Waits for that, and brings the rest.
  __device__ __forceinline__ void arrive() const {
    __pipeline_wait_prior(0);
    for_others(is_plain<input>(), [&](int v) { bring(v); });
  }

  /// As a tile's, through all of the thread's vectors: an order that does not matter.
  template <int Q, int Round, bool Framed, tile_mask, bool Back = false, class Uniforms>
  __device__ __forceinline__ void fold(Uniforms& u, int, const states<group, C>& before,
                                       states<group, C>& state) const {
    for_whole([&](vector_tile one) {
      one.template fold<Q, Round, Framed, tile_mask::none, Back>(u, 0, before, state);
    });
    for_others(true, [&](int v) {
      held(v).template fold<Q, Round, Framed, tile_mask::steps, Back>(u, 0, before, state);
    });
  }

  template <int Q, bool Framed, bool Back = false>
  __device__ __forceinline__ void finish(const states<group, C> (&before)[1],
                                         states<group, C> (&tally)[1]) const {
    if constexpr (vector_tile::template finishes<Q>) {
      constexpr int t = vector_tile::template output_tensor<Q, 0>;
      const bool plain = is_plain<t>();
      if (plain) {
        auto* at = in_memory<t>() + (begins ? first.apart : 0);
        for_whole([&](const vector_tile& one) {
          computed<Q, Framed, Back>(one, before, tally).store(at);
          at += first.apart;
        });
      }
      for_others(plain, [&](int v) {
        const vector_tile one = held(v);
        put<t>(one, computed<Q, Framed, Back>(one, before, tally));
      });
    }
  }

private:
  template <int T> using element = held_element<typename K::template element<T>, C>;

  /// Whether a tensor's elements lie one behind the other.
  template <int T> __device__ __forceinline__ bool is_contiguous() const {
    const auto& a = thread.a;
    return a.tensor[T].bound && a.walk_dimensions == 1 && a.walk[0].stride[T] == 1 && !first.reversed;
  }
  /// How far behind 16 aligned bytes the row begins in tensor T, where its elements are contiguous.
  template <int T> __device__ __forceinline__ int shift_of() const {
    if (!is_contiguous<T>()) return 0;
    const auto* const begin = static_cast<const element<T>*>(thread.a.tensor[T].data) + thread.place[T];
    return static_cast<int>((reinterpret_cast<std::uintptr_t>(begin + of_tile.low) / sizeof(element<T>)) &
                            (width - 1));
  }
  /// Whether whole vectors of a tensor lie where those of the stage do.
  template <int T> __device__ __forceinline__ bool is_plain() const {
    return is_contiguous<T>() && (T == input || shift_of<T>() == shift_of<input>());
  }
  template <int T> __device__ __forceinline__ auto* in_memory() const {
    return static_cast<element<T>*>(thread.a.tensor[T].data) + first.first(T);
  }

  __device__ __forceinline__ vector_place<Place> place_of(int v) const {
    vector_place<Place> where(first);
    where.start += v * further();
    where.left -= v * first.apart;
    if (v == 0 && begins && where.start < 0) where.missing = -where.start;
    return where;
  }
  __device__ __forceinline__ element<input>* stage_of(int v) const {
    return reinterpret_cast<element<input>*>(own + v * apart);
  }
  __device__ __forceinline__ vector_tile held(const vector_place<Place>& where,
                                              const element<input>* stage) const {
    vector_tile one(where);
    held_of<read>(one.loads).vector[0].load(stage);
    return one;
  }
  __device__ __forceinline__ vector_tile held(int v) const { return held(place_of(v), stage_of(v)); }
  /// Calls f(vector) for the vectors that are whole.
  template <class F> __device__ __forceinline__ void for_whole(F&& f) const {
    int v = begins ? 1 : 0;
    vector_place<Place> where(first);
    where.start += v * further();
    const element<input>* stage = stage_of(v);
#pragma unroll 1
    for (; v < whole; ++v) {
      f(held(where, stage));
      where.start += further();
      stage += apart / static_cast<int>(sizeof(element<input>));
    }
  }
  /// Calls f(v) for those in which the row begins and ends; where the whole ones are not done, for all.
  template <class F> __device__ __forceinline__ void for_others(bool whole_done, F&& f) const {
#pragma unroll 1
    for (int v = whole_done && !begins ? whole : 0; v < whole || (v == whole && ends);
         v = whole_done && v < whole ? whole : v + 1)
      f(v);
  }
  __device__ __forceinline__ int further() const { return first.reversed ? -first.apart : first.apart; }
  template <int Q, bool Framed, bool Back>
  __device__ __forceinline__ auto computed(const vector_tile& one, const states<group, C> (&before)[1],
                                           states<group, C> (&tally)[1]) const {
    typename vector_tile::template outputs<Q> written;
    one.template compute<Q, Framed, Back>(before, tally, written);
    return held_of<0>(written).vector[0];
  }

  /// Calls f(e, offset) for the elements of a vector in tensor T that exist.
  template <int T, class F>
  __device__ __forceinline__ void for_elements(const vector_tile& one, F&& f) const {
    const std::int64_t along = thread.a.walk[0].stride[T];
#pragma unroll
    for (int e = 0; e < width; ++e)
      if (one.has_step(0, e)) f(e, thread.place[T] + one.position(0, e) * along);
  }
  __device__ __forceinline__ void bring(int v) const {
    const auto* const from = static_cast<const element<input>*>(thread.a.tensor[input].data);
    packed<element<input>, width> vector{};
    if (thread.a.tensor[input].bound)
      for_elements<input>(vector_tile(place_of(v)),
                          [&](int e, std::int64_t offset) { vector.set_bits(e, from[offset]); });
    vector.put(stage_of(v));
  }
  template <int T, class Vector>
  __device__ __forceinline__ void put(const vector_tile& one, const Vector& vector) const {
    auto* const to = static_cast<element<T>*>(thread.a.tensor[T].data);
    if (thread.a.tensor[T].bound)
      for_elements<T>(one, [&](int e, std::int64_t offset) { to[offset] = vector.bits_of(e); });
  }
};

}  // namespace scandsl::cuda_detail
