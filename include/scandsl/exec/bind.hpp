#pragma once
#include <boost/hana/at_key.hpp>
#include <boost/hana/contains.hpp>
#include <boost/hana/integral_constant.hpp>
#include <boost/hana/map.hpp>
#include <boost/hana/pair.hpp>
#include <boost/hana/type.hpp>
#include <tuple>
#include <utility>

#include "scandsl/expr/expression.hpp"
#include "scandsl/ir/program.hpp"
#include "scandsl/pass/problem.hpp"

/// The arguments of run: a compile-time map from names to views and numbers, checked against the program.
namespace scandsl {
namespace detail {

template <class T> inline constexpr bool is_binding = requires { typename T::binding_tag; };

template <name N> struct name_key {};
template <name N> inline constexpr auto key = hana::type_c<name_key<N>>;

/// Bindings, and a map from their names to where they are among them. The map is a type alone: GCC 12, where
/// it does not optimise, returns such an object in memory from one file and in registers from another, and
/// then calls what the linker kept of the two.
template <class... B> struct named_bindings {
  std::tuple<const B&...> all;

  template <std::size_t... I>
  static auto places(std::index_sequence<I...>)
      -> decltype(hana::make_map(hana::make_pair(key<B::text.value()>, hana::size_c<I>)...));
  using map = decltype(places(std::index_sequence_for<B...>()));

  template <name N>
  static constexpr bool contain = decltype(hana::contains(std::declval<map>(), key<N>))::value;
  template <name N> const auto& at() const {
    using place = std::remove_cvref_t<decltype(hana::at_key(std::declval<map>(), key<N>))>;
    return std::get<place::value>(all);
  }
};

template <class B> constexpr bool binds_number = requires(B binding) { binding.value; };

/// Whether a binding's element type is, or may turn out to be, double.
template <class B> constexpr bool binds_double() {
  if constexpr (requires { typename decltype(B::view)::element; })
    return std::is_same_v<std::remove_cv_t<typename decltype(B::view)::element>, double>;
  else
    return !binds_number<B>;
}

template <const program& P, int T, class B> void check_tensor_binding() {
  constexpr tensor_decl declared = P.tensors[T];
  constexpr auto shown = check::shown<declared.id>();
  static_assert(sizeof(check::bound_to_its_kind<!binds_number<B>, shown>) > 0);
  if constexpr (requires { typename decltype(B::view)::element; }) {
    using view = decltype(B::view);
    using element = std::remove_cv_t<typename view::element>;
    static_assert(
        sizeof(check::rank<view::rank == declared.axes.count, shown, declared.axes.count, view::rank>) > 0);
    static_assert(sizeof(check::writable < declared.role != tensor_role::output ||
                             !std::is_const_v<typename view::element>,
                         shown >) > 0);
    if constexpr (holds_integers(declared))
      static_assert(sizeof(check::integer_elements<!is_floating(dtype_of<element>), shown>) > 0);
    else
      static_assert(sizeof(check::floating_elements<is_floating(dtype_of<element>), shown>) > 0);
  }
}

template <class T, int Rank> void bind_view(bound_tensor& target, const strided_view<T, Rank>& view) {
  target = {true, erase(view)};
}
inline void bind_view(bound_tensor& target, const std::optional<erased_view>& view) {
  target.bound = view.has_value();
  if (view) target.view = *view;
}

template <const program& P, int I, class Named> void bind_tensor(problem& bound, const Named& given) {
  constexpr name id = P.tensors[I].id;
  constexpr bool present = Named::template contain<id>;
  static_assert(sizeof(check::bound < present || P.tensors[I].optional, check::shown<P.tensors[I].id>() >) >
                0);
  if constexpr (present) {
    const auto& binding = given.template at<id>();
    using type = std::remove_cvref_t<decltype(binding)>;
    check_tensor_binding<P, I, type>();
    if constexpr (!binds_number<type>) bind_view(bound.tensors[static_cast<std::size_t>(I)], binding.view);
  }
}

template <const program& P, int I, class Named> void bind_parameter(problem& bound, const Named& given) {
  constexpr name id = P.parameters[I].id;
  constexpr auto shown = check::shown<P.parameters[I].id>();
  constexpr bool present = Named::template contain<id>;
  static_assert(sizeof(check::scalar_bound < present || P.parameters[I].optional, shown >) > 0);
  if constexpr (present) {
    const auto& binding = given.template at<id>();
    constexpr bool number = binds_number<std::remove_cvref_t<decltype(binding)>>;
    static_assert(sizeof(check::bound_to_its_kind<number, shown>) > 0);
    if constexpr (number) bound.parameters[static_cast<std::size_t>(I)] = binding.value;
  }
}

template <const program& P, class B> void check_known() {
  constexpr name id = B::text.value();
  static_assert(sizeof(check::known<(P.find_tensor(id) >= 0 || P.find_parameter(id) >= 0), B::text>) > 0);
}
template <class B, class... All> void check_once() {
  constexpr int times = count_names<All...>(B::text.value());
  static_assert(sizeof(check::bound_once<times == 1, B::text>) > 0);
}

}  // namespace detail

/// Binds views and numbers to the names of program P: every tensor and scalar that is not optional, each
/// once, with its rank. Misuse is a static_assert that names the culprit.
template <const program& P, class... B> problem bind(const B&... bindings) {
  constexpr bool all_bindings = (detail::is_binding<B> && ...);
  static_assert(sizeof(check::takes_bindings<all_bindings>) > 0);
  problem bound = unbound_problem(P);
  if constexpr (all_bindings) {
    (detail::check_known<P, B>(), ...);
    (detail::check_once<B, B...>(), ...);
    const detail::named_bindings<B...> given{{bindings...}};
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (detail::bind_tensor<P, I>(bound, given), ...);
    }(std::make_integer_sequence<int, P.tensors.count>{});
    [&]<int... I>(std::integer_sequence<int, I...>) {
      (detail::bind_parameter<P, I>(bound, given), ...);
    }(std::make_integer_sequence<int, P.parameters.count>{});
  }
  return bound;
}

// What a call is told that fits no executor.
template <const auto& P, class... A> void run(const A&...) {
  constexpr bool is_program = std::is_same_v<std::remove_cvref_t<decltype(P)>, program>;
  static_assert(sizeof(check::run_takes_program<is_program>) > 0);
  static_assert(sizeof(check::run_takes_executor<!is_program>) > 0);
}
template <class... A> void run(const A&...) {
  static_assert(sizeof(check::run_takes_program<sizeof...(A) == ~0UL>) > 0);
}

}  // namespace scandsl
