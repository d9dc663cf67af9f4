#pragma once
#include <array>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>

#include "scandsl/expr/functions.hpp"

namespace scandsl {

struct no_rule {};

namespace detail {

/// A stand-in for any value of the language, to check a user's functions when they are used.
using probe = literal;
template <class T> struct probe_of {
  using type = probe;
};
template <class T> using probe_for = typename probe_of<T>::type;

/// The same where only symbolic operands will do.
struct symbolic_probe {
  using symbolic_tag = void;
  constexpr symbolic_probe() = default;
  constexpr symbolic_probe(double) {}
  template <class P, class... A> static constexpr symbolic_probe apply(const A&...) { return {}; }
};

/// Whether T is a value rather than a condition. What a symbolic operand is shows when it is computed.
template <class T> constexpr bool is_value() {
  if constexpr (symbolic<T>)
    return true;
  else if constexpr (expression<T> || number<T>)
    return expression_of<T>::kind != value_kind::truth;
  else
    return false;
}

/// Whether a derivative rule takes as many arguments and the value, and returns as many derivatives.
template <class Rule, class... Argument> constexpr bool is_rule() {
  if constexpr (std::is_invocable_v<const Rule&, std::conditional_t<true, symbolic_probe, Argument>...,
                                    symbolic_probe>) {
    using result = std::invoke_result_t<const Rule&, std::conditional_t<true, symbolic_probe, Argument>...,
                                        symbolic_probe>;
    return std::is_same_v<result, std::array<symbolic_probe, sizeof...(Argument)>> ||
           (sizeof...(Argument) == 1 && std::is_convertible_v<result, symbolic_probe>);
  }
  return false;
}

}  // namespace detail

template <class F, class... A> struct called : expression_base {
  static constexpr axis_list axes = (axis_list{} | ... | A::axes);
  static constexpr value_kind kind = value_kind::real;
  static constexpr void list_leaves(leaf_list& list) { (A::list_leaves(list), ...); }
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
      constexpr bool values = ((expression_of<A>::kind != value_kind::truth) && ...);
      static_assert(sizeof(check::takes_values<values, "fn">) > 0);
      if constexpr (values && is_well_formed<detail::probe_for<A>...>())
        return called<function, expression_of<A>...>{{}, *this, {as_expression(arguments)...}};
      else
        return literal{};
    }
  }

  template <class NewRule> constexpr function<Body, NewRule> derivative(NewRule new_rule) const {
    return {body, new_rule};
  }

private:
  /// Checks the body, and the rule, on stand-ins for the arguments.
  template <class... Probe> static constexpr bool is_well_formed() {
    constexpr int arguments = static_cast<int>(sizeof...(Probe));
    constexpr bool rule_fits = std::is_same_v<Rule, no_rule> || detail::is_rule<Rule, Probe...>();
    static_assert(sizeof(check::rule_matches<rule_fits, arguments>) > 0);
    constexpr bool arity_fits = std::is_invocable_v<const Body&, Probe...>;
    static_assert(sizeof(check::function_arity<arity_fits, arguments>) > 0);
    if constexpr (arity_fits) {
      using result = std::invoke_result_t<const Body&, Probe...>;
      constexpr bool is_value = detail::is_value<result>();
      static_assert(sizeof(check::function_gives_value<is_value>) > 0);
      if constexpr (is_value) {
        constexpr name outside = first_name<expression_of<result>>();
        static_assert(sizeof(check::function_is_closed<outside == name{}, check::shown<outside>()>) > 0);
        return rule_fits && outside == name{};
      }
    }
    return false;
  }

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

inline constexpr auto square = fn([](auto x) { return x * x; });

}  // namespace scandsl
