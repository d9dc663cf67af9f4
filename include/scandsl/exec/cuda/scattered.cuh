#pragma once
#include "scandsl/core/order.hpp"
#include "scandsl/exec/cuda/elements.cuh"
#include "scandsl/exec/cuda/memory.cuh"

/// A thread's vectors where no single access reaches each: each one function for all places that call it, and
/// one call for several vectors, whose elements are then on their way together.
///
/// Elements that lie side by side, but not where vectors do (rows of an odd length), are read by the accesses
/// that cover them, one more than they fill, and shifted in registers. Threads of a warp whose vectors follow
/// one another write together: each has the bytes from its first place of a vector on, and of the next thread
/// those up to its own; where the threads' next vectors follow these, the last thread has those of the first.
/// What is left, first bytes and last ones, is written one by one.
///
///     places      |       |       |       |       |
///     vectors         t0      t1      t2
///     writes      ---- t0 ---- t1 ----- t2
namespace scandsl::cuda_detail {

/// `Vectors` vectors of `Width` elements.
template <class T, int Vectors, int Width> struct packed_vectors {
  packed<T, Width> vector[Vectors];
};

/// Bytes of one access to a vector.
template <class T, int Width> inline constexpr int access_bytes = smaller(16, packed<T, Width>::bytes);
/// Whether vectors may lie between the places that accesses reach.
template <class T, int Width>
inline constexpr bool can_shift = Width > 1 && packed<T, Width>::bytes % access_bytes<T, Width> == 0 &&
                                  access_bytes<T, Width> >= 4 && access_bytes<T, Width> > int{sizeof(T)};

/// The words that begin `by` bytes into `from`; by < Access.
template <int Access, int Count>
__device__ __forceinline__ void shift_words(std::uint32_t (&from)[Count + Access / 4], int by,
                                            std::uint32_t (&to)[Count]) {
  constexpr int words = Count + Access / 4;
  if (Access >= 16 && (by & 8) != 0) {
#pragma unroll
    for (int w = 0; w + 2 < words; ++w) from[w] = from[w + 2];
  }
  if (Access >= 8 && (by & 4) != 0) {
#pragma unroll
    for (int w = 0; w + 1 < words; ++w) from[w] = from[w + 1];
  }
#pragma unroll
  for (int w = 0; w < Count; ++w)
    to[w] = __funnelshift_r(from[w], from[w + 1], 8 * static_cast<unsigned>(by & 3));
}

/// The accesses that cover a vector, wherever it lies.
template <class T, int Width> struct covering {
  static constexpr int access = access_bytes<T, Width>, words = access / 4, count = packed<T, Width>::count;
  std::uintptr_t from;
  int by;  ///< bytes from there to the vector
  std::uint32_t word[count + words];

  __device__ __forceinline__ explicit covering(const T* low)
      : from(reinterpret_cast<std::uintptr_t>(low) / access * access),
        by(static_cast<int>(reinterpret_cast<std::uintptr_t>(low) % access)) {}
  /// Whether they lie before `end`.
  __device__ __forceinline__ bool ends_by(const T* end) const {
    return from + packed<T, Width>::bytes + (by != 0 ? access : 0) <= reinterpret_cast<std::uintptr_t>(end);
  }
  __device__ __forceinline__ void load(bool exists) {
#pragma unroll
    for (int w = 0; w < count + words; w += words) {
      packed<float, words> part{};
      if (exists && (w < count || by != 0)) part.load(reinterpret_cast<const float*>(from) + w);
#pragma unroll
      for (int i = 0; i < words; ++i) word[w + i] = part.word[i];
    }
  }
  __device__ __forceinline__ packed<T, Width> vector() {
    packed<T, Width> result;
    shift_words<access>(word, by, result.word);
    return result;
  }
};

/// Reads what lies `apart` from element to element and `next` from vector to vector, in a tensor that ends at
/// `end`. Elements that do not exist become like one that does, the vector's first (or where there is none,
/// that of the first vector), so that they are no further out of range than the data are.
template <int Vectors, int Width, class T>
__device__ __noinline__ packed_vectors<T, Vectors, Width>
load_elements(const T* first, std::int64_t apart, std::int64_t next, element_counts counts, const T* end,
              T other = {}) {
  packed_vectors<T, Vectors, Width> result{};
  if constexpr (can_shift<T, Width>) {
    // What does not exist of a vector may be another's, and is read with it, unless it lies before what does:
    // where tensors begin is not known. Of two elements one by itself is as soon read; to cut them would cost
    // the callers, gradients along strips, registers that they do not have.
    constexpr bool cuts = packed<T, Width>::bytes > 4;
    const T* const low = apart < 0 ? first - (Width - 1) : first;
    bool all = apart == 1 || apart == -1;
#pragma unroll
    for (int v = 0; v < Vectors; ++v) {
      const bool begins = counts.of(v) == Width || (cuts && apart > 0);
      all = all && ((cuts && !counts.any(v)) || (begins && covering<T, Width>(low + v * next).ends_by(end)));
    }
    if (all) {
      const auto covered = [&]<int... V>(std::integer_sequence<int, V...>) {
        covering<T, Width> some[] = {covering<T, Width>(low + V * next)...};
        (some[V].load(!cuts || counts.any(V)), ...);
        ((result.vector[V] = some[V].vector()), ...);
      };
      covered(std::make_integer_sequence<int, Vectors>{});
#pragma unroll
      for (int v = 0; v < Vectors; ++v) {
        packed<T, Width>& vector = result.vector[v];
        if (apart < 0) vector.reverse();
        const int count = counts.of(v);
        if (cuts && count < Width) {
          const T instead = count > 0 ? vector.bits_of(0) : other;
#pragma unroll
          for (int e = 0; e < Width; ++e)
            if (e >= count) vector.set_bits(e, instead);
        }
        if (v == 0) other = vector.bits_of(0);
      }
      return result;
    }
  }
#pragma unroll 4
  for (int v = 0; v < Vectors; ++v) {
    const T* const from = first + v * next;
    T instead = other;
    if (counts.of(v) > 0) instead = *from;  // as below: any(v) would be one more value to keep
    if (v == 0) other = instead;
#pragma unroll
    for (int e = 0; e < Width; ++e)
      result.vector[v].set_bits(e, e < counts.of(v) ? from[e * apart] : instead);
  }
  return result;
}

/// How a thread's vectors lie beside those of the threads of its warp that write with it.
struct vector_neighbours {
  unsigned together;
  int self, later;  ///< to the thread whose vector comes next in memory: 1 or -1
  bool leads, follows;
  /// Whether 32 threads' vectors follow one another, and the vectors that they have next follow these.
  bool wraps;

  /// `low`: where one of its vectors begins; from there it is `further` bytes to its next one.
  __device__ __forceinline__ vector_neighbours(std::uintptr_t low, unsigned bytes, std::int64_t further,
                                               bool flipped)
      : together(__activemask()), self(static_cast<int>(threadIdx.x) & 31), later(flipped ? -1 : 1) {
    const auto place_of = [&](int other) {
      const std::uintptr_t there = __shfl_sync(together, low, other & 31);
      return (other & ~31) == 0 && (together >> other & 1U) != 0 ? there : std::uintptr_t{0};
    };
    leads = place_of(self + later) == low + bytes;
    follows = place_of(self - later) + bytes == low;
    wraps = __all_sync(together, together == ~0U && (leads || is_last()) && further == 32 * bytes);
  }
  __device__ __forceinline__ bool is_first() const { return self == (later > 0 ? 0 : 31); }
  __device__ __forceinline__ bool is_last() const { return self == (later > 0 ? 31 : 0); }
  /// Whether what comes next in memory, or before, is in the threads that have all of their vectors `here`.
  /// At the warp's ends, where it wraps, that is one of their next vectors (`behind`) or the ones `before`.
  __device__ __forceinline__ bool goes_on(unsigned here, unsigned behind) const {
    const bool turns = wraps && is_last();
    return (leads || turns) && ((turns ? behind : here) >> ((self + later) & 31) & 1U) != 0;
  }
  __device__ __forceinline__ bool comes_from(unsigned here, unsigned before) const {
    const bool turns = wraps && is_first();
    return (follows || turns) && ((turns ? before : here) >> ((self - later) & 31) & 1U) != 0;
  }
};

/// Writes vectors of elements that lie side by side, each from `low` on and the next one `next` elements
/// further, with the threads of the warp whose vectors lie before and behind. Flipped: in the opposite order.
template <int Vectors, int Width, class T>
__device__ __forceinline__ void store_together(T* low, bool flipped, std::int64_t next, element_counts counts,
                                               const packed_vectors<T, Vectors, Width>& values) {
  using vector = packed<T, Width>;
  constexpr int access = access_bytes<T, Width>, words = access / 4, count = vector::count,
                size = static_cast<int>(sizeof(T));
  // One after the other in the order of memory.
  const bool back = next < 0;
  const int step = back ? -1 : 1;
  int v = back ? Vectors - 1 : 0;
  low += v * next;
  next *= step;
  const vector_neighbours beside(reinterpret_cast<std::uintptr_t>(low), vector::bytes, next * size, flipped);
  const auto vector_at = [&](int number) {
    vector found = values.vector[number];
    if (flipped) found.reverse();
    return found;
  };
  const auto complete = [&](int number) {
    return __ballot_sync(beside.together, counts.of(number) == Width);
  };
  vector now = vector_at(v);
  unsigned before = 0, here = complete(v);
#pragma unroll 1
  for (int i = 0; i < Vectors; ++i, v += step, low += next) {
    const bool more = i + 1 < Vectors;
    const vector following = vector_at(more ? v + step : v);
    const unsigned behind = more ? complete(v + step) : 0;
    const bool goes_on = beside.goes_on(here, behind), follows = beside.comes_from(here, before);
    std::uint32_t all[count + words], shifted[count];
#pragma unroll
    for (int w = 0; w < count; ++w) all[w] = now.word[w];
#pragma unroll
    for (int w = 0; w < words; ++w)
      all[count + w] =
          __shfl_sync(beside.together, beside.wraps && beside.is_first() ? following.word[w] : now.word[w],
                      (beside.self + beside.later) & 31);
    const int exist = counts.of(v);
    const auto at = reinterpret_cast<std::uintptr_t>(low);
    const int by = static_cast<int>(at % access);
    // Elements outside of [first, last) are written one by one; those inside in whole pieces, this thread's
    // or that of the one before, or they do not exist.
    int first = flipped ? 0 : exist, last = flipped ? Width - exist : Width;
    if (exist == Width) {
      first = by == 0 || follows ? 0 : (access - by) / size;
      last = by == 0 || goes_on ? Width : Width - by / size;
      shift_words<access>(all, by == 0 ? 0 : access - by, shifted);
      float* const to = reinterpret_cast<float*>(at + static_cast<unsigned>(by == 0 ? 0 : access - by));
#pragma unroll
      for (int w = 0; w < count; w += words) {
        packed<float, words> part;
#pragma unroll
        for (int k = 0; k < words; ++k) part.word[k] = shifted[w + k];
        if (w + words < count || goes_on || by == 0) part.store(to + w);
      }
    }
    if (first > 0 || last < Width)
#pragma unroll
      for (int e = 0; e < Width; ++e)
        if (e < first || e >= last) low[e] = now.bits_of(e);
    before = here;
    here = behind;
    now = following;
  }
}

/// Writes what lies so. Together: threads whose vectors follow one another, in one call, do. (That costs
/// registers where it is called, also for calls that are not made.)
template <bool Together, int Vectors, int Width, class T>
__device__ __noinline__ void store_elements(T* first, std::int64_t apart, std::int64_t next,
                                            element_counts counts, packed_vectors<T, Vectors, Width> values) {
  if constexpr (Together && can_shift<T, Width>)
    if (apart == 1 || apart == -1) {
      const bool flipped = apart < 0;
      return store_together(flipped ? first - (Width - 1) : first, flipped, next, counts, values);
    }
#pragma unroll 1
  for (int v = 0; v < Vectors; ++v) {
    const int count = counts.of(v);
    T* const to = first + v * next;
#pragma unroll
    for (int e = 0; e < Width; ++e)
      if (e < count) to[e * apart] = values.vector[v].bits_of(e);
  }
}

/// The same with any strides, any type and walks of several dimensions.
template <class T, int Vectors, int Width, class A>
__device__ __noinline__ packed_vectors<T, Vectors, Width> gather_elements(const A& a, int t,
                                                                          element_path path) {
  packed_vectors<T, Vectors, Width> result;
  const T* const data = static_cast<const T*>(a.tensor[t].data);
  const bool as_held = a.tensor[t].type == dtype_of<T>;
#pragma unroll 1
  for (int v = 0; v < Vectors; ++v) {
    const element_offsets<Width> at(a, t, path, v);
#pragma unroll
    for (int e = 0; e < Width; ++e) {
      T value{};
      if (e < at.count) {
        if (as_held)
          value = data[at.of[e]];
        else if constexpr (sizeof(T) >= 4)
          value = load_any<T>(data, a.tensor[t].type, at.of[e]);
      }
      result.vector[v].set_bits(e, value);
    }
  }
  return result;
}
template <class T, int Vectors, int Width, class A>
__device__ __noinline__ void scatter_elements(const A& a, int t, element_path path,
                                              packed_vectors<T, Vectors, Width> values) {
  T* const data = static_cast<T*>(a.tensor[t].data);
  const bool as_held = a.tensor[t].type == dtype_of<T>;
#pragma unroll 1
  for (int v = 0; v < Vectors; ++v) {
    const element_offsets<Width> at(a, t, path, v);
#pragma unroll
    for (int e = 0; e < Width; ++e)
      if (e < at.count) {
        if (as_held)
          data[at.of[e]] = values.vector[v].bits_of(e);
        else if constexpr (sizeof(T) >= 4)
          store_any<T>(data, a.tensor[t].type, at.of[e], values.vector[v].bits_of(e));
      }
  }
}

}  // namespace scandsl::cuda_detail
