#pragma once
#include "scandsl/expr/expression.hpp"

/// The spelling of the primitives: operators and named functions over operands (expressions, numbers, terms).
namespace scandsl {

template <class A, class B>
concept language_pair = operand<A> && operand<B> && (language<A> || language<B>);

template <class A, class B> constexpr bool are_integers() {
  if constexpr (symbolic<A> || symbolic<B>)
    return false;
  else
    return expression_of<A>::kind == value_kind::integer && expression_of<B>::kind == value_kind::integer;
}

template <language A> constexpr auto operator-(A x) { return apply<primitive::neg_op>(x); }
template <language A> constexpr auto operator+(A x) { return x; }
template <language A> constexpr auto operator!(A x) { return apply<primitive::not_op>(x); }

template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator+(A x, B y) {
  return apply<primitive::add_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator-(A x, B y) {
  return apply<primitive::subtract_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator*(A x, B y) {
  return apply<primitive::multiply_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator/(A x, B y) {
  if constexpr (are_integers<A, B>())
    return apply<primitive::floor_divide_op>(x, y);
  else
    return apply<primitive::divide_op>(x, y);
}
/// Of integers: x - y * (x / y), which has y's sign. (Quotients of integers are rounded down.)
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator%(A x, B y) {
  return apply<primitive::modulo_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator<(A x, B y) {
  return apply<primitive::less_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator>(A x, B y) {
  return apply<primitive::less_op>(y, x);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator<=(A x, B y) {
  return apply<primitive::less_equal_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator>=(A x, B y) {
  return apply<primitive::less_equal_op>(y, x);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator==(A x, B y) {
  return apply<primitive::equal_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator!=(A x, B y) {
  return !(x == y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator&&(A x, B y) {
  return apply<primitive::and_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto operator||(A x, B y) {
  return apply<primitive::or_op>(x, y);
}

template <language A> constexpr auto abs(A x) { return apply<primitive::abs_op>(x); }
template <language A> constexpr auto exp(A x) { return apply<primitive::exp_op>(x); }
template <language A> constexpr auto log(A x) { return apply<primitive::log_op>(x); }
template <language A> constexpr auto log1p(A x) { return apply<primitive::log1p_op>(x); }
template <language A> constexpr auto expm1(A x) { return apply<primitive::expm1_op>(x); }
template <language A> constexpr auto sin(A x) { return apply<primitive::sin_op>(x); }
template <language A> constexpr auto cos(A x) { return apply<primitive::cos_op>(x); }
template <language A> constexpr auto sqrt(A x) { return apply<primitive::sqrt_op>(x); }
template <language A> constexpr auto tanh(A x) { return apply<primitive::tanh_op>(x); }
template <language A> constexpr auto sigmoid(A x) { return apply<primitive::sigmoid_op>(x); }
template <language A> constexpr auto softplus(A x) { return apply<primitive::softplus_op>(x); }
template <language A> constexpr auto normal_cdf(A x) { return apply<primitive::normal_cdf_op>(x); }
template <language A> constexpr auto relu(A x) { return apply<primitive::relu_op>(x); }
template <language A> constexpr auto silu(A x) { return apply<primitive::silu_op>(x); }
template <language A> constexpr auto silu_derivative(A x) { return apply<primitive::silu_derivative_op>(x); }
template <language A> constexpr auto gelu(A x) { return apply<primitive::gelu_op>(x); }
template <language A> constexpr auto mish(A x) { return apply<primitive::mish_op>(x); }
template <language A> constexpr auto stop_gradient(A x) { return apply<primitive::stop_gradient_op>(x); }

template <class A, class B>
  requires language_pair<A, B>
constexpr auto pow(A x, B y) {
  return apply<primitive::pow_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto max(A x, B y) {
  return apply<primitive::max_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto min(A x, B y) {
  return apply<primitive::min_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto logaddexp(A x, B y) {
  return apply<primitive::logaddexp_op>(x, y);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto exp_difference(A x, B y) {
  return apply<primitive::exp_difference_op>(x, y);
}
/// The sine of the exact product position * theta; position is a whole number and has no derivative.
template <class A, class B>
  requires language_pair<A, B>
constexpr auto sin_of_product(A position, B theta) {
  return apply<primitive::sin_of_product_op>(position, theta);
}
template <class A, class B>
  requires language_pair<A, B>
constexpr auto cos_of_product(A position, B theta) {
  return apply<primitive::cos_of_product_op>(position, theta);
}
/// The exact product position * theta less whole turns: in [-pi, pi].
template <class A, class B>
  requires language_pair<A, B>
constexpr auto angle_of_product(A position, B theta) {
  return apply<primitive::angle_of_product_op>(position, theta);
}
/// condition ? x : y at every position.
template <language C, operand A, operand B> constexpr auto select(C condition, A x, B y) {
  return apply<primitive::select_op>(condition, x, y);
}

}  // namespace scandsl
