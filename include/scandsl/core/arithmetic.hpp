#pragma once
#include "scandsl/core/config.hpp"
#include <cmath>

namespace scandsl {

/// The elementary functions of one value type. Primitives are written against this, so that one definition
/// serves scalars, SIMD packs (exec/cpu/simd.hpp) and device code.
template <class V> struct arithmetic;

template <class T> struct scalar_arithmetic {
  using truth = bool;
  SCANDSL_HD static T constant(double value) { return static_cast<T>(value); }
  SCANDSL_HD static T exp(T x) { return std::exp(x); }
  SCANDSL_HD static T log(T x) { return std::log(x); }
  SCANDSL_HD static T log1p(T x) { return std::log1p(x); }
  SCANDSL_HD static T expm1(T x) { return std::expm1(x); }
  SCANDSL_HD static T sin(T x) { return std::sin(x); }
  SCANDSL_HD static T cos(T x) { return std::cos(x); }
  SCANDSL_HD static T tanh(T x) { return std::tanh(x); }
  SCANDSL_HD static T sqrt(T x) { return std::sqrt(x); }
  SCANDSL_HD static T pow(T x, T y) { return std::pow(x, y); }
  SCANDSL_HD static T abs(T x) { return std::abs(x); }
  SCANDSL_HD static T fma(T x, T y, T z) { return std::fma(x, y, z); }
  SCANDSL_HD static T select(bool condition, T x, T y) { return condition ? x : y; }
};

template <> struct arithmetic<float> : scalar_arithmetic<float> {};
template <> struct arithmetic<double> : scalar_arithmetic<double> {};

}  // namespace scandsl
