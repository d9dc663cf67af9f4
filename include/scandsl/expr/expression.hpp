#pragma once
#include <boost/hana/flatten.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>
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

  /// A computed position, for one dimension of a tensor: theta(h, e[index(d) % extent(e)]).
  template <class E> constexpr auto operator[](const E& position) const;
};
// Members mark what a type is: the front end of nvcc cannot match a partial specialisation with a name in it.
template <class T> inline constexpr bool is_axis = requires { typename T::axis_tag; };

struct literal : expression_base {
  static constexpr axis_list axes{};
  static constexpr value_kind kind = value_kind::real;
  static constexpr void list_leaves(leaf_list&) {}
  double value = 0.0;
};
/// A number that was written as an integer.
struct whole_literal : literal {
  static constexpr value_kind kind = value_kind::integer;
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

/// A tensor of integers, or (Role table) a short list of them that a run is given by value.
template <leaf::role Role, fixed_string N, class... Axes> struct integer_load : load<N, Axes...> {
  static constexpr value_kind kind = value_kind::integer;
  static constexpr bool is_table = Role == leaf::role::table;
  static constexpr void list_leaves(leaf_list& list) {
    list.add(load<N, Axes...>::id, Role, false, load<N, Axes...>::axes);
  }
};

/// A position along `Axis` that is computed.
template <class Axis, class E> struct chosen_position {
  using position_tag = void;
  using axis_type = Axis;
  static constexpr name id = Axis::id;
  static constexpr auto text = Axis::text;
  E position;
};
template <class T> inline constexpr bool is_position = requires { typename T::position_tag; };

/// A tensor read at computed positions along some of its axes, at the current one along the others; 0 where a
/// position is outside of its axis. `Load` says what tensor it is, with the axes of all its dimensions.
template <class Load, class... Position> struct gathered : expression_base {
  using gather_tag = void;
  using load_type = Load;
  static constexpr name id = Load::id;
  static constexpr axis_list computed = [] {
    axis_list list;
    ((list = list.with(Position::id)), ...);
    return list;
  }();
  static constexpr axis_list axes = [] {
    axis_list list;
    for (int i = 0; i < Load::axes.count; ++i)
      if (!computed.has(Load::axes.items[i])) list = list.with(Load::axes.items[i]);
    return (list | ... | decltype(Position::position)::axes);
  }();
  static constexpr value_kind kind = Load::kind;
  static constexpr void list_leaves(leaf_list& list) {
    Load::list_leaves(list);
    (decltype(Position::position)::list_leaves(list), ...);
  }
  hana::tuple<Position...> positions;  ///< in the order of the tensor's dimensions
};
template <class T> inline constexpr bool is_gathered = requires { typename T::gather_tag; };

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

namespace detail {
template <class T> constexpr auto axis_of() {
  if constexpr (is_position<T>)
    return typename T::axis_type{};
  else
    return T{};
}
template <class T> constexpr auto position_of(const T& where) {
  if constexpr (is_position<T>)
    return hana::make_tuple(where);
  else
    return hana::tuple<>{};
}
/// `Load` at `where`: one axis, or position along one, for each of its dimensions.
template <class Load, class... Where> constexpr auto read(const Where&... where) {
  constexpr int computed = (0 + ... + (is_position<Where> ? 1 : 0));
  constexpr auto shown = check::shown<Load::id>();
  static_assert(sizeof(check::position_count<computed <= 3, shown, 3>) > 0);
  if constexpr (computed == 0 || computed > 3) {
    return Load{};
  } else {
    return hana::unpack(hana::flatten(hana::make_tuple(position_of(where)...)),
                        []<class... Position>(const Position&... positions) {
                          using result = gathered<Load, Position...>;
                          constexpr name along = [] {
                            for (int i = 0; i < result::computed.count; ++i)
                              if (result::axes.has(result::computed.items[i]))
                                return result::computed.items[i];
                            return name{};
                          }();
                          static_assert(
                              sizeof(check::position_is_apart<along == name{}, check::shown<Load::id>(),
                                                              check::shown<along>()>) > 0);
                          return result{{}, {positions...}};
                        });
  }
}
}  // namespace detail

/// A named tensor: x(b, n, d) reads it, x = view(pointer, extents...) binds it.
template <fixed_string N> struct tensor {
  using tensor_tag = void;
  static constexpr auto text = N;
  static constexpr name id = N.value();

  template <class... Where> constexpr auto operator()(const Where&... where) const {
    constexpr bool all_axes = ((is_axis<Where> || is_position<Where>) && ...);
    static_assert(sizeof(check::indexed_by_axes<all_axes, N>) > 0);
    if constexpr (all_axes)
      return detail::read<load<N, decltype(detail::axis_of<Where>())...>>(where...);
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

/// A named tensor of integers, int32 or int64 in memory: positions, classes. Where arithmetic is in float32,
/// values beyond 32 bits become the nearest that fits.
template <fixed_string N> struct integer_tensor : tensor<N> {
  using tensor<N>::operator=;
  template <class... Where> constexpr auto operator()(const Where&... where) const {
    constexpr bool all_axes = ((is_axis<Where> || is_position<Where>) && ...);
    static_assert(sizeof(check::indexed_by_axes<all_axes, N>) > 0);
    if constexpr (all_axes)
      return detail::read<integer_load<leaf::role::integers, N, decltype(detail::axis_of<Where>())...>>(
          where...);
    else
      return whole_literal{};
  }
};
/// A named list of few integers (max_table), which lies in the caller's memory and is given to a run by
/// value, on a GPU too: sizes = view(pointer, count). It has one axis and is read at computed positions:
/// sizes(m[index(d) / 2]).
template <fixed_string N> struct table : tensor<N> {
  using tensor<N>::operator=;
  template <class Axis, class E> constexpr auto operator()(const chosen_position<Axis, E>& where) const {
    return detail::read<integer_load<leaf::role::table, N, Axis>>(where);
  }
};

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

/// A run-time integer, the same everywhere: an offset.
template <fixed_string N> struct integer_scalar : scalar<N> {
  static constexpr value_kind kind = value_kind::integer;
  static constexpr void list_leaves(leaf_list& list) {
    list.add(scalar<N>::id, leaf::role::integer, false, scalar<N>::axes);
  }
  template <class T> constexpr auto operator=(const T& value) const {
    static_assert(sizeof(check::integer_takes_whole_number<std::is_integral_v<T>, N>) > 0);
    return scalar<N>::operator=(value);
  }
};

/// index(n): the position along an axis.
template <class Axis> struct axis_index : expression_base {
  using index_tag = void;
  static constexpr name id = Axis::id;
  static constexpr axis_list axes = axis_list{}.with(id);
  static constexpr value_kind kind = value_kind::integer;
  static constexpr void list_leaves(leaf_list&) {}
};
template <class T> inline constexpr bool is_index = requires { typename T::index_tag; };
/// extent(n): the number of positions along an axis.
template <class Axis> struct axis_extent : expression_base {
  using extent_tag = void;
  static constexpr name id = Axis::id;
  static constexpr axis_list axes{};
  static constexpr value_kind kind = value_kind::integer;
  static constexpr void list_leaves(leaf_list&) {}
};
template <class T> inline constexpr bool is_extent = requires { typename T::extent_tag; };

/// An operand that a run need not bind; unbound, it is `fallback` everywhere.
template <class E> struct optional_operand : expression_base {
  static constexpr axis_list axes = E::axes;
  static constexpr value_kind kind = E::kind;
  static constexpr bool is_operand = is_load<E> || is_scalar<E> || is_gathered<E>;
  static_assert(sizeof(check::optional_operand<is_operand>) > 0);
  static constexpr void list_leaves(leaf_list& list) {
    leaf_list own;
    E::list_leaves(own);
    for (int i = 0; i < own.count; ++i) {
      if (own.items[i].id == E::id) own.items[i].optional = true;
      list.add(own.items[i]);
    }
  }
  double fallback = 0.0;
  E operand{};
};
template <class T> inline constexpr bool is_optional_scalar = false;
template <class E> inline constexpr bool is_optional_scalar<optional_operand<E>> = is_scalar<E>;

/// A primitive applied to expressions.
template <class P, class... A> struct applied : expression_base {
  static constexpr axis_list axes = (axis_list{} | ... | A::axes);
  static constexpr value_kind kind = [] {
    bool integers = P::on_integers && P::result == value_kind::real;
    int position = 0;
    ((integers = integers && (primitive::argument_kind<P>(position++) == value_kind::truth ||
                              A::kind == value_kind::integer)),
     ...);
    return integers ? value_kind::integer : P::result;
  }();
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

constexpr auto as_expression(number auto value) {
  if constexpr (std::is_integral_v<decltype(value)>)
    return whole_literal{{{}, static_cast<double>(value)}};
  else
    return literal{{}, value};
}
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
      const auto takes = [&](value_kind given) {
        const bool real = kind == value_kind::real;
        all = all && (primitive::argument_kind<P>(position++) != kind ||
                      (real ? given != value_kind::truth : given == kind));
      };
      (takes(expression_of<A>::kind), ...);
      return all;
    };
    static_assert(sizeof(check::takes_conditions<fit(value_kind::truth), shown_name<P>()>) > 0);
    static_assert(sizeof(check::takes_integers<fit(value_kind::integer), shown_name<P>()>) > 0);
    static_assert(sizeof(check::takes_values<fit(value_kind::real), shown_name<P>()>) > 0);
    return applied<P, expression_of<A>...>{{}, {as_expression(arguments)...}};
  }
}

/// `operand` where a run binds it, `fallback` everywhere where it does not. The operand is a tensor with its
/// axes or a scalar: value_or(bias(d), 0.0).
template <class E, class Fallback> constexpr auto value_or(E value, Fallback fallback) {
  static_assert(sizeof(check::fallback_is_number<number<Fallback>>) > 0);
  if constexpr (number<Fallback>)
    return optional_operand<E>{{}, static_cast<double>(fallback), value};
  else
    return optional_operand<E>{{}, 0.0, value};
}

template <fixed_string N> template <class E> constexpr auto axis<N>::operator[](const E& position) const {
  constexpr bool is_integer = [] {
    if constexpr (operand<E>) return expression_of<E>::kind == value_kind::integer;
    return false;
  }();
  static_assert(sizeof(check::position_is_integer<is_integer, N>) > 0);
  if constexpr (is_integer)
    return chosen_position<axis, expression_of<E>>{as_expression(position)};
  else
    return chosen_position<axis, whole_literal>{};
}

/// The position along an axis, from 0: an integer.
template <class Axis> constexpr auto index(Axis) {
  static_assert(sizeof(check::index_takes_an_axis<is_axis<Axis>>) > 0);
  if constexpr (is_axis<Axis>)
    return axis_index<Axis>{};
  else
    return whole_literal{};
}
/// The number of positions along an axis: an integer.
template <class Axis> constexpr auto extent(Axis) {
  static_assert(sizeof(check::index_takes_an_axis<is_axis<Axis>>) > 0);
  if constexpr (is_axis<Axis>)
    return axis_extent<Axis>{};
  else
    return whole_literal{};
}

/// Expressions side by side along a new axis: at its position 0 the first, and so on.
template <class Axis, class... E> struct stacked : expression_base {
  using stack_tag = void;
  using axis_type = Axis;
  static constexpr axis_list axes = (axis_list{} | ... | E::axes) | axis_list{}.with(Axis::id);
  static constexpr value_kind kind = value_kind::real;
  static constexpr void list_leaves(leaf_list& list) { (E::list_leaves(list), ...); }
  hana::tuple<E...> parts;
};
template <class T> inline constexpr bool is_stacked = requires { typename T::stack_tag; };

template <class Axis, operand... E> constexpr auto stack(Axis, const E&... parts) {
  static_assert(sizeof(check::index_takes_an_axis<is_axis<Axis>>) > 0);
  constexpr bool values = sizeof...(E) > 0 && ((expression_of<E>::kind != value_kind::truth) && ...);
  static_assert(sizeof(check::stack_takes_values<values>) > 0);
  if constexpr (is_axis<Axis> && values) {
    constexpr bool is_new = !(expression_of<E>::axes.has(Axis::id) || ...);
    static_assert(sizeof(check::stack_axis_is_new<is_new, Axis::text>) > 0);
    return stacked<Axis, expression_of<E>...>{{}, {as_expression(parts)...}};
  } else {
    return literal{};
  }
}

}  // namespace scandsl
