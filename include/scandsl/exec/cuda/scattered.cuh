#pragma once
#include <algorithm>

#include "scandsl/exec/cuda/elements.cuh"
#include "scandsl/exec/cuda/memory.cuh"

/// A thread's vectors where no single access reaches each: each one function for all places that call it, and
/// one call for several vectors, whose elements are then on their way together.
///
/// Elements that lie side by side, but not where vectors do (rows of an odd length), are read by the accesses
/// that cover them, one more than they fill, and shifted in registers. Threads of a warp whose vectors follow
/// one another write together: each has the bytes from its first place of a vector on, and of the next thread
/// those up to its own. The first thread's first bytes and the last one's last are written one by one.
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
template <class T, int Width> inline constexpr int access_bytes = std::min(16, packed<T, Width>::bytes);
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

/// Whether the accesses that cover a vector lie before `end`.
template <class T, int Width> __device__ __forceinline__ bool covers(const T* low, const T* end) {
  constexpr int access = access_bytes<T, Width>;
  const auto from = reinterpret_cast<std::uintptr_t>(low), by = from % access;
  return from - by + packed<T, Width>::bytes + (by != 0 ? access : 0) <=
         reinterpret_cast<std::uintptr_t>(end);
}
/// Reads a vector, wherever it lies.
template <class T, int Width> __device__ __forceinline__ packed<T, Width> load_between(const T* low) {
  constexpr int access = access_bytes<T, Width>, words = access / 4, count = packed<T, Width>::count;
  const int by = static_cast<int>(reinterpret_cast<std::uintptr_t>(low) % access);
  const auto* from = reinterpret_cast<const float*>(reinterpret_cast<const char*>(low) - by);
  std::uint32_t covering[count + words];
#pragma unroll
  for (int w = 0; w < count + words; w += words) {
    packed<float, words> part{};
    if (w < count || by != 0) part.load(from + w);
#pragma unroll
    for (int i = 0; i < words; ++i) covering[w + i] = part.word[i];
  }
  packed<T, Width> result;
  shift_words<access>(covering, by, result.word);
  return result;
}

/// Reads what lies `apart` from element to element and `next` from vector to vector, in a tensor that ends at
/// `end`. Elements that do not exist become like one that does, the vector's first (or where there is none,
/// that of the first vector), so that they are no further out of range than the data are.
template <int Vectors, int Width, class T>
__device__ __noinline__ packed_vectors<T, Vectors, Width>
load_elements(const T* first, std::int64_t apart, std::int64_t next, element_counts counts, const T* end,
              T other = {}) {
  packed_vectors<T, Vectors, Width> result{};
  if constexpr (can_shift<T, Width>) {
    const T* const low = apart < 0 ? first - (Width - 1) : first;
    bool all = apart == 1 || apart == -1;
#pragma unroll
    for (int v = 0; v < Vectors; ++v)
      all = all && counts.of(v) == Width && covers<T, Width>(low + v * next, end);
    if (all) {
#pragma unroll
      for (int v = 0; v < Vectors; ++v) result.vector[v] = load_between<T, Width>(low + v * next);
      if (apart < 0) {
#pragma unroll
        for (int v = 0; v < Vectors; ++v) result.vector[v].reverse();
      }
      return result;
    }
  }
#pragma unroll 4
  for (int v = 0; v < Vectors; ++v) {
    const T* const from = first + v * next;
    T instead = other;
    if (counts.of(v) > 0) instead = *from;
    if (v == 0) other = instead;
#pragma unroll
    for (int e = 0; e < Width; ++e)
      result.vector[v].set_bits(e, e < counts.of(v) ? from[e * apart] : instead);
  }
  return result;
}

/// Writes a vector, wherever it lies, with the threads of the warp whose vectors lie before and behind it in
/// memory; those that lie behind are of threads that come `later` by so many. `exists`: all of it.
template <class T, int Width>
__device__ __forceinline__ void store_between(T* low, const packed<T, Width>& values, bool exists,
                                              int later) {
  constexpr int access = access_bytes<T, Width>, words = access / 4, count = packed<T, Width>::count,
                bytes = packed<T, Width>::bytes;
  const unsigned together = __activemask();
  const int self = static_cast<int>(threadIdx.x) & 31;
  const auto at = exists ? reinterpret_cast<std::uintptr_t>(low) : std::uintptr_t{0};
  const auto place_of = [&](int other) {
    const std::uintptr_t there = __shfl_sync(together, at, other & 31);
    return (other & ~31) == 0 && (together >> other & 1U) != 0 ? there : std::uintptr_t{0};
  };
  const bool goes_on = place_of(self + later) == at + bytes;
  const std::uintptr_t before = place_of(self - later);
  const bool follows = before != 0 && before + bytes == at;
  std::uint32_t all[count + words], shifted[count];
#pragma unroll
  for (int w = 0; w < count; ++w) all[w] = values.word[w];
#pragma unroll
  for (int w = 0; w < words; ++w) all[count + w] = __shfl_sync(together, values.word[w], (self + later) & 31);
  if (!exists) return;
  const int by = static_cast<int>(at % access);
  if (by == 0) return values.store(low);
  shift_words<access>(all, access - by, shifted);
  float* const to = reinterpret_cast<float*>(at - static_cast<unsigned>(by) + access);
#pragma unroll
  for (int w = 0; w < count; w += words) {
    packed<float, words> part;
#pragma unroll
    for (int i = 0; i < words; ++i) part.word[i] = shifted[w + i];
    if (w + words < count || goes_on) part.store(to + w);
  }
  const int first = follows ? 0 : (access - by) / int{sizeof(T)},
            last = goes_on ? Width : Width - by / int{sizeof(T)};
  if (first == 0 && last == Width) return;
#pragma unroll
  for (int e = 0; e < Width; ++e)
    if (e < first || e >= last) low[e] = values.bits_of(e);
}

/// Writes what lies so. Together: threads whose vectors follow one another, in one call, do. (That costs
/// registers where it is called, also for calls that are not made.)
template <bool Together, int Vectors, int Width, class T>
__device__ __noinline__ void store_elements(T* first, std::int64_t apart, std::int64_t next,
                                            element_counts counts, packed_vectors<T, Vectors, Width> values) {
#pragma unroll 1
  for (int v = 0; v < Vectors; ++v) {
    const int count = counts.of(v);
    T* const to = first + v * next;
    bool stored = false;
    if constexpr (Together && can_shift<T, Width>)
      if (apart == 1 || apart == -1) {
        const bool flipped = apart < 0;
        packed<T, Width> in_memory = values.vector[v];
        if (flipped) in_memory.reverse();
        stored = count == Width;
        store_between<T, Width>(flipped ? to - (Width - 1) : to, in_memory, stored, flipped ? -1 : 1);
      }
    if (stored) continue;
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
