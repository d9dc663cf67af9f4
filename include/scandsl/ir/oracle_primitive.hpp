#pragma once
#include <cmath>
#include <limits>

#include "scandsl/core/error.hpp"
#include "scandsl/expr/primitives.hpp"

/// The elementwise functions in float64, written apart from primitive::X::value: the oracle shares no formula
/// with the executors.
namespace scandsl::detail {

/// The value of primitive number `function`; a condition is 1 or 0.
inline double oracle_primitive(int function, double x, double y, double z) {
  using namespace primitive;
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
  case index<sqrt_op>: return std::sqrt(x);
  case index<tanh_op>: return std::tanh(x);
  case index<sigmoid_op>: return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
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
  case index<stop_gradient_op>: return x;
  case index<attach_derivative_op>: return x;
  default:
    throw error(message("oracle: primitive number ", function, " is not known; add it to oracle_primitive"));
  }
}

}  // namespace scandsl::detail
