#pragma once
#include <boost/hana/tuple.hpp>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "scandsl/core/view.hpp"
#include "scandsl/expr/check.hpp"
#include "scandsl/expr/leaves.hpp"
#include "scandsl/expr/primitives.hpp"

/// Expression templates: they exist to be written and checked. op<"name">(...) turns them into a program at
/// once.
namespace scandsl {

using primitive::value_kind;
namespace hana = boost::hana;

inline constexpr double inf = std::numeric_limits<double>::infinity();

struct expression_base {};
template <class T>
concept expression = std::derived_from<T, expression_base>;

/// A value of another algebra that the language's operators also serve (ir/builder.hpp's term):
/// T::apply<P>(args...).
template <class T>
concept symbolic = requires { typename T::symbolic_tag; };

/// A named axis. Axes are the same when their names are: axis<"n"> n;
template <fixed_string N> struct axis {
  using axis_tag = void;
  static constexpr name id = N.value();
  static constexpr auto text = N;
};
// Members mark what a type is: the front end of nvcc cannot match a partial specialisation with a name in it.
template <class T> inline constexpr bool is_axis = requires { typename T::axis_tag; };

struct literal : expression_base {
  static constexpr axis_list axes{};
  static constexpr value_kind kind = value_kind::real;
  static constexpr void list_leaves(leaf_list&) {}
  double value = 0.0;
};

/// A tensor read at the current position of its axes.
template <fixed_string N, class... Axes> struct load : expression_base {
  using load_tag = void;
  static constexpr name id = N.value();
  static constexpr int rank = sizeof...(Axes);
  static constexpr axis_list axes = [] {
    axis_list list;
    ((list = list.with(Axes::id)), ...);
    return list;
  }();
  static constexpr value_kind kind = value_kind::real;
  static_assert(sizeof(check::distinct_axes<axes.count == rank, N>) > 0);
  static constexpr void list_leaves(leaf_list& list) { list.add(id, leaf::role::input, false, axes); }

  load() = default;
  template <class E> constexpr auto operator=(const E&) const {
    static_assert(sizeof(check::output_is_declared<sizeof(E) == 0, N>) > 0);
    return *this;
  }
};
template <class T> inline constexpr bool is_load = requires { typename T::load_tag; };

/// What `name = view(...)` and `name = number` give: an argument of run<program>(executor, ...).
template <fixed_string N, class View> struct tensor_binding {
  using binding_tag = void;
  static constexpr auto text = N;
  View view;
};
template <fixed_string N> struct erased_binding {
  using binding_tag = void;
  static constexpr auto text = N;
  std::optional<erased_view> view;
};
template <fixed_string N> struct scalar_binding {
  using binding_tag = void;
  static constexpr auto text = N;
  double value;
};

/// A named tensor: x(b, n, d) reads it, x = view(pointer, extents...) binds it.
template <fixed_string N> struct tensor {
  using tensor_tag = void;
  static constexpr auto text = N;
  static constexpr name id = N.value();

  template <class... Axes> constexpr auto operator()(Axes...) const {
    constexpr bool all_axes = (is_axis<Axes> && ...);
    static_assert(sizeof(check::indexed_by_axes<all_axes, N>) > 0);
    if constexpr (all_axes)
      return load<N, Axes...>{};
    else
      return literal{};
  }
  template <class T, int Rank> constexpr auto operator=(const strided_view<T, Rank>& memory) const {
    return tensor_binding<N, strided_view<T, Rank>>{memory};
  }
  /// Memory whose element type and rank are known at run time only; rank and type are then checked by
  /// exceptions. An empty optional leaves an optional operand unbound.
  constexpr auto operator=(const erased_view& memory) const { return erased_binding<N>{memory}; }
  constexpr auto operator=(const std::optional<erased_view>& memory) const {
    return erased_binding<N>{memory};
  }
  template <class T> constexpr auto operator=(const T&) const {
    static_assert(sizeof(check::tensor_takes_view<sizeof(T) == 0, N>) > 0);
    return erased_binding<N>{};
  }
  template <class T, int Rank> constexpr auto operator==(const strided_view<T, Rank>&) const {
    static_assert(sizeof(check::binding_is_assigned<sizeof(T) == 0, N>) > 0);
    return erased_binding<N>{};
  }
};
template <class T> inline constexpr bool is_tensor = requires { typename T::tensor_tag; };

/// A run-time number, the same everywhere: an operand, a flag (non-zero is true), a restart interval. Bound
/// by chunk = 128. Integers are exact up to 2^53.
template <fixed_string N> struct scalar : expression_base {
  using scalar_tag = void;
  static constexpr auto text = N;
  static constexpr name id = N.value();
  static constexpr axis_list axes{};
  static constexpr value_kind kind = value_kind::real;

  static constexpr void list_leaves(leaf_list& list) { list.add(id, leaf::role::scalar, false, axes); }

  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr auto operator=(T value) const {
    return scalar_binding<N>{static_cast<double>(value)};
  }
  template <class T>
    requires(!std::is_arithmetic_v<T>)
  constexpr auto operator=(const T&) const {
    static_assert(sizeof(check::scalar_takes_number<sizeof(T) == 0, N>) > 0);
    return scalar_binding<N>{0.0};
  }
  template <class... Axes> constexpr auto operator()(Axes...) const {
    static_assert(sizeof(check::scalar_has_no_axes<sizeof...(Axes) == ~0UL, N>) > 0);
    return *this;
  }
};
template <class T> inline constexpr bool is_scalar = requires { typename T::scalar_tag; };

/// An operand that a run need not bind; unbound, it is `fallback` everywhere.
template <class E> struct optional_operand : expression_base {
  static constexpr axis_list axes = E::axes;
  static constexpr value_kind kind = value_kind::real;
  static constexpr bool is_operand = is_load<E> || is_scalar<E>;
  static_assert(sizeof(check::optional_operand<is_operand>) > 0);
  static constexpr void list_leaves(leaf_list& list) {
    list.add(E::id, is_scalar<E> ? leaf::role::scalar : leaf::role::input, true, axes);
  }
  double fallback = 0.0;
};
template <class T> inline constexpr bool is_optional_scalar = false;
template <class E> inline constexpr bool is_optional_scalar<optional_operand<E>> = is_scalar<E>;

/// A primitive applied to expressions.
template <class P, class... A> struct applied : expression_base {
  static constexpr axis_list axes = (axis_list{} | ... | A::axes);
  static constexpr value_kind kind = P::result;
  static constexpr void list_leaves(leaf_list& list) { (A::list_leaves(list), ...); }
  hana::tuple<A...> arguments;

  /// What if and ?: ask for.
  template <class Bool>
    requires std::same_as<Bool, bool>
  explicit constexpr operator Bool() const {
    static_assert(sizeof(check::condition_is_no_bool<sizeof(Bool) == 0>) > 0);
    return false;
  }
};

// ---- operands: what may stand in an expression

template <class T>
concept number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;
/// A state of a scan operator (scan.hpp). Like an axis it is no value; that it may stand in an expression
/// lets a check say so.
template <class T> inline constexpr bool is_state = requires { typename T::state_tag; };
template <class T>
concept language = expression<T> || symbolic<T> || is_tensor<T> || is_axis<T> || is_state<T>;
template <class T>
concept operand = language<T> || number<T>;

constexpr literal as_expression(number auto value) { return {{}, static_cast<double>(value)}; }
template <expression E> constexpr E as_expression(E e) { return e; }
template <class T>
  requires is_tensor<T>
constexpr literal as_expression(T) {
  static_assert(sizeof(check::tensor_has_axes<sizeof(T) == 0, T::text>) > 0);
  return {};
}
template <class T>
  requires is_axis<T>
constexpr literal as_expression(T) {
  static_assert(sizeof(check::axis_is_no_value<sizeof(T) == 0, T::text>) > 0);
  return {};
}
template <class T>
  requires is_state<T>
constexpr literal as_expression(T) {
  static_assert(sizeof(check::state_is_no_value<sizeof(T) == 0, T::components>) > 0);
  return {};
}
template <class T> using expression_of = decltype(as_expression(std::declval<T>()));

template <class... A> struct first_symbolic;
template <class A, class... Rest> struct first_symbolic<A, Rest...> : first_symbolic<Rest...> {};
template <symbolic A, class... Rest> struct first_symbolic<A, Rest...> {
  using type = A;
};

template <class P> constexpr auto shown_name() {
  char buffer[P::name.size() + 1]{};
  for (std::size_t i = 0; i < P::name.size(); ++i) buffer[i] = P::name[i];
  return fixed_string<P::name.size() + 1>(buffer);
}

/// Applies a primitive: an expression of expressions, or whatever a symbolic operand makes of it.
template <class P, operand... A> constexpr auto apply(const A&... arguments) {
  if constexpr ((symbolic<A> || ...)) {
    return first_symbolic<A...>::type::template apply<P>(arguments...);
  } else {
    constexpr auto fit = [](value_kind kind) {
      int position = 0;
      bool all = true;
      ((all = all && (primitive::argument_kind<P>(position) != kind || expression_of<A>::kind == kind),
        ++position),
       ...);
      return all;
    };
    static_assert(sizeof(check::takes_conditions<fit(value_kind::truth), shown_name<P>()>) > 0);
    static_assert(sizeof(check::takes_values<fit(value_kind::real), shown_name<P>()>) > 0);
    return applied<P, expression_of<A>...>{{}, {as_expression(arguments)...}};
  }
}

/// `operand` where a run binds it, `fallback` everywhere where it does not. The operand is a tensor with its
/// axes or a scalar: value_or(bias(d), 0.0).
template <class E, class Fallback> constexpr auto value_or(E, Fallback fallback) {
  static_assert(sizeof(check::fallback_is_number<number<Fallback>>) > 0);
  if constexpr (number<Fallback>)
    return optional_operand<E>{{}, static_cast<double>(fallback)};
  else
    return optional_operand<E>{};
}

}  // namespace scandsl
