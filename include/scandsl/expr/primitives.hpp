#pragma once
#include "scandsl/core/arithmetic.hpp"
#include <array>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

/// Elementwise functions: one struct each, with its name, its value, its derivative and its notation.
///
/// `value` is written against arithmetic<V> and serves scalars, SIMD packs and device code. `pullback(g,
/// x..., y)` gives, for the cotangent g of the result y, the cotangent of every argument; it is linear in g,
/// so that forward mode uses it too. It is generic over any type with the language's operators. To add a
/// function: write its struct here, name it in `primitive_list`, and give it a spelling in functions.hpp.
///
/// Integers (positions along axes) have the ordinary functions where `on_integers` says so, and two of their
/// own. They pass no gradient.
///
/// Conventions at ties: max and min take, and pass the gradient to, their first argument; abs has derivative
/// 0 at 0.
namespace scandsl::primitive {

enum class value_kind : unsigned char { real, integer, truth };
enum class notation : unsigned char { call, prefix, infix, call_of_product };

/// What most functions share: real arguments, a real result, printed as name(arguments).
template <int Arity> struct function {
  static constexpr int arity = Arity;
  static constexpr value_kind result = value_kind::real;
  static constexpr bool on_integers = false;  ///< integers in all its values' places give an integer
  static constexpr bool of_position = false;  ///< an integer as the first operand stays one
  static constexpr notation style = notation::call;
};
struct infix_operator : function<2> {
  static constexpr notation style = notation::infix;
};
/// A function of the exact product of its operands, of which the first is a whole number.
struct product_function : function<2> {
  static constexpr bool of_position = true;
  static constexpr notation style = notation::call_of_product;
};
struct comparison : infix_operator {
  static constexpr value_kind result = value_kind::truth;
  static constexpr bool on_integers = true;
};

template <class T> using one = std::array<T, 1>;
template <class T> using two = std::array<T, 2>;
template <class T> using three = std::array<T, 3>;

struct neg_op : function<1> {
  static constexpr std::string_view name = "neg", symbol = "-", latex = "-";
  static constexpr bool on_integers = true;
  static constexpr notation style = notation::prefix;
  template <class V> SCANDSL_HD static V value(V x) { return -x; }
  template <class T> static constexpr one<T> pullback(T g, T, T) { return {-g}; }
};
struct abs_op : function<1> {
  static constexpr std::string_view name = "abs", symbol = "abs", latex = "\\operatorname{abs}";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::abs(x); }
  template <class T> static constexpr one<T> pullback(T g, T x, T) {
    return {select(x > T(0.0), g, select(x < T(0.0), -g, T(0.0)))};
  }
};
struct exp_op : function<1> {
  static constexpr std::string_view name = "exp", symbol = "exp", latex = "\\exp";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::exp(x); }
  template <class T> static constexpr one<T> pullback(T g, T, T y) { return {g * y}; }
};
struct log_op : function<1> {
  static constexpr std::string_view name = "log", symbol = "log", latex = "\\log";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::log(x); }
  template <class T> static constexpr one<T> pullback(T g, T x, T) { return {g / x}; }
};
struct log1p_op : function<1> {
  static constexpr std::string_view name = "log1p", symbol = "log1p", latex = "\\operatorname{log1p}";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::log1p(x); }
  template <class T> static constexpr one<T> pullback(T g, T x, T) { return {g / (T(1.0) + x)}; }
};
struct expm1_op : function<1> {
  static constexpr std::string_view name = "expm1", symbol = "expm1", latex = "\\operatorname{expm1}";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::expm1(x); }
  // exp(x), not y + 1: y + 1 loses the small values of a negative x.
  template <class T> static constexpr one<T> pullback(T g, T x, T) { return {g * exp(x)}; }
};
struct sin_op : function<1> {
  static constexpr std::string_view name = "sin", symbol = "sin", latex = "\\sin";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::sin(x); }
  template <class T> static constexpr one<T> pullback(T g, T x, T) { return {g * cos(x)}; }
};
struct cos_op : function<1> {
  static constexpr std::string_view name = "cos", symbol = "cos", latex = "\\cos";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::cos(x); }
  template <class T> static constexpr one<T> pullback(T g, T x, T) { return {-(g * sin(x))}; }
};
/// The sine and the cosine of the exact product of a position, a whole number, and theta: a rounded product
/// would be off by whole turns. Within 1e-6 in float and 1e-14 in double for every position that its type
/// holds, as long as the product is below 10^16; within 2e-6 in float where executors have them follow from
/// those of the position before (docs/positional.md). The derivative by the position, which does not vary
/// smoothly, is 0.
struct sin_of_product_op : product_function {
  static constexpr std::string_view name = "sin_of_product", symbol = "sin", latex = "\\sin";
  template <class P, class V> SCANDSL_HD static V value(P position, V theta) {
    using m = arithmetic<V>;
    return m::sinpi(m::half_turns_of_product(position, theta));
  }
  template <class T> static constexpr two<T> pullback(T g, T position, T theta, T) {
    return {T(0.0), g * (position * cos_of_product(position, theta))};
  }
};
struct cos_of_product_op : product_function {
  static constexpr std::string_view name = "cos_of_product", symbol = "cos", latex = "\\cos";
  template <class P, class V> SCANDSL_HD static V value(P position, V theta) {
    using m = arithmetic<V>;
    return m::cospi(m::half_turns_of_product(position, theta));
  }
  template <class T> static constexpr two<T> pullback(T g, T position, T theta, T) {
    return {T(0.0), -(g * (position * sin_of_product(position, theta)))};
  }
};
/// The same product as an angle in [-pi, pi].
struct angle_of_product_op : product_function {
  static constexpr std::string_view name = "angle_of_product", symbol = "angle",
                                    latex = "\\operatorname{angle}";
  template <class P, class V> SCANDSL_HD static V value(P position, V theta) {
    using m = arithmetic<V>;
    return m::angle(m::half_turns_of_product(position, theta));
  }
  template <class T> static constexpr two<T> pullback(T g, T position, T, T) {
    return {T(0.0), g * position};
  }
};
struct sqrt_op : function<1> {
  static constexpr std::string_view name = "sqrt", symbol = "sqrt", latex = "\\operatorname{sqrt}";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::sqrt(x); }
  template <class T> static constexpr one<T> pullback(T g, T, T y) { return {g * T(0.5) / y}; }
};
struct tanh_op : function<1> {
  static constexpr std::string_view name = "tanh", symbol = "tanh", latex = "\\tanh";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::tanh(x); }
  // 4 sigma(2x) sigma(-2x), not 1 - y^2: that cancels where tanh saturates.
  template <class T> static constexpr one<T> pullback(T g, T x, T) {
    const T twice = x + x;
    return {g * (T(4.0) * sigmoid(twice) * sigmoid(-twice))};
  }
};
template <class V> struct sigmoids {
  V of_x, of_minus_x;
};
/// Of x and of -x, by one exponential, without overflow on either side.
template <class V> SCANDSL_HD sigmoids<V> both_sigmoids(V x) {
  using m = arithmetic<V>;
  const V small = m::exp(-m::abs(x)), larger_half = V(1) / (V(1) + small), smaller_half = small * larger_half;
  const auto positive = x >= V(0);
  return {m::select(positive, larger_half, smaller_half), m::select(positive, smaller_half, larger_half)};
}
/// 1 / (1 + exp(-x)).
struct sigmoid_op : function<1> {
  static constexpr std::string_view name = "sigmoid", symbol = "sigmoid", latex = "\\sigma";
  template <class V> SCANDSL_HD static V value(V x) { return both_sigmoids(x).of_x; }
  template <class T> static constexpr one<T> pullback(T g, T x, T y) { return {g * (y * sigmoid(-x))}; }
};
/// log(1 + exp(x)) without overflow.
struct softplus_op : function<1> {
  static constexpr std::string_view name = "softplus", symbol = "softplus",
                                    latex = "\\operatorname{softplus}";
  template <class V> SCANDSL_HD static V value(V x) {
    using m = arithmetic<V>;
    // x < 0 ? 0 : x keeps a NaN, which max(x, 0) of some instruction sets drops.
    return m::select(x < V(0), V(0), x) + m::log1p(m::exp(-m::abs(x)));
  }
  template <class T> static constexpr one<T> pullback(T g, T x, T) { return {g * sigmoid(x)}; }
};
/// The share of the standard normal distribution below x.
struct normal_cdf_op : function<1> {
  static constexpr std::string_view name = "normal_cdf", symbol = "normal_cdf", latex = "\\Phi";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::normal_cdf(x); }
  template <class T> static constexpr one<T> pullback(T g, T x, T) {
    return {g * (T(inverse_root_of_two_pi) * exp(T(-0.5) * (x * x)))};
  }
  static constexpr double inverse_root_of_two_pi = 0.39894228040143267794;
};

/// Activations that are x times a factor between 0 and 1. Beyond this size x is no longer what it is: the
/// factor, and what the derivative multiplies by x, has become exactly 0 or 1, in float64 too, and 0 * inf is
/// avoided.
inline constexpr double saturated = 1e4;
template <class V> SCANDSL_HD V not_below_saturation(V x) {
  const V least = arithmetic<V>::constant(-saturated);
  return arithmetic<V>::select(x < least, least, x);
}
template <class T> constexpr T within_saturation(T x) { return min(max(x, T(-saturated)), T(saturated)); }

/// x where it is positive. The derivative at 0 is 0.
struct relu_op : function<1> {
  static constexpr std::string_view name = "relu", symbol = "relu", latex = "\\operatorname{relu}";
  template <class V> SCANDSL_HD static V value(V x) { return arithmetic<V>::select(x < V(0), V(0), x); }
  template <class T> static constexpr one<T> pullback(T g, T x, T) {
    return {select(x <= T(0.0), T(0.0), g)};
  }
};
/// x sigmoid(x).
struct silu_op : function<1> {
  static constexpr std::string_view name = "silu", symbol = "silu", latex = "\\operatorname{silu}";
  template <class V> SCANDSL_HD static V value(V x) { return not_below_saturation(x) * sigmoid_op::value(x); }
  template <class T> static constexpr one<T> pullback(T g, T x, T) { return {g * silu_derivative(x)}; }
};
/// The derivative of silu, sigmoid(x) (1 + x sigmoid(-x)): both sigmoids are of one exponential.
struct silu_derivative_op : function<1> {
  static constexpr std::string_view name = "silu_derivative", symbol = "silu'",
                                    latex = "\\operatorname{silu}'";
  template <class V> SCANDSL_HD static V value(V x) {
    using m = arithmetic<V>;
    const sigmoids<V> both = both_sigmoids(x);
    const V bounded = m::minimum(m::maximum(x, m::constant(-saturated)), m::constant(saturated));
    return both.of_x * (bounded * both.of_minus_x + V(1));
  }
  template <class T> static constexpr one<T> pullback(T g, T x, T) {
    const T of_x = sigmoid(x), of_minus_x = sigmoid(-x);
    return {g * (of_x * of_minus_x * (T(2.0) + within_saturation(x) * (of_minus_x - of_x)))};
  }
};
/// x normal_cdf(x).
struct gelu_op : function<1> {
  static constexpr std::string_view name = "gelu", symbol = "gelu", latex = "\\operatorname{gelu}";
  template <class V> SCANDSL_HD static V value(V x) {
    return not_below_saturation(x) * normal_cdf_op::value(x);
  }
  template <class T> static constexpr one<T> pullback(T g, T x, T) {
    const T density = normal_cdf_op::pullback(T(1.0), x, T(0.0))[0];
    return {g * (normal_cdf(x) + within_saturation(x) * density)};
  }
};
/// x tanh(softplus(x)). With q = exp(-|x|) the factor is a / (a + b), where a = 1 + 2 q and b = 2 q^2 for
/// x >= 0, a = q (q + 2) and b = 2 for x < 0: one exponential, and nothing cancels.
struct mish_op : function<1> {
  static constexpr std::string_view name = "mish", symbol = "mish", latex = "\\operatorname{mish}";
  template <class V> SCANDSL_HD static V value(V x) {
    using m = arithmetic<V>;
    const V q = m::exp(-m::abs(x));
    const V a = m::select(x < V(0), q * (q + V(2)), V(1) + (q + q));
    const V b = m::select(x < V(0), V(2), (q + q) * q);
    return not_below_saturation(x) * (a / (a + b));
  }
  // The factor's derivative is 4 (1 + q) w / (a + b)^2, w = q^2 for x >= 0 and q for x < 0.
  template <class T> static constexpr one<T> pullback(T g, T x, T) {
    const T q = exp(-abs(x)), square = q * q;
    const T a = select(x < T(0.0), q * (q + T(2.0)), T(1.0) + T(2.0) * q);
    const T total = a + select(x < T(0.0), T(2.0), T(2.0) * square);
    const T slope = T(4.0) * (T(1.0) + q) * select(x < T(0.0), q, square) / (total * total);
    return {g * (a / total + within_saturation(x) * slope)};
  }
};

struct add_op : infix_operator {
  static constexpr std::string_view name = "add", symbol = "+", latex = "+";
  static constexpr bool on_integers = true;
  template <class V> SCANDSL_HD static V value(V x, V y) { return x + y; }
  template <class T> static constexpr two<T> pullback(T g, T, T, T) { return {g, g}; }
};
struct subtract_op : infix_operator {
  static constexpr std::string_view name = "subtract", symbol = "-", latex = "-";
  static constexpr bool on_integers = true;
  template <class V> SCANDSL_HD static V value(V x, V y) { return x - y; }
  template <class T> static constexpr two<T> pullback(T g, T, T, T) { return {g, -g}; }
};
struct multiply_op : infix_operator {
  static constexpr std::string_view name = "multiply", symbol = "*", latex = "\\,";
  static constexpr bool on_integers = true;
  template <class V> SCANDSL_HD static V value(V x, V y) { return x * y; }
  template <class T> static constexpr two<T> pullback(T g, T x, T y, T) { return {g * y, g * x}; }
};
struct divide_op : infix_operator {
  static constexpr std::string_view name = "divide", symbol = "/", latex = "\\frac";
  template <class V> SCANDSL_HD static V value(V x, V y) { return x / y; }
  template <class T> static constexpr two<T> pullback(T g, T, T y, T quotient) {
    const T gx = g / y;
    return {gx, -(gx * quotient)};
  }
};
struct pow_op : function<2> {
  static constexpr std::string_view name = "pow", symbol = "pow", latex = "\\operatorname{pow}";
  template <class V> SCANDSL_HD static V value(V x, V y) { return arithmetic<V>::pow(x, y); }
  template <class T> static constexpr two<T> pullback(T g, T x, T y, T power) {
    return {g * (y * pow(x, y - T(1.0))), select(x == T(0.0), T(0.0), g * (power * log(x)))};
  }
};
struct max_op : function<2> {
  static constexpr std::string_view name = "max", symbol = "max", latex = "\\max";
  static constexpr bool on_integers = true;
  /// NaN wins from either side.
  template <class V> SCANDSL_HD static V value(V x, V y) { return arithmetic<V>::maximum(x, y); }
  template <class T> static constexpr two<T> pullback(T g, T x, T y, T) {
    return {select(y > x, T(0.0), g), select(y > x, g, T(0.0))};
  }
};
struct min_op : function<2> {
  static constexpr std::string_view name = "min", symbol = "min", latex = "\\min";
  static constexpr bool on_integers = true;
  template <class V> SCANDSL_HD static V value(V x, V y) { return arithmetic<V>::minimum(x, y); }
  template <class T> static constexpr two<T> pullback(T g, T x, T y, T) {
    return {select(y < x, T(0.0), g), select(y < x, g, T(0.0))};
  }
};
/// exp(x - y), and 1 where x and y are equal, infinities included: plain exp(x - y) is NaN at (-inf, -inf),
/// which would break the identity law of a running maximum.
struct exp_difference_op : function<2> {
  static constexpr std::string_view name = "exp_difference", symbol = "exp_difference",
                                    latex = "\\operatorname{expdiff}";
  template <class V> SCANDSL_HD static V value(V x, V y) {
    return arithmetic<V>::select(x == y, V(1), arithmetic<V>::exp(x - y));
  }
  template <class T> static constexpr two<T> pullback(T g, T, T, T value) {
    const T scaled = g * value;
    return {scaled, -scaled};
  }
};
/// log(exp(x) + exp(y)) over the whole range: both infinities, and (-inf, -inf) gives -inf.
struct logaddexp_op : function<2> {
  static constexpr std::string_view name = "logaddexp", symbol = "logaddexp",
                                    latex = "\\operatorname{logaddexp}";
  template <class V> SCANDSL_HD static V value(V x, V y) {
    using m = arithmetic<V>;
    const V gap = m::select(x == y, V(0), m::abs(x - y));  // inf - inf would be NaN
    return max_op::value(x, y) + m::log1p(m::exp(-gap));
  }
  // Both factors lie in [0, 1]; an argument of -inf has no share, also where the result is -inf.
  template <class T> static constexpr two<T> pullback(T g, T x, T y, T sum) {
    const T none = T(-__builtin_huge_val());
    return {select(x == none, T(0.0), g * exp(x - sum)), select(y == none, T(0.0), g * exp(y - sum))};
  }
};

struct less_op : comparison {
  static constexpr std::string_view name = "less", symbol = "<", latex = "<";
  template <class V> SCANDSL_HD static auto value(V x, V y) { return x < y; }
};
struct less_equal_op : comparison {
  static constexpr std::string_view name = "less_equal", symbol = "<=", latex = "\\le";
  template <class V> SCANDSL_HD static auto value(V x, V y) { return x <= y; }
};
struct equal_op : comparison {
  static constexpr std::string_view name = "equal", symbol = "==", latex = "=";
  template <class V> SCANDSL_HD static auto value(V x, V y) { return x == y; }
};
struct and_op : comparison {
  static constexpr std::string_view name = "and", symbol = "&&", latex = "\\wedge";
  template <class M> SCANDSL_HD static M value(M x, M y) { return x && y; }
};
struct or_op : comparison {
  static constexpr std::string_view name = "or", symbol = "||", latex = "\\vee";
  template <class M> SCANDSL_HD static M value(M x, M y) { return x || y; }
};
struct not_op : function<1> {
  static constexpr std::string_view name = "not", symbol = "!", latex = "\\neg";
  static constexpr value_kind result = value_kind::truth;
  static constexpr notation style = notation::prefix;
  template <class M> SCANDSL_HD static M value(M x) { return !x; }
};
/// condition ? x : y, elementwise. The condition passes no gradient.
struct select_op : function<3> {
  static constexpr std::string_view name = "select", symbol = "select", latex = "\\operatorname{select}";
  static constexpr bool on_integers = true;
  template <class M, class V> SCANDSL_HD static V value(M condition, V x, V y) {
    return arithmetic<V>::select(condition, x, y);
  }
  template <class C, class T> static constexpr three<T> pullback(T g, C condition, T, T, T) {
    return {T(0.0), select(condition, g, T(0.0)), select(condition, T(0.0), g)};
  }
};

/// The value of x, with derivative zero.
struct stop_gradient_op : function<1> {
  static constexpr std::string_view name = "stop_gradient", symbol = "stop_gradient",
                                    latex = "\\operatorname{stop}";
  template <class V> SCANDSL_HD static V value(V x) { return x; }
  template <class T> static constexpr one<T> pullback(T, T, T) { return {T(0.0)}; }
};
/// The value `result`, to which a user's rule attaches the derivative `partial` with respect to `argument`.
/// This is how fn(body).derivative(rule) travels through the program; executors drop it.
struct attach_derivative_op : function<3> {
  static constexpr std::string_view name = "attach_derivative", symbol = "attach_derivative",
                                    latex = "\\operatorname{attach}";
  template <class V> SCANDSL_HD static V value(V result, V, V) { return result; }
  template <class T> static constexpr three<T> pullback(T g, T, T, T partial, T) {
    return {g, g * partial, T(0.0)};
  }
};

/// x / y of integers, rounded down; 0 where y is 0.
struct floor_divide_op : infix_operator {
  static constexpr std::string_view name = "floor_divide", symbol = "//", latex = "\\div";
  static constexpr value_kind result = value_kind::integer;
  template <class I> SCANDSL_HD static I value(I x, I y) { return arithmetic<I>::floor_divide(x, y); }
};
/// x - y * (x // y) of integers: it has y's sign.
struct modulo_op : infix_operator {
  static constexpr std::string_view name = "modulo", symbol = "%", latex = "\\bmod";
  static constexpr value_kind result = value_kind::integer;
  template <class I> SCANDSL_HD static I value(I x, I y) { return arithmetic<I>::modulo(x, y); }
};
/// An integer as a real number, rounded to nearest.
struct to_real_op : function<1> {
  static constexpr std::string_view name = "to_real", symbol = "to_real", latex = "\\operatorname{real}";
  template <class V> SCANDSL_HD static V value(typename arithmetic<V>::integer x) {
    return arithmetic<V>::to_real(x);
  }
  template <class T> static constexpr one<T> pullback(T, T, T) { return {T(0.0)}; }
};

using primitive_list =
    std::tuple<neg_op, abs_op, exp_op, log_op, log1p_op, expm1_op, sin_op, cos_op, sin_of_product_op,
               cos_of_product_op, angle_of_product_op, sqrt_op, tanh_op, sigmoid_op, normal_cdf_op, silu_op,
               silu_derivative_op, gelu_op, mish_op, softplus_op, relu_op, add_op, subtract_op, multiply_op,
               divide_op, pow_op, max_op, min_op, exp_difference_op, logaddexp_op, less_op, less_equal_op,
               equal_op, and_op, or_op, not_op, select_op, stop_gradient_op, attach_derivative_op,
               floor_divide_op, modulo_op, to_real_op>;

inline constexpr int count = static_cast<int>(std::tuple_size_v<primitive_list>);
template <int I> using at = std::tuple_element_t<static_cast<std::size_t>(I), primitive_list>;

template <class P, class List> inline constexpr int position_in = 0;
template <class P, class First, class... Rest>
  requires(!std::is_same_v<P, First>)
inline constexpr int position_in<P, std::tuple<First, Rest...>> = 1 + position_in<P, std::tuple<Rest...>>;
/// The position of P in primitive_list: how a program, which is a plain value, names a function. -1: not
/// there.
template <class P>
inline constexpr int index = position_in<P, primitive_list> < count ? position_in<P, primitive_list> : -1;

/// What kind of value the function takes as an operand: a condition as the first of select and as all of and,
/// or and not; an integer where nothing else will do. (Functions on integers take them in place of real
/// values.)
template <class P> constexpr value_kind argument_kind(int operand) {
  constexpr bool logical = std::is_same_v<P, and_op> || std::is_same_v<P, or_op> || std::is_same_v<P, not_op>;
  if (logical || (std::is_same_v<P, select_op> && operand == 0)) return value_kind::truth;
  if (P::result == value_kind::integer || std::is_same_v<P, to_real_op>) return value_kind::integer;
  return value_kind::real;
}

/// The same of any function, for programs, which know functions by number.
struct signature {
  int arity = 0;
  value_kind result = value_kind::real, argument[3] = {};
  bool on_integers = false, of_position = false;
};
inline constexpr auto signatures = []<class... P>(std::type_identity<std::tuple<P...>>) {
  return std::array<signature, sizeof...(P)>{
      signature{P::arity,
                P::result,
                {argument_kind<P>(0), argument_kind<P>(1), argument_kind<P>(2)},
                P::on_integers,
                P::of_position}...};
}(std::type_identity<primitive_list>{});
constexpr const signature& signature_of(int function) {
  return signatures[static_cast<std::size_t>(function)];
}

/// The kind of a function's value, from that of its last operand.
constexpr value_kind result_kind(int function, value_kind last_operand) {
  const signature& f = signature_of(function);
  const bool integers = f.on_integers && last_operand == value_kind::integer;
  return integers && f.result == value_kind::real ? value_kind::integer : f.result;
}

}  // namespace scandsl::primitive
