#pragma once
#include <xsimd/xsimd.hpp>

#include "scandsl/core/arithmetic.hpp"

namespace scandsl {

/// SIMD packs by xsimd: the widest batch that the compiler flags allow. Its functions are within 1.5 ulp,
/// with the ends (infinities, NaN, zeros) right; results below the normal range flush to zero.
template <class T, class A> struct arithmetic<xsimd::batch<T, A>> {
  using pack = xsimd::batch<T, A>;
  using truth = xsimd::batch_bool<T, A>;

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
  static pack expm1(pack x) { return xsimd::expm1(x); }
  static pack sin(pack x) { return xsimd::sin(x); }
  static pack cos(pack x) { return xsimd::cos(x); }
  static pack tanh(pack x) { return xsimd::tanh(x); }
  static pack sqrt(pack x) { return xsimd::sqrt(x); }
  static pack pow(pack x, pack y) { return xsimd::pow(x, y); }
  static pack abs(pack x) { return xsimd::abs(x); }
  static pack fma(pack x, pack y, pack z) { return xsimd::fma(x, y, z); }
  static pack select(truth condition, pack x, pack y) { return xsimd::select(condition, x, y); }
};

}  // namespace scandsl
