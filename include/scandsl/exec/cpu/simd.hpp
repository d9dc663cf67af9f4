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
/// log1p and sqrt within 0.95 ulp; exp, tanh, sin and cos mostly within 1.5, at worst 2.4 (docs/numerics.md
/// has the table; pow is the coarse one). Infinities, NaN and zeros are right; exp may flush results below
/// the normal range to zero.
template <class T, class A>
  requires std::is_floating_point_v<T>
struct arithmetic<xsimd::batch<T, A>> {
  using pack = xsimd::batch<T, A>;
  using truth = xsimd::batch_bool<T, A>;
  using integer = xsimd::batch<typename arithmetic<T>::integer, A>;
  static constexpr T infinity = std::numeric_limits<T>::infinity();

  static pack constant(double value) { return pack(static_cast<T>(value)); }
  static pack exp(pack x) {
    if constexpr (sizeof(pack) == 64 && sizeof(T) == 4) {
      return short_exp(x);
    } else if constexpr (sizeof(T) == 4) {
      // xsimd overflows from 88.376 on, float from 88.723. x - 1 is exact there.
      const truth high = x > pack(88.0f);
      return xsimd::exp(xsimd::select(high, x - pack(1.0f), x)) *
             xsimd::select(high, pack(2.7182818f), pack(1.0f));
    } else {
      return xsimd::exp(x);
    }
  }
  static pack log(pack x) {
    if constexpr (sizeof(pack) == 64 && sizeof(T) == 4)
      return short_log(x);
    else
      return xsimd::log(x);
  }
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
  static pack maximum(pack x, pack y) { return xsimd::select((y > x) || !(y == y), y, x); }
  static pack minimum(pack x, pack y) { return xsimd::select((y < x) || !(y == y), y, x); }
  static pack select(truth condition, pack x, pack y) { return xsimd::select(condition, x, y); }
  static pack to_real(integer x) { return xsimd::to_float(x); }
  static truth truth_of(typename arithmetic<integer>::truth condition) {
    return std::bit_cast<truth>(condition);
  }

private:
  /// 512 bits have an instruction that multiplies by a power of two and knows where float ends: half as many
  /// as xsimd's exp. x = (n + f) log 2, |f| <= 1/2, and a minimax fit of e^r, off by 2^-28, for the rest.
  static pack short_exp(pack x) {
    const pack least(-104.0F), most(89.0F);                           // where it is 0, and infinite
    const pack inside(_mm512_min_ps(most, _mm512_max_ps(least, x)));  // a NaN stays one
    const pack n(_mm512_roundscale_ps(inside * pack(0x1.715476p+0F), 0));
    const pack r = fma(n, pack(0x1.05c610p-29F), fma(n, pack(-0x1.62e430p-1F), inside));
    const pack rest =
        polynomial(r, 0x1.fffffcp-2F, 0x1.555492p-3F, 0x1.5558f2p-5F, 0x1.123a2p-7F, 0x1.6a23cep-10F);
    return pack(_mm512_scalef_ps(fma(r * r, rest, r) + pack(1.0F), n));
  }
#ifdef __AVX512F__  // else nvcc does not know the names of its options
  /// They have others that split a number into 2^n and a factor, whatever it is. x = 2^n (1 + r), r in [-1/4,
  /// 1/2), and a minimax fit of (log(1 + r) - r) / r^2, off by 2^-27 of the logarithm; with what is rounded,
  /// 0.95 units in the last place. Of zero and infinity n is infinite.
  static pack short_log(pack x) {
    const pack factor(_mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_nan));
    const pack exponent(_mm512_getexp_ps(x));  // of a factor in [1, 2)
    const pack n = xsimd::select(factor < pack(1.0F), exponent + pack(1.0F), exponent),
               r = factor - pack(1.0F);
    const pack rest = polynomial(r, -0x1p-1F, 0x1.5555a6p-2F, -0x1.000024p-2F, 0x1.99685ap-3F, -0x1.54f24p-3F,
                                 0x1.2897b8p-3F, -0x1.0d8ffep-3F, 0x1.abf692p-4F, -0x1.6fe60ap-5F);
    return fma(n, pack(0x1.62e42ep-1F), r + fma(r * r, rest, n * pack(0x1.efa39ep-25F)));
  }
#endif
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
  /// By a division of real numbers, where these hold the integers and their halves exactly and divisors are
  /// positive: x + 1/2 is no nearer to a multiple of y than 1/2, so that its rounded quotient is on the right
  /// side of every whole number.
  static pack floor_divide(pack x, pack y) {
    using real = xsimd::batch<std::conditional_t<sizeof(T) == 4, float, double>, A>;
    using element = typename real::value_type;
    constexpr T far = static_cast<T>(far_position<element> / 4);
    // No bit beyond those of numbers in [0, 2 far) in any of the two sums.
    const pack beyond(static_cast<T>(~(2 * far - 1)));
    if (xsimd::all((((x + pack(far)) | (y - pack(T(1)))) & beyond) == pack(T(0))))
      return xsimd::to_int(xsimd::floor((xsimd::to_float(x) + real(element(0.5))) / xsimd::to_float(y)));
    alignas(pack) T numerators[pack::size], denominators[pack::size];
    x.store_aligned(numerators);
    y.store_aligned(denominators);
    for (std::size_t i = 0; i < pack::size; ++i)
      numerators[i] = arithmetic<T>::floor_divide(numerators[i], denominators[i]);
    return pack::load_aligned(numerators);
  }
  /// In unsigned numbers, as of one integer.
  static pack rest(pack x, pack y, pack quotient) {
    using wrapping = xsimd::batch<std::make_unsigned_t<T>, A>;
    const wrapping multiple = std::bit_cast<wrapping>(y) * std::bit_cast<wrapping>(quotient);
    return std::bit_cast<pack>(std::bit_cast<wrapping>(x) - multiple);
  }
  static pack modulo(pack x, pack y) { return rest(x, y, floor_divide(x, y)); }
  static pack maximum(pack x, pack y) { return xsimd::select(y > x, y, x); }
  static pack minimum(pack x, pack y) { return xsimd::select(y < x, y, x); }
  /// The condition may come from numbers of the same size.
  template <class U> static pack select(xsimd::batch_bool<U, A> condition, pack x, pack y) {
    return xsimd::select(std::bit_cast<truth>(condition), x, y);
  }
};

}  // namespace scandsl
