#pragma once
#include <cmath>
#include <limits>

#include "scandsl/core/error.hpp"
#include "scandsl/expr/primitives.hpp"

/// The elementwise functions in float64, written apart from primitive::X::value: the oracle shares no formula
/// with the executors.
namespace scandsl::detail {

/// Sine and cosine of x * y, whose rounding error fma gives, by the addition theorems.
struct direction {
  double sine, cosine;
};
inline direction direction_of_product(double x, double y) {
  const double product = x * y, rest = std::fma(x, y, -product);
  return {std::sin(product) * std::cos(rest) + std::cos(product) * std::sin(rest),
          std::cos(product) * std::cos(rest) - std::sin(product) * std::sin(rest)};
}

/// The value of primitive number `function`; a condition is 1 or 0.
inline double oracle_primitive(int function, double x, double y, double z) {
  using namespace primitive;
  using primitive::index;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const bool unordered = std::isnan(x) || std::isnan(y);
  switch (function) {
  case index<neg_op>: return -x;
  case index<abs_op>: return std::fabs(x);
  case index<exp_op>: return std::exp(x);
  case index<log_op>: return std::log(x);
  case index<log1p_op>: return std::log1p(x);
  case index<expm1_op>: return std::expm1(x);
  case index<sin_op>: return std::sin(x);
  case index<cos_op>: return std::cos(x);
  case index<sin_of_product_op>: return direction_of_product(x, y).sine;
  case index<cos_of_product_op>: return direction_of_product(x, y).cosine;
  case index<angle_of_product_op>: {
    const direction reached = direction_of_product(x, y);
    return std::atan2(reached.sine, reached.cosine);
  }
  case index<sqrt_op>: return std::sqrt(x);
  case index<tanh_op>: return std::tanh(x);
  case index<sigmoid_op>: return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
  case index<normal_cdf_op>: return std::erfc(-x / std::sqrt(2.0)) / 2;
  case index<relu_op>: return std::isnan(x) ? nan : std::fmax(x, 0);
  case index<silu_op>: return std::isinf(x) ? std::fmax(x, 0) : x / (1 + std::exp(-x));
  case index<silu_derivative_op>:
    if (std::isinf(x)) return x > 0 ? 1 : 0;
    return x < 0 ? std::exp(x) * (1 + x + std::exp(x)) / std::pow(1 + std::exp(x), 2)
                 : (1 + std::exp(-x) + x * std::exp(-x)) / std::pow(1 + std::exp(-x), 2);
  case index<gelu_op>: return std::isinf(x) ? std::fmax(x, 0) : x * (std::erfc(-x / std::sqrt(2.0)) / 2);
  case index<mish_op>: return std::isinf(x) ? std::fmax(x, 0) : x * std::tanh(std::log1p(std::exp(x)));
  case index<softplus_op>: return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  case index<add_op>: return x + y;
  case index<subtract_op>: return x - y;
  case index<multiply_op>: return x * y;
  case index<divide_op>: return x / y;
  case index<pow_op>: return std::pow(x, y);
  case index<max_op>: return unordered ? nan : y > x ? y : x;
  case index<min_op>: return unordered ? nan : y < x ? y : x;
  case index<exp_difference_op>: return x == y ? 1 : std::exp(x - y);
  case index<logaddexp_op>:
    if (unordered) return nan;
    if (std::isinf(std::fmax(x, y))) return std::fmax(x, y);
    return std::fmax(x, y) + std::log1p(std::exp(std::fmin(x, y) - std::fmax(x, y)));
  case index<less_op>: return x < y;
  case index<less_equal_op>: return x <= y;
  case index<equal_op>: return x == y;
  case index<and_op>: return x != 0 && y != 0;
  case index<or_op>: return x != 0 || y != 0;
  case index<not_op>: return x == 0;
  case index<select_op>: return x != 0 ? y : z;
  case index<floor_divide_op>: return y == 0 ? 0 : std::floor(x / y);
  case index<modulo_op>: return y == 0 ? x : x - y * std::floor(x / y);
  case index<to_real_op>: return x;
  case index<stop_gradient_op>: return x;
  case index<attach_derivative_op>: return x;
  default:
    throw error(message("oracle: primitive number ", function, " is not known; add it to oracle_primitive"));
  }
}

}  // namespace scandsl::detail
