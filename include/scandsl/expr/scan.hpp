#pragma once
#include <tuple>

#include "scandsl/expr/fn.hpp"

namespace scandsl {

// ---- states and scan operators

/// The state of a scan operator: one or several components, taken apart by structured bindings.
template <class... T> struct state_of : std::tuple<T...> {
  using state_tag = void;
  static constexpr int components = static_cast<int>(sizeof...(T));
  using std::tuple<T...>::tuple;
};
template <operand... T> constexpr auto state(T... components) {
  constexpr bool values = (detail::is_value<T>() && ...);
  static_assert(sizeof(check::state_of_values<values>) > 0);
  return state_of<T...>{components...};
}

template <class T> inline constexpr int state_size = -1;
template <class... T> inline constexpr int state_size<state_of<T...>> = static_cast<int>(sizeof...(T));

/// How an initial value becomes a state, when the operator does not say: one value per component.
struct default_seed {
  template <class... T> constexpr auto operator()(T... components) const { return state(components...); }
};

/// An associative operator on states.
///   identity            state(numbers...): combine(identity, s) = combine(s, identity) = s
///   lift(inputs...)     the state of one element
///   combine(l, r)       the state of two neighbouring stretches, l before r; associative
///   project(state)      the value that the scan gives
///   seed(values...)     the state that starting_from(values...) means
template <int Components, class Lift, class Combine, class Project, class Seed> struct scan_operator {
  static constexpr int components = Components;
  std::array<double, static_cast<std::size_t>(Components)> identity;
  Lift lift;
  Combine combine;
  Project project;
  Seed seed;

  template <class NewSeed> constexpr auto seeded_by(NewSeed new_seed) const {
    return scan_operator<Components, Lift, Combine, Project, NewSeed>{identity, lift, combine, project,
                                                                      new_seed};
  }
};
template <class T> inline constexpr bool is_scan_operator = false;
template <int K, class L, class C, class P, class S>
inline constexpr bool is_scan_operator<scan_operator<K, L, C, P, S>> = true;

template <class Identity, class Lift, class Combine, class Project>
constexpr auto scan_op(Identity identity, Lift lift, Combine combine, Project project) {
  constexpr bool numbers = [] {
    if constexpr (is_state<Identity>)
      return []<class... T>(std::type_identity<state_of<T...>>) {
        return (number<T> && ...);
      }(std::type_identity<Identity>{});
    return false;
  }();
  static_assert(sizeof(check::identity_is_numbers<numbers>) > 0);
  constexpr int components = state_size<Identity> > 0 ? state_size<Identity> : 1;
  std::array<double, static_cast<std::size_t>(components)> values{};
  if constexpr (numbers)
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((values[I] = static_cast<double>(std::get<I>(identity))), ...);
    }(std::make_index_sequence<static_cast<std::size_t>(components)>{});
  return scan_operator<components, Lift, Combine, Project, default_seed>{values, lift, combine, project, {}};
}

// ---- over(axis): where a scan runs, which way, where it restarts

struct none {};
struct always {};

template <class Axis, bool Reversed, class ReverseFlag, class Exclusive, class Every, class Offsets,
          class... Start>
struct over_t {
  using over_tag = void;
  using axis_type = Axis;
  static constexpr bool is_reversed = Reversed;
  static constexpr void list_leaves(leaf_list& list) {
    list_flag<ReverseFlag>(list);
    list_flag<Exclusive>(list);
    list_flag<Every>(list);
    if constexpr (is_load<Offsets>) list.add(Offsets::id, leaf::role::offsets, true, Offsets::axes);
    (Start::list_leaves(list), ...);
  }
  ReverseFlag reverse_flag;
  Exclusive exclusive_flag;
  Every every;
  Offsets offsets;
  hana::tuple<Start...> start;

  /// Scans from the last position to the first.
  constexpr auto reversed() const {
    return over_t<Axis, !Reversed, ReverseFlag, Exclusive, Every, Offsets, Start...>{
        reverse_flag, exclusive_flag, every, offsets, start};
  }
  /// The same, when the run-time flag is not zero.
  template <class Flag> constexpr auto reversed(Flag flag) const {
    static_assert(sizeof(check::run_time_flag < is_scalar<Flag> || is_optional_scalar < Flag >>) > 0);
    return over_t<Axis, Reversed, Flag, Exclusive, Every, Offsets, Start...>{flag, exclusive_flag, every,
                                                                             offsets, start};
  }
  /// The value at t is the state before t: the initial state (or the identity) at the first position.
  constexpr auto exclusive() const {
    return over_t<Axis, Reversed, ReverseFlag, always, Every, Offsets, Start...>{
        reverse_flag, {}, every, offsets, start};
  }
  template <class Flag> constexpr auto exclusive(Flag flag) const {
    static_assert(sizeof(check::run_time_flag < is_scalar<Flag> || is_optional_scalar < Flag >>) > 0);
    return over_t<Axis, Reversed, ReverseFlag, Flag, Every, Offsets, Start...>{reverse_flag, flag, every,
                                                                               offsets, start};
  }
  /// The carry restarts every k positions, counted from position 0 (of the segment) in both directions; the
  /// last stretch may be short. k is a number or a scalar.
  template <class K> constexpr auto restart_every(K k) const {
    static_assert(sizeof(check::restart_interval < std::is_integral_v<K> || is_scalar<K> ||
                         is_optional_scalar < K >>) > 0);
    auto interval = as_expression(k);
    return over_t<Axis, Reversed, ReverseFlag, Exclusive, decltype(interval), Offsets, Start...>{
        reverse_flag, exclusive_flag, interval, offsets, start};
  }
  /// The carry restarts at packed sequences: offsets(s) holds extent(s) + 1 positions, from 0 to the axis'
  /// extent, not decreasing. Initial states and last(...) then vary along s. A bare tensor<"o"> means the
  /// axis "o". Unbound (value_or is implied), there is one segment.
  template <class T> constexpr auto restart_at(T where) const {
    if constexpr (is_tensor<T>) {
      return restart_at(where(axis<T::text>{}));
    } else {
      constexpr bool fits = [] {
        if constexpr (is_load<T>) return T::rank == 1;
        return false;
      }();
      static_assert(sizeof(check::restart_offsets<fits>) > 0);
      return over_t<Axis, Reversed, ReverseFlag, Exclusive, Every, T, Start...>{reverse_flag, exclusive_flag,
                                                                                every, where, start};
    }
  }
  /// The initial state: what the carry is at every start and restart.
  template <operand... E> constexpr auto starting_from(E... values) const {
    constexpr axis_list along = (axis_list{} | ... | expression_of<E>::axes);
    static_assert(sizeof(check::start_is_before_the_scan<!along.has(Axis::id), Axis::text>) > 0);
    return over_t<Axis, Reversed, ReverseFlag, Exclusive, Every, Offsets, expression_of<E>...>{
        reverse_flag, exclusive_flag, every, offsets, {as_expression(values)...}};
  }

  /// The axis along which packed sequences are numbered; empty without restart_at.
  static constexpr name segment_axis = [] {
    if constexpr (is_load<Offsets>) return Offsets::axes.items[0];
    return name{};
  }();
  static constexpr axis_list start_axes = (axis_list{} | ... | Start::axes);

private:
  template <class Flag> static constexpr void list_flag(leaf_list& list) {
    if constexpr (expression<Flag>) Flag::list_leaves(list);
  }
};
template <class T> inline constexpr bool is_over = requires { typename T::over_tag; };

template <class... A> constexpr auto over(A...) {
  constexpr bool one_axis = sizeof...(A) == 1 && (is_axis<A> && ...);
  static_assert(sizeof(check::over_takes_an_axis<one_axis>) > 0);
  if constexpr (one_axis)
    return over_t<A..., false, none, none, none, none>{};
  else
    return literal{};
}

// ---- scan and last

template <class Operator, class Over, class... A> struct scanned : expression_base {
  static constexpr name axis_id = Over::axis_type::id;
  static constexpr axis_list axes =
      (axis_list{} | ... | A::axes) | Over::start_axes.without(Over::segment_axis);
  static constexpr value_kind kind = value_kind::real;
  static constexpr void list_leaves(leaf_list& list) {
    (A::list_leaves(list), ...);
    Over::list_leaves(list);
  }
  Operator op;
  Over over;
  hana::tuple<A...> operands;
};
template <class T> inline constexpr bool is_scanned = false;
template <class Operator, class Over, class... A>
inline constexpr bool is_scanned<scanned<Operator, Over, A...>> = true;

namespace detail {

template <int K> constexpr auto probe_state() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return state_of<std::conditional_t<I + 1 != 0, probe, probe>...>{};
  }(std::make_index_sequence<static_cast<std::size_t>(K)>{});
}
template <class F, class... A> constexpr int state_size_of_result() {
  if constexpr (std::is_invocable_v<F, A...>) return state_size<std::invoke_result_t<F, A...>>;
  return -1;
}
template <class... T> constexpr name first_name_of_state(std::type_identity<state_of<T...>>) {
  return first_name<expression_of<T>...>();
}
/// The first name that a function gives back without having been given it.
template <class F, class... A> constexpr name name_from_outside() {
  using result = std::invoke_result_t<F, A...>;
  if constexpr (is_state<result>)
    return first_name_of_state(std::type_identity<result>{});
  else
    return first_name<expression_of<result>>();
}

/// Checks the parts of a scan operator on stand-ins for what they are given; `Probe`s for the scanned
/// operands.
template <class Operator, class... Probe> constexpr bool is_well_formed() {
  constexpr int arity = static_cast<int>(sizeof...(Probe)), components = Operator::components;
  using lift = decltype(Operator::lift);
  using combine = decltype(Operator::combine);
  using project = decltype(Operator::project);
  using probe_state = decltype(detail::probe_state<components>());
  constexpr bool arity_fits = std::is_invocable_v<lift, Probe...>;
  static_assert(sizeof(check::operator_arity<arity_fits, arity>) > 0);
  constexpr bool lifts = state_size_of_result<lift, Probe...>() == components;
  static_assert(sizeof(check::lift_gives_state < !arity_fits || lifts, components >) > 0);
  constexpr bool combines = state_size_of_result<combine, probe_state, probe_state>() == components;
  static_assert(sizeof(check::combine_gives_state<combines, components>) > 0);
  constexpr bool projects = [] {
    if constexpr (std::is_invocable_v<project, probe_state>)
      return is_value<std::invoke_result_t<project, probe_state>>();
    return false;
  }();
  static_assert(sizeof(check::project_gives_value<projects>) > 0);
  if constexpr (lifts && combines && projects) {
    constexpr name in_lift = name_from_outside<lift, Probe...>(),
                   in_combine = name_from_outside<combine, probe_state, probe_state>(),
                   in_project = name_from_outside<project, probe_state>();
    constexpr name outside = in_lift != name{} ? in_lift : in_combine != name{} ? in_combine : in_project;
    static_assert(sizeof(check::operator_is_closed<outside == name{}, check::shown<outside>()>) > 0);
    return outside == name{};
  }
  return false;
}

template <class Operator, class... S> constexpr bool start_matches(std::type_identity<hana::tuple<S...>>) {
  if constexpr (sizeof...(S) > 0) {
    constexpr int size = state_size_of_result<decltype(Operator::seed), probe_for<S>...>();
    static_assert(sizeof(check::start_matches<size == Operator::components, static_cast<int>(sizeof...(S))>) >
                  0);
    constexpr bool values = ((S::kind != value_kind::truth) && ...);
    static_assert(sizeof(check::takes_values<values, "starting_from">) > 0);
    return values && size == Operator::components;
  }
  return true;
}

/// Where a scan runs, against its operands.
template <class Operator, class Over, class... E> constexpr bool fits() {
  constexpr bool axis_fits = (E::axes.has(Over::axis_type::id) || ...);
  static_assert(sizeof(check::scan_axis<axis_fits, Over::axis_type::text>) > 0);
  constexpr bool apart = Over::segment_axis == name{} || !(E::axes.has(Over::segment_axis) || ...);
  static_assert(sizeof(check::segments_are_no_operand_axis<apart, check::shown<Over::segment_axis>()>) > 0);
  constexpr bool values = ((E::kind != value_kind::truth) && ...);
  static_assert(sizeof(check::takes_values<values, "scan">) > 0);
  return axis_fits && apart && values && start_matches<Operator>(std::type_identity<decltype(Over::start)>{});
}

}  // namespace detail

/// y_t = project(lift(x_0) . ... . lift(x_t)) along over's axis, `.` being the operator's combine.
template <class Operator, class Over, class... E> constexpr auto scan(Operator op, Over over, E... operands) {
  constexpr bool inside = (symbolic<E> || ...), values = sizeof...(E) > 0 && (operand<E> && ...);
  static_assert(sizeof(check::scan_takes_operator<is_scan_operator<Operator>>) > 0);
  static_assert(sizeof(check::scan_takes_over < !is_scan_operator<Operator> || is_over < Over >>) > 0);
  static_assert(sizeof(check::scan_takes_operands < !is_over<Over> || values >) > 0);
  static_assert(sizeof(check::scan_outside_functions<!inside>) > 0);
  if constexpr (is_scan_operator<Operator> && is_over<Over> && values && !inside) {
    constexpr bool fits = detail::fits<Operator, Over, expression_of<E>...>();
    if constexpr (detail::is_well_formed<Operator, detail::probe_for<E>...>() && fits)
      return scanned<Operator, Over, expression_of<E>...>{{}, op, over, {as_expression(operands)...}};
    else
      return literal{};
  } else {
    return literal{};
  }
}

/// A scan's final value: at the last position in scan order (the last segment's end for each packed
/// sequence), which is the initial state where there are no positions.
template <class Scan> struct last_of : expression_base {
  static constexpr axis_list axes = [] {
    using over_type = decltype(Scan::over);
    axis_list list = Scan::axes.without(Scan::axis_id);
    return over_type::segment_axis == name{} ? list : list.with(over_type::segment_axis);
  }();
  static constexpr value_kind kind = value_kind::real;
  static constexpr void list_leaves(leaf_list& list) { Scan::list_leaves(list); }
  Scan scan;
};

template <class Scan> constexpr auto last(Scan scan) {
  static_assert(sizeof(check::last_of_a_scan<is_scanned<Scan>>) > 0);
  if constexpr (is_scanned<Scan>)
    return last_of<Scan>{{}, scan};
  else
    return literal{};
}

/// A reduction is a scan's last value.
template <class Operator, class Over, class... E>
constexpr auto reduce(Operator op, Over over, E... operands) {
  return last(scan(op, over, operands...));
}

}  // namespace scandsl

template <class... T>
struct std::tuple_size<scandsl::state_of<T...>> : std::integral_constant<std::size_t, sizeof...(T)> {};
template <std::size_t I, class... T>
struct std::tuple_element<I, scandsl::state_of<T...>> : std::tuple_element<I, std::tuple<T...>> {};
