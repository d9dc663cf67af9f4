#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "scandsl/core/config.hpp"
#include "scandsl/core/half_turns.hpp"

namespace scandsl {

/// The elementary functions of one value type. Primitives are written against this, so that one definition
/// serves scalars, SIMD packs (exec/cpu/simd.hpp) and device code.
template <class V> struct arithmetic;

template <class T> struct scalar_arithmetic {
  using truth = bool;
  /// What positions along axes are computed in beside T: of T's size, so that memory for one holds the other.
  using integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  SCANDSL_HD static T to_real(integer x) { return static_cast<T>(x); }
  SCANDSL_HD static T constant(double value) { return static_cast<T>(value); }
  SCANDSL_HD static T exp(T x) { return std::exp(x); }
  SCANDSL_HD static T log(T x) { return std::log(x); }
  SCANDSL_HD static T log1p(T x) { return std::log1p(x); }
  SCANDSL_HD static T expm1(T x) { return std::expm1(x); }
  SCANDSL_HD static T sin(T x) { return std::sin(x); }
  SCANDSL_HD static T cos(T x) { return std::cos(x); }
  SCANDSL_HD static T tanh(T x) { return std::tanh(x); }
  SCANDSL_HD static T normal_cdf(T x) { return T(0.5) * std::erfc(x * T(-0.70710678118654752440)); }
  SCANDSL_HD static T sqrt(T x) { return std::sqrt(x); }
  SCANDSL_HD static T pow(T x, T y) { return std::pow(x, y); }
  SCANDSL_HD static T abs(T x) { return std::abs(x); }
  SCANDSL_HD static T fma(T x, T y, T z) { return std::fma(x, y, z); }
  /// NaN if either is one; in one instruction where there is one.
  SCANDSL_HD static T maximum(T x, T y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (sizeof(T) == 4) {
      T larger;
      asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(y));
      return larger;
    }
#endif
    return (y > x) || !(y == y) ? y : x;
  }
  SCANDSL_HD static T minimum(T x, T y) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (sizeof(T) == 4) {
      T smaller;
      asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(x), "f"(y));
      return smaller;
    }
#endif
    return (y < x) || !(y == y) ? y : x;
  }
  /// Of the exact product of a position, a T or an integer, and theta; an even number of half turns is left
  /// out (half_turns.hpp).
  template <class P> SCANDSL_HD static T half_turns_of_product(P position, T theta) {
    return scandsl::half_turns_of_product(position, theta);
  }
  /// Of |x| < 5/2 half turns.
  SCANDSL_HD static T sinpi(T x) { return sine_of_half_turns<T>(x); }
  SCANDSL_HD static T cospi(T x) { return cosine_of_half_turns<T>(x); }
  SCANDSL_HD static T angle(T x) { return angle_of_half_turns<T>(x); }
  SCANDSL_HD static T select(bool condition, T x, T y) { return condition ? x : y; }
};

template <> struct arithmetic<float> : scalar_arithmetic<float> {};
template <> struct arithmetic<double> : scalar_arithmetic<double> {};

/// The functions of integers.
template <class I> struct integer_arithmetic {
  using truth = bool;
  using integer = I;
  SCANDSL_HD static I constant(double value) { return static_cast<I>(value); }
  /// Rounded down; 0 where y is 0.
  SCANDSL_HD static constexpr I floor_divide(I x, I y) {
    if (y == 0) return 0;
    if (y == -1) return static_cast<I>(0 - static_cast<std::make_unsigned_t<I>>(x));  // the least I has no -x
    const I quotient = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
  }
  /// x - y * quotient, in unsigned numbers: it is an I where the multiple of y is none.
  SCANDSL_HD static constexpr I rest(I x, I y, I quotient) {
    using wrapping = std::make_unsigned_t<I>;
    const auto multiple = static_cast<wrapping>(y) * static_cast<wrapping>(quotient);
    return static_cast<I>(static_cast<wrapping>(x) - multiple);
  }
  SCANDSL_HD static constexpr I modulo(I x, I y) { return rest(x, y, floor_divide(x, y)); }
  SCANDSL_HD static I maximum(I x, I y) { return y > x ? y : x; }
  SCANDSL_HD static I minimum(I x, I y) { return y < x ? y : x; }
  SCANDSL_HD static I select(bool condition, I x, I y) { return condition ? x : y; }
};

template <> struct arithmetic<std::int32_t> : integer_arithmetic<std::int32_t> {};
template <> struct arithmetic<std::int64_t> : integer_arithmetic<std::int64_t> {};

}  // namespace scandsl
