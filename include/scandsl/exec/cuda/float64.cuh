#pragma once
#include "scandsl/core/arithmetic.hpp"

/// Functions of float64 are hundreds of instructions each, and a tile has them for every element. Device code
/// calls them: a fifth less code in the kernels of a log-sum's gradient.
namespace scandsl {

template <> __host__ __device__ __noinline__ inline double scalar_arithmetic<double>::exp(double x) {
  return std::exp(x);
}
template <> __host__ __device__ __noinline__ inline double scalar_arithmetic<double>::log(double x) {
  return std::log(x);
}
template <> __host__ __device__ __noinline__ inline double scalar_arithmetic<double>::log1p(double x) {
  return std::log1p(x);
}
template <> __host__ __device__ __noinline__ inline double scalar_arithmetic<double>::expm1(double x) {
  return std::expm1(x);
}
template <> __host__ __device__ __noinline__ inline double scalar_arithmetic<double>::sin(double x) {
  return std::sin(x);
}
template <> __host__ __device__ __noinline__ inline double scalar_arithmetic<double>::cos(double x) {
  return std::cos(x);
}
template <> __host__ __device__ __noinline__ inline double scalar_arithmetic<double>::tanh(double x) {
  return std::tanh(x);
}
template <> __host__ __device__ __noinline__ inline double scalar_arithmetic<double>::normal_cdf(double x) {
  return 0.5 * std::erfc(x * -0.70710678118654752440);
}
template <>
__host__ __device__ __noinline__ inline double scalar_arithmetic<double>::pow(double x, double y) {
  return std::pow(x, y);
}

}  // namespace scandsl
