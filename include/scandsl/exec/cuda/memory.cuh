#pragma once
#include <cstdint>
#include <type_traits>

#include "scandsl/core/dtype.hpp"
#include "scandsl/exec/cuda/approximate.cuh"

/// Vectors of stored elements in registers, and the conversions between storage and arithmetic.
namespace scandsl::cuda_detail {

/// Stands for a tensor whose element type is known at run time only.
struct any_type {};

/// (By instructions, as the other conversions: <cuda_fp16.h> is read three times for each file, 0.3 s in
/// all.)
__device__ __forceinline__ float half_as_float(std::uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

template <class T, class C> __device__ __forceinline__ C widen(T stored) {
  if constexpr (std::is_same_v<T, float16>)
    return static_cast<C>(half_as_float(stored.bits));
  else if constexpr (std::is_same_v<T, bfloat16>)
    return static_cast<C>(__uint_as_float(static_cast<unsigned>(stored.bits) << 16));
  else
    return static_cast<C>(stored);
}

/// Rounds once, to nearest even.
template <class T, class C> __device__ __forceinline__ T narrow(C value) {
  if constexpr (std::is_same_v<C, approximate>) {
    return narrow<T>(value.value);
  } else if constexpr (std::is_same_v<T, float16>) {
    T result;
    if constexpr (std::is_same_v<C, double>)
      asm("cvt.rn.f16.f64 %0, %1;" : "=h"(result.bits) : "d"(value));
    else
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    if constexpr (std::is_same_v<C, double>) {
      return T(value);
    } else {
      T result;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
      return result;
    }
  } else {
    return static_cast<T>(value);
  }
}

/// Two neighbouring 16-bit elements, the first in the lower half.
template <class T> __device__ __forceinline__ std::uint32_t narrow_pair(float low, float high) {
  std::uint32_t pair;
  if constexpr (std::is_same_v<T, bfloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

/// N elements of storage type T as 32-bit words.
template <class T, int N> struct packed {
  static_assert(sizeof(T) * N >= 4 || N == 1);
  static constexpr int bytes = static_cast<int>(sizeof(T)) * N, count = bytes < 4 ? 1 : bytes / 4;
  static constexpr bool halves = sizeof(T) == 2;
  std::uint32_t word[count];

  template <class C> __device__ __forceinline__ C get(int i) const {
    if constexpr (std::is_same_v<T, bfloat16>) {
      const std::uint32_t w = word[i / 2];
      return static_cast<C>(__uint_as_float(i % 2 != 0 ? w & 0xffff0000U : w << 16));
    } else if constexpr (std::is_same_v<T, float16>) {
      const std::uint32_t w = word[i / 2];
      return static_cast<C>(half_as_float(static_cast<std::uint16_t>(i % 2 != 0 ? w >> 16 : w & 0xffffU)));
    } else if constexpr (sizeof(T) == 4) {
      return static_cast<C>(__uint_as_float(word[i]));
    } else {
      return static_cast<C>(
          __hiloint2double(static_cast<int>(word[2 * i + 1]), static_cast<int>(word[2 * i])));
    }
  }
  __device__ __forceinline__ void set_bits(int i, T stored) {
    if constexpr (halves) {
      std::uint32_t& w = word[i / 2];
      const std::uint32_t bits = stored.bits;
      w = i % 2 != 0 ? (w & 0xffffU) | bits << 16 : (w & 0xffff0000U) | bits;
    } else if constexpr (sizeof(T) == 4) {
      word[i] = __float_as_uint(stored);
    } else {
      word[2 * i] = static_cast<std::uint32_t>(__double2loint(stored));
      word[2 * i + 1] = static_cast<std::uint32_t>(__double2hiint(stored));
    }
  }
  __device__ __forceinline__ T bits_of(int i) const {
    if constexpr (halves) {
      T stored;
      stored.bits = static_cast<std::uint16_t>(i % 2 != 0 ? word[i / 2] >> 16 : word[i / 2] & 0xffffU);
      return stored;
    } else if constexpr (sizeof(T) == 4) {
      return __uint_as_float(word[i]);
    } else {
      return __hiloint2double(static_cast<int>(word[2 * i + 1]), static_cast<int>(word[2 * i]));
    }
  }
  /// Sets the elements from `first` on; an even number of them from an even one on.
  template <class C, int Count> __device__ __forceinline__ void set(int first, const C (&values)[Count]) {
    if constexpr (halves && !std::is_same_v<C, double> && Count % 2 == 0) {
#pragma unroll
      for (int i = 0; i < Count; i += 2)
        word[(first + i) / 2] =
            narrow_pair<T>(static_cast<float>(values[i]), static_cast<float>(values[i + 1]));
    } else {
#pragma unroll
      for (int i = 0; i < Count; ++i) set_bits(first + i, narrow<T>(values[i]));
    }
  }
  /// Puts the elements in the opposite order.
  __device__ __forceinline__ void reverse() {
    packed flipped;
#pragma unroll
    for (int w = 0; w < count; ++w) {
      flipped.word[w] = word[place_reversed(w)];
      if constexpr (halves && N > 1) flipped.word[w] = __byte_perm(flipped.word[w], 0, 0x1032);
    }
    *this = flipped;
  }

  __device__ __forceinline__ void load(const T* from) {
    if constexpr (bytes % 16 == 0) {
#pragma unroll
      for (int w = 0; w < count; w += 4) {
        const uint4 part = *reinterpret_cast<const uint4*>(reinterpret_cast<const std::uint32_t*>(from) + w);
        word[w] = part.x;
        word[w + 1] = part.y;
        word[w + 2] = part.z;
        word[w + 3] = part.w;
      }
    } else if constexpr (bytes == 8) {
      const uint2 part = *reinterpret_cast<const uint2*>(from);
      word[0] = part.x;
      word[1] = part.y;
    } else if constexpr (bytes == 4) {
      word[0] = *reinterpret_cast<const std::uint32_t*>(from);
    } else {
      word[0] = from->bits;
    }
  }
  /// From shared memory, in the opposite order, word by word: words that are moved about in registers where a
  /// scan goes backwards cost those that go forwards a move each, too.
  __device__ __forceinline__ void load_reversed(const T* from) {
    const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(from));
#pragma unroll
    for (int w = 0; w < count; ++w)
      asm volatile("ld.volatile.shared.b32 %0, [%1];" : "=r"(word[w]) : "r"(at + 4 * place_reversed(w)));
    if constexpr (halves && N > 1) {
#pragma unroll
      for (int w = 0; w < count; ++w) word[w] = __byte_perm(word[w], 0, 0x1032);
    }
  }
  /// To shared memory, where load finds it again.
  __device__ __forceinline__ void put(T* to) const {
#pragma unroll
    for (int w = 0; w < count; ++w) reinterpret_cast<std::uint32_t*>(to)[w] = word[w];
  }
  /// Where word w goes, in the opposite order of elements.
  static constexpr __device__ __forceinline__ int place_reversed(int w) {
    return sizeof(T) == 8 ? (count / 2 - 1 - w / 2) * 2 + w % 2 : count - 1 - w;
  }
  __device__ __forceinline__ void store(T* to) const {
    if constexpr (bytes % 16 == 0) {
#pragma unroll
      for (int w = 0; w < count; w += 4)  // nvcc takes an assignment of four words apart where it likes
        asm volatile(
            "st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(reinterpret_cast<std::uint32_t*>(to) + w),
            "r"(word[w]), "r"(word[w + 1]), "r"(word[w + 2]), "r"(word[w + 3])
            : "memory");
    } else if constexpr (bytes == 8) {
      asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(word[0]), "r"(word[1]) : "memory");
    } else if constexpr (bytes == 4) {
      *reinterpret_cast<std::uint32_t*>(to) = word[0];
    } else {
      to->bits = static_cast<std::uint16_t>(word[0]);
    }
  }
};

// ---- element types known at run time

template <class C> __device__ __noinline__ C load_any(const void* data, dtype type, std::int64_t offset) {
  switch (type) {
  case dtype::float32: return widen<float, C>(static_cast<const float*>(data)[offset]);
  case dtype::float64: return widen<double, C>(static_cast<const double*>(data)[offset]);
  case dtype::bfloat16: return widen<bfloat16, C>(static_cast<const bfloat16*>(data)[offset]);
  case dtype::float16: return widen<float16, C>(static_cast<const float16*>(data)[offset]);
  case dtype::int32: return static_cast<C>(static_cast<const std::int32_t*>(data)[offset]);
  case dtype::int64: return static_cast<C>(static_cast<const std::int64_t*>(data)[offset]);
  }
  return C(0);
}

template <class C>
__device__ __noinline__ void store_any(void* data, dtype type, std::int64_t offset, C value) {
  switch (type) {
  case dtype::float32: static_cast<float*>(data)[offset] = narrow<float>(value); break;
  case dtype::float64: static_cast<double*>(data)[offset] = narrow<double>(value); break;
  case dtype::bfloat16: static_cast<bfloat16*>(data)[offset] = narrow<bfloat16>(value); break;
  case dtype::float16: static_cast<float16*>(data)[offset] = narrow<float16>(value); break;
  case dtype::int32:
  case dtype::int64: break;
  }
}

}  // namespace scandsl::cuda_detail
