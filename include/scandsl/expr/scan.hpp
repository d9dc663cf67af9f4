#pragma once
#include <tuple>

#include "scandsl/expr/fn.hpp"

namespace scandsl {

// ---- states and scan operators

/// The state of a scan operator: one or several components, taken apart by structured bindings.
template <class... T> struct state_of : std::tuple<T...> {
  using std::tuple<T...>::tuple;
};
template <operand... T> constexpr auto state(T... components) { return state_of<T...>{components...}; }

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

template <class... T, class Lift, class Combine, class Project>
constexpr auto scan_op(state_of<T...> identity, Lift lift, Combine combine, Project project) {
  constexpr bool numbers = (number<T> && ...);
  static_assert(sizeof(check::identity_is_numbers<numbers>) > 0);
  constexpr int components = static_cast<int>(sizeof...(T));
  std::array<double, sizeof...(T)> values{};
  if constexpr (numbers)
    values = std::apply([](auto... v) { return std::array<double, sizeof...(T)>{static_cast<double>(v)...}; },
                        static_cast<const std::tuple<T...>&>(identity));
  return scan_operator<components, Lift, Combine, Project, default_seed>{values, lift, combine, project, {}};
}

// ---- over(axis): where a scan runs, which way, where it restarts

struct none {};
struct always {};

template <class Axis, bool Reversed, class ReverseFlag, class Exclusive, class Every, class Offsets,
          class... Start>
struct over_t {
  using axis_type = Axis;
  static constexpr bool is_reversed = Reversed;
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
};

template <class Axis>
  requires is_axis<Axis>
constexpr auto over(Axis) {
  return over_t<Axis, false, none, none, none, none>{};
}

// ---- scan and last

template <class Operator, class Over, class... A> struct scanned : expression_base {
  static constexpr name axis_id = Over::axis_type::id;
  static constexpr axis_list axes =
      (axis_list{} | ... | A::axes) | Over::start_axes.without(Over::segment_axis);
  static constexpr value_kind kind = value_kind::real;
  Operator op;
  Over over;
  hana::tuple<A...> operands;
};
template <class T> inline constexpr bool is_scanned = false;
template <class Operator, class Over, class... A>
inline constexpr bool is_scanned<scanned<Operator, Over, A...>> = true;

namespace detail {
/// A stand-in for any value of the language, to check the shape of a user operator when it is written.
using probe = literal;
template <class, int> using probe_at = probe;
template <int K> constexpr auto probe_state() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return state_of<std::conditional_t<I + 1 != 0, probe, probe>...>{};
  }(std::make_index_sequence<static_cast<std::size_t>(K)>{});
}
template <class F, class... A> constexpr int state_size_of_result() {
  if constexpr (std::is_invocable_v<F, A...>) return state_size<std::invoke_result_t<F, A...>>;
  return -1;
}
}  // namespace detail

/// y_t = project(lift(x_0) . ... . lift(x_t)) along over's axis, `.` being the operator's combine.
template <class Operator, class Over, operand... E>
constexpr auto scan(Operator op, Over over, E... operands) {
  static_assert(is_scan_operator<Operator>,
                "scandsl: scan(op, over(axis), operands...): op is made by scan_op");
  constexpr int arity = static_cast<int>(sizeof...(E)), components = Operator::components;
  constexpr bool axis_fits = (expression_of<E>::axes.has(Over::axis_type::id) || ...);
  static_assert(sizeof(check::scan_axis<axis_fits, Over::axis_type::text>) > 0);

  constexpr bool apart =
      Over::segment_axis == name{} || !(expression_of<E>::axes.has(Over::segment_axis) || ...);
  static_assert(sizeof(check::segments_are_no_operand_axis<apart, check::shown<Over::segment_axis>()>) > 0);

  using lift = decltype(Operator::lift);
  constexpr bool arity_fits = std::is_invocable_v<lift, std::conditional_t<true, detail::probe, E>...>;
  static_assert(sizeof(check::operator_arity<arity_fits, arity>) > 0);
  if constexpr (arity_fits)
    static_assert(
        sizeof(check::lift_gives_state<
               detail::state_size_of_result<lift, std::conditional_t<true, detail::probe, E>...>() ==
                   components,
               components>) > 0);
  using probe_state = decltype(detail::probe_state<components>());
  constexpr int combined =
      detail::state_size_of_result<decltype(Operator::combine), probe_state, probe_state>();
  static_assert(sizeof(check::combine_gives_state<combined == components, components>) > 0);
  constexpr bool projects = [] {
    if constexpr (std::is_invocable_v<decltype(Operator::project), probe_state>)
      return operand<std::invoke_result_t<decltype(Operator::project), probe_state>>;
    return false;
  }();
  static_assert(sizeof(check::project_gives_value<projects>) > 0);
  hana::unpack(over.start, []<class... S>(S...) {
    if constexpr (sizeof...(S) > 0) {
      constexpr int size = detail::state_size_of_result<decltype(Operator::seed),
                                                        std::conditional_t<true, detail::probe, S>...>();
      static_assert(sizeof(check::start_matches<size == components, static_cast<int>(sizeof...(S))>) > 0);
    }
  });
  return scanned<Operator, Over, expression_of<E>...>{{}, op, over, {as_expression(operands)...}};
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
  Scan scan;
};

template <class Scan> constexpr auto last(Scan scan) {
  static_assert(sizeof(check::last_of_a_scan<is_scanned<Scan>>) > 0);
  if constexpr (is_scanned<Scan>) return last_of<Scan>{{}, scan};
}

/// A reduction is a scan's last value.
template <class Operator, class Over, operand... E>
constexpr auto reduce(Operator op, Over over, E... operands) {
  return last(scan(op, over, operands...));
}

}  // namespace scandsl

template <class... T>
struct std::tuple_size<scandsl::state_of<T...>> : std::integral_constant<std::size_t, sizeof...(T)> {};
template <std::size_t I, class... T>
struct std::tuple_element<I, scandsl::state_of<T...>> : std::tuple_element<I, std::tuple<T...>> {};
