#pragma once
#include <cmath>
#include <limits>

#include <xsimd/xsimd.hpp>

#include "scandsl/core/arithmetic.hpp"

namespace scandsl {

/// SIMD packs by xsimd: the widest batch that the compiler flags allow. Measured against long double: log,
/// log1p and sqrt within 0.75 ulp; exp, tanh, sin and cos mostly within 1.5, at worst 2.4 (docs/numerics.md
/// has the table; pow is the coarse one). Infinities, NaN and zeros are right; exp flushes results below the
/// normal range to zero.
template <class T, class A> struct arithmetic<xsimd::batch<T, A>> {
  using pack = xsimd::batch<T, A>;
  using truth = xsimd::batch_bool<T, A>;
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
  static pack sqrt(pack x) { return xsimd::sqrt(x); }
  static pack pow(pack x, pack y) {
    // xsimd errs at zeros, infinities and some negative bases: pow(0, -1) = 0. Those lanes are left to the C
    // library.
    const truth usual = x > pack(T(0)) && x < pack(infinity) && xsimd::abs(y) < pack(infinity);
    pack result = xsimd::pow(x, y);
    if (xsimd::all(usual)) return result;
    T bases[pack::size], exponents[pack::size], powers[pack::size];
    x.store_unaligned(bases);
    y.store_unaligned(exponents);
    for (std::size_t i = 0; i < pack::size; ++i) powers[i] = std::pow(bases[i], exponents[i]);
    return xsimd::select(usual, result, pack::load_unaligned(powers));
  }
  static pack abs(pack x) { return xsimd::abs(x); }
  static pack fma(pack x, pack y, pack z) { return xsimd::fma(x, y, z); }
  static pack select(truth condition, pack x, pack y) { return xsimd::select(condition, x, y); }
};

}  // namespace scandsl
