#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#ifdef __AVX__
#include <immintrin.h>
#endif

#include "scandsl/core/half.hpp"

// Registers of N elements, and their way to and from memory of any storage type.

namespace scandsl::detail {

template <class T, int N> struct vector_of {
  using type [[gnu::vector_size(sizeof(T) * N)]] = T;
};
/// N elements in a register (the vector extension of GCC and Clang).
template <class T, int N> using vec = typename vector_of<T, N>::type;

/// The value in every element; value - 0 is exact for -0 too.
template <class T, int N> [[gnu::always_inline]] inline vec<T, N> splat(T value) {
  return value - vec<T, N>{};
}

template <class V, class T> [[gnu::always_inline]] inline V load_raw(const T* from) {
  V result;
  std::memcpy(&result, from, sizeof(V));
  return result;
}

template <class T, class V> [[gnu::always_inline]] inline void store_raw(T* to, const V& value) {
  std::memcpy(to, &value, sizeof(V));
}

/// A store past the caches, of 32 or 64 bytes to an address aligned to them. A line whose bytes all come by
/// neighbouring stores of this kind is not read from memory first.
template <class T, class V>
[[gnu::always_inline]] inline void store_streaming([[maybe_unused]] T* to, const V& value) {
#ifdef __AVX512F__
  if constexpr (sizeof(V) == 64) return _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)value);
#endif
#ifdef __AVX__
  if constexpr (sizeof(V) == 32) return _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)value);
#endif
}

/// Makes this thread's streaming stores visible before its later ones.
inline void fence_streaming() {
#ifdef __AVX__
  _mm_sfence();
#endif
}

inline constexpr int line_bytes = 64;

inline bool is_line_aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % line_bytes == 0;
}
/// Whether what lies so many bytes apart, from `pointer` on, begins where lines do.
inline bool begins_lines(const void* pointer, std::int64_t apart) {
  return is_line_aligned(pointer) && apart % line_bytes == 0;
}

/// Converts element by element. GCC 12 builds conversions between elements of unlike sizes from halves and
/// shuffles; those on the way of bfloat16 and double are named where one instruction does it.
template <class To, class From, int N>
[[gnu::always_inline]] inline vec<To, N> convert(const vec<From, N>& from) {
  using std::is_same_v, std::uint16_t, std::uint32_t;
  [[maybe_unused]] constexpr bool widens_half = is_same_v<From, uint16_t> && is_same_v<To, uint32_t>;
  [[maybe_unused]] constexpr bool narrows_word = is_same_v<From, uint32_t> && is_same_v<To, uint16_t>;
  [[maybe_unused]] constexpr bool widens_float = is_same_v<From, float> && is_same_v<To, double>;
#ifdef __AVX512F__
  if constexpr (widens_half && N == 16) return (vec<To, N>)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)from);
  if constexpr (narrows_word && N == 16)
    return (vec<To, N>)_mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)from);
  if constexpr (widens_float && N == 8) return (vec<To, N>)_mm512_maskz_cvtps_pd(0xff, from);
#endif
#ifdef __AVX2__
  if constexpr (widens_half && N == 8) return (vec<To, N>)_mm256_cvtepu16_epi32((__m128i)from);
  if constexpr (widens_float && N == 4) return (vec<To, N>)_mm256_cvtps_pd(from);
#endif
  return __builtin_convertvector(from, vec<To, N>);
}

/// The upper half of each word holds a bfloat16, rounded as bfloat16(float) rounds; the lower half is noise.
template <int N>
[[gnu::always_inline]] inline vec<std::uint32_t, N> round_to_upper_half(vec<float, N> value) {
  const auto bits = std::bit_cast<vec<std::uint32_t, N>>(value);
  const vec<std::uint32_t, N> rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return value == value ? rounded : bits | 0x400000U;
}

#ifdef __F16C__
/// N floats from binary16 and back by instruction: for N up to 4 in a register of 16 bytes, of which N count.
template <int N> [[gnu::always_inline]] inline vec<float, N> load_float16(const float16* from) {
  vec<float, N> result;
#ifdef __AVX512F__
  if constexpr (N == 16) return _mm512_maskz_cvtph_ps(0xffff, load_raw<__m256i>(from));
#endif
  if constexpr (N == 8) return _mm256_cvtph_ps(load_raw<__m128i>(from));
  __m128i halves{};
  std::memcpy(&halves, from, 2 * N);
  const __m128 floats = _mm_cvtph_ps(halves);
  std::memcpy(&result, &floats, sizeof(result));
  return result;
}

template <int N> [[gnu::always_inline]] inline void store_float16(float16* to, vec<float, N> value) {
#ifdef __AVX512F__
  if constexpr (N == 16)
    return store_raw(to, _mm512_maskz_cvtps_ph(0xffff, value, _MM_FROUND_TO_NEAREST_INT));
#endif
  if constexpr (N == 8) return store_raw(to, _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  __m128 floats{};
  std::memcpy(&floats, &value, sizeof(value));
  const __m128i halves = _mm_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT);
  std::memcpy(to, &halves, 2 * N);
}
#endif

/// Whether elements of T and C convert as registers. Not where those of T fill more than one register, nor
/// for halves that no instruction converts: there a plain loop, left to the compiler's vectoriser.
template <class C, class T>
inline constexpr bool converts_in_registers = std::is_arithmetic_v<T> && sizeof(T) <= sizeof(C);

/// N consecutive elements, converted to the compute type.
template <class C, int N, class T> [[gnu::always_inline]] inline vec<C, N> load(const T* from) {
  if constexpr (N == 1 && !std::is_same_v<T, float16>) {
    return vec<C, 1>{static_cast<C>(*from)};
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    const auto halves = load_raw<vec<std::uint16_t, N>>(from);
    const auto words = convert<std::uint32_t, std::uint16_t, N>(halves) << 16;
    return convert<C, float, N>(std::bit_cast<vec<float, N>>(words));
#ifdef __F16C__
  } else if constexpr (std::is_same_v<T, float16>) {
    return convert<C, float, N>(load_float16<N>(from));
#endif
  } else if constexpr (converts_in_registers<C, T>) {
    return convert<C, T, N>(load_raw<vec<T, N>>(from));
  } else {
    C converted[N];
    for (int i = 0; i < N; ++i) converted[i] = static_cast<C>(from[i]);
    return load_raw<vec<C, N>>(converted);
  }
}

/// Stores N consecutive elements, each rounded once.
template <class C, int N, class T> [[gnu::always_inline]] inline void store(T* to, vec<C, N> value) {
  constexpr bool from_float = std::is_same_v<C, float>;
  if constexpr (N == 1 && !std::is_same_v<T, float16>) {
    *to = static_cast<T>(value[0]);
  } else if constexpr (from_float && std::is_same_v<T, bfloat16>) {
    store_raw(to, convert<std::uint16_t, std::uint32_t, N>(round_to_upper_half<N>(value) >> 16));
#ifdef __F16C__
  } else if constexpr (from_float && std::is_same_v<T, float16>) {
    store_float16<N>(to, value);
#endif
  } else if constexpr (converts_in_registers<C, T>) {
    store_raw(to, convert<T, C, N>(value));
  } else {
    C values[N];
    store_raw(values, value);
    for (int i = 0; i < N; ++i) to[i] = static_cast<T>(values[i]);
  }
}

}  // namespace scandsl::detail
