#pragma once
#include <array>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>

#include "scandsl/expr/functions.hpp"

namespace scandsl {

struct no_rule {};

template <class F, class... A> struct called : expression_base {
  static constexpr axis_list axes = (axis_list{} | ... | A::axes);
  static constexpr value_kind kind = value_kind::real;
  F function;
  hana::tuple<A...> arguments;
};

/// A user function. The body is any generic lambda over operands; an argument is evaluated once, however
/// often the body names it. `.derivative(rule)` replaces the derived derivative: rule(x..., y) gives dy/dx
/// (one argument) or partials(dy/dx0, dy/dx1, ...), y being the function's value.
template <class Body, class Rule = no_rule> struct function {
  Body body;
  Rule rule;

  template <operand... A> constexpr auto operator()(const A&... arguments) const {
    if constexpr ((symbolic<A> || ...)) {
      using value = typename first_symbolic<A...>::type;
      return on_terms<value>(std::array<value, sizeof...(A)>{value(arguments)...},
                             std::index_sequence_for<A...>{});
    } else {
      constexpr bool arity_fits = std::is_invocable_v<const Body&, expression_of<A>...>;
      static_assert(sizeof(check::function_arity<arity_fits, static_cast<int>(sizeof...(A))>) > 0);
      if constexpr (arity_fits) {
        using result = std::invoke_result_t<const Body&, expression_of<A>...>;
        static_assert(sizeof(check::function_gives_value<operand<result>>) > 0);
      }
      return called<function, expression_of<A>...>{{}, *this, {as_expression(arguments)...}};
    }
  }

  template <class NewRule> constexpr function<Body, NewRule> derivative(NewRule new_rule) const {
    return {body, new_rule};
  }

private:
  template <class Term, std::size_t N, std::size_t... I>
  constexpr Term on_terms(const std::array<Term, N>& x, std::index_sequence<I...>) const {
    const Term y = Term(body(x[I]...));
    if constexpr (std::is_same_v<Rule, no_rule>) {
      return y;
    } else {
      const std::array<Term, N> partial{rule(x[I]..., y)};
      Term result = stop_gradient(y);
      ((result = apply<primitive::attach_derivative_op>(result, x[I], partial[I])), ...);
      return result;
    }
  }
};

template <class Body> constexpr function<Body> fn(Body body) { return {body, {}}; }

/// The partial derivatives that a rule of several arguments returns.
template <symbolic T, class... Rest> constexpr auto partials(T first, Rest... rest) {
  return std::array<T, 1 + sizeof...(Rest)>{first, T(rest)...};
}

inline constexpr auto silu = fn([](auto x) { return x * sigmoid(x); });
inline constexpr auto relu = fn([](auto x) { return select(x < 0.0, 0.0, x); });
inline constexpr auto mish = fn([](auto x) { return x * tanh(softplus(x)); });
inline constexpr auto square = fn([](auto x) { return x * x; });

}  // namespace scandsl
