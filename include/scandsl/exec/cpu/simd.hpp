#pragma once
#include <bit>
#include <cmath>
#include <limits>

#include <xsimd/xsimd.hpp>

#include "scandsl/core/arithmetic.hpp"

namespace scandsl {

/// Whether packs of T have a fused multiply-add; without the instruction xsimd rounds the product.
#ifdef FP_FAST_FMA
template <class T> inline constexpr bool fuses = true;
#else
template <class T> inline constexpr bool fuses = false;
#endif

/// SIMD packs by xsimd: the widest batch that the compiler flags allow. Measured against long double: log,
/// log1p and sqrt within 0.75 ulp; exp, tanh, sin and cos mostly within 1.5, at worst 2.4 (docs/numerics.md
/// has the table; pow is the coarse one). Infinities, NaN and zeros are right; exp flushes results below the
/// normal range to zero.
template <class T, class A>
  requires std::is_floating_point_v<T>
struct arithmetic<xsimd::batch<T, A>> {
  using pack = xsimd::batch<T, A>;
  using truth = xsimd::batch_bool<T, A>;
  using integer = xsimd::batch<typename arithmetic<T>::integer, A>;
  static constexpr T infinity = std::numeric_limits<T>::infinity();

  static pack constant(double value) { return pack(static_cast<T>(value)); }
  static pack exp(pack x) {
    if constexpr (sizeof(T) == 4) {
      // xsimd overflows from 88.376 on, float from 88.723. x - 1 is exact there.
      const truth high = x > pack(88.0f);
      return xsimd::exp(xsimd::select(high, x - pack(1.0f), x)) *
             xsimd::select(high, pack(2.7182818f), pack(1.0f));
    } else {
      return xsimd::exp(x);
    }
  }
  static pack log(pack x) { return xsimd::log(x); }
  static pack log1p(pack x) { return xsimd::log1p(x); }
  static pack expm1(pack x) {
    if constexpr (sizeof(T) == 4)  // as exp overflows too early; there, 1 is far below the last place
      return xsimd::select(x > pack(88.0f), exp(x), xsimd::expm1(x));
    else
      return xsimd::expm1(x);
  }
  static pack sin(pack x) { return xsimd::sin(x); }
  static pack cos(pack x) { return xsimd::cos(x); }
  static pack tanh(pack x) { return xsimd::tanh(x); }
  static pack normal_cdf(pack x) {
    if constexpr (sizeof(T) == 4)
      return pack(0.5f) * xsimd::erfc(x * pack(-0.70710678f));
    else  // xsimd's has an error of 1e-14
      return lane_by_lane(x, x, [](T each, T) { return arithmetic<T>::normal_cdf(each); });
  }
  static pack sqrt(pack x) { return xsimd::sqrt(x); }
  static pack pow(pack x, pack y) {
    // xsimd errs at zeros, infinities and some negative bases: pow(0, -1) = 0. Those lanes are left to the C
    // library.
    const truth usual = x > pack(T(0)) && x < pack(infinity) && xsimd::abs(y) < pack(infinity);
    pack result = xsimd::pow(x, y);
    if (xsimd::all(usual)) return result;
    return xsimd::select(usual, result, lane_by_lane(x, y, [](T a, T b) { return std::pow(a, b); }));
  }
  static pack half_turns_of_product(pack position, pack theta) {
    if constexpr (fuses<T>) {
      const reduced_product<pack> reduced = reduce_product<T>(position, theta);
      if (xsimd::all(reduced.fits)) return reduced.half_turns;
    }
    return lane_by_lane(position, theta, [](T p, T t) { return scandsl::half_turns_of_product(p, t); });
  }
  static pack half_turns_of_product(integer position, pack theta) {
    constexpr auto far = static_cast<typename integer::value_type>(far_position<T>);
    if (xsimd::all(position <= integer(far) && position >= integer(-far)))
      return half_turns_of_product(to_real(position), theta);
    return lane_by_lane(position, theta, [](auto p, T t) { return scandsl::half_turns_of_product(p, t); });
  }
  static pack sinpi(pack x) { return sine_of_half_turns<T>(x); }
  static pack cospi(pack x) { return cosine_of_half_turns<T>(x); }
  static pack angle(pack x) { return angle_of_half_turns<T>(x); }
  static pack abs(pack x) { return xsimd::abs(x); }
  static pack fma(pack x, pack y, pack z) {
    // xsimd 8 has none for 512 bits and rounds the product.
    if constexpr (sizeof(pack) == 64 && sizeof(T) == 4)
      return pack(_mm512_fmadd_ps(x, y, z));
    else if constexpr (sizeof(pack) == 64)
      return pack(_mm512_fmadd_pd(x, y, z));
    else
      return xsimd::fma(x, y, z);
  }
  static pack select(truth condition, pack x, pack y) { return xsimd::select(condition, x, y); }
  static pack to_real(integer x) { return xsimd::to_float(x); }
  static truth truth_of(typename arithmetic<integer>::truth condition) {
    return std::bit_cast<truth>(condition);
  }

private:
  template <class X, class F> static pack lane_by_lane(X x, pack y, F f) {
    typename X::value_type left[pack::size];
    T right[pack::size], results[pack::size];
    x.store_unaligned(left);
    y.store_unaligned(right);
    for (std::size_t i = 0; i < pack::size; ++i) results[i] = f(left[i], right[i]);
    return pack::load_unaligned(results);
  }
};

/// Packs of integers.
template <class T, class A>
  requires std::is_integral_v<T>
struct arithmetic<xsimd::batch<T, A>> {
  using pack = xsimd::batch<T, A>;
  using truth = xsimd::batch_bool<T, A>;
  using integer = pack;

  static pack constant(double value) { return pack(static_cast<T>(value)); }
  static pack floor_divide(pack x, pack y) {
    alignas(pack) T numerators[pack::size], denominators[pack::size];
    x.store_aligned(numerators);
    y.store_aligned(denominators);
    for (std::size_t i = 0; i < pack::size; ++i)
      numerators[i] = arithmetic<T>::floor_divide(numerators[i], denominators[i]);
    return pack::load_aligned(numerators);
  }
  /// The condition may come from numbers of the same size.
  template <class U> static pack select(xsimd::batch_bool<U, A> condition, pack x, pack y) {
    return xsimd::select(std::bit_cast<truth>(condition), x, y);
  }
};

}  // namespace scandsl
