#pragma once
#include "scandsl/expr/operators.hpp"

namespace scandsl {

/// out<"y">(axes...) = expression: one output of a program. `Target` is the output as a load.
template <class Target, bool Optional, class E> struct equation {
  using target = Target;
  static constexpr bool is_optional = Optional;
  E value;
};
template <class T> inline constexpr bool is_equation = false;
template <class Target, bool Optional, class E>
inline constexpr bool is_equation<equation<Target, Optional, E>> = true;

template <fixed_string N, bool Optional, class... Axes> struct output {
  static_assert(
      sizeof(check::distinct_axes<load<N, Axes...>::axes.count == static_cast<int>(sizeof...(Axes)), N>) > 0);

  /// A run need not bind this output; unbound, it is not written.
  constexpr output<N, true, Axes...> optional() const { return {}; }

  template <operand E> constexpr auto operator=(E value) const {
    using expression_type = expression_of<E>;
    constexpr name missing = expression_type::axes.first_missing_in(load<N, Axes...>::axes);
    static_assert(sizeof(check::output_axis<missing == name{}, N, check::shown<missing>()>) > 0);
    static_assert(sizeof(check::output_is_a_value<expression_type::kind != value_kind::truth>) > 0);
    return equation<load<N, Axes...>, Optional, expression_type>{as_expression(value)};
  }
  template <class E> constexpr auto operator==(const E&) const {
    static_assert(sizeof(check::equation_is_assigned<sizeof(E) == 0, N>) > 0);
    return *this = 0.0;
  }
};

template <fixed_string N> struct output_name {
  template <class... Axes> constexpr auto operator()(Axes...) const {
    constexpr bool all_axes = (is_axis<Axes> && ...);
    static_assert(sizeof(check::indexed_by_axes<all_axes, N>) > 0);
    if constexpr (all_axes)
      return output<N, false, Axes...>{};
    else
      return output<N, false>{};
  }
  template <class T, int Rank> constexpr auto operator=(const strided_view<T, Rank>& memory) const {
    return tensor_binding<N, strided_view<T, Rank>>{memory};
  }
  template <class E>
    requires language<E>
  constexpr auto operator=(const E&) const {
    static_assert(sizeof(check::output_has_axes<sizeof(E) == 0, N>) > 0);
    return output<N, false>{} = 0.0;
  }
};
/// Declares an output in a program; in run, `out<"y"> = view(...)` binds it (or an ordinary tensor of that
/// name does). The space before `=` matters: `>=` is one token.
template <fixed_string N> inline constexpr output_name<N> out{};

}  // namespace scandsl
