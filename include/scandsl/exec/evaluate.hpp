#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "scandsl/core/arithmetic.hpp"
#include "scandsl/ir/builder.hpp"

/// Evaluates nodes of a program for one value type V: a scalar, a SIMD pack, or a device thread's number.
/// Every node's value is a variable of its own, so that a compiler keeps it in a register. Shared by all
/// executors. `Ref` is any type with a static `value`, the program.
namespace scandsl {

template <int I> using index_constant = std::integral_constant<int, I>;

/// Inlined whatever else is: a scan's state would go through memory from step to step.
template <int... I, class F>
SCANDSL_INLINE constexpr void for_each_index(std::integer_sequence<int, I...>, F&& f) {
  (f(index_constant<I>{}), ...);
}

/// Parts of a program as constants of their own: device code can read those, but not a member of the program.
template <class Ref, int I> inline constexpr node node_at = Ref::value.nodes[I];
template <class Ref, int S> inline constexpr scan_decl scan_at = Ref::value.scans[S];
template <class Ref, int T> inline constexpr tensor_decl tensor_at = Ref::value.tensors[T];
template <class Ref, int I> inline constexpr store_decl store_at = Ref::value.stores[I];

/// Whether node I is a comparison of integers.
template <class Ref, int I>
inline constexpr bool compares_integers =
    is_truth(node_at<Ref, I>) && is_integer(node_at<Ref, (node_at<Ref, I>.operand[0])>);

/// Applies node I's primitive for values V; get(index_constant<J>{}) gives the value of operand J.
template <class Ref, int I, class V, class Get> SCANDSL_HD auto apply_node(Get&& get) {
  constexpr node each = node_at<Ref, I>;
  using function = primitive::at<each.function>;
  if constexpr (std::is_same_v<function, primitive::to_real_op>)
    return function::template value<V>(get(index_constant<each.operand[0]>{}));
  else if constexpr (compares_integers<Ref, I> && requires(typename arithmetic<V>::integer x) {
                       arithmetic<V>::truth_of(x < x);
                     })  // packs of integers have conditions of their own
    return arithmetic<V>::truth_of(
        function::value(get(index_constant<each.operand[0]>{}), get(index_constant<each.operand[1]>{})));
  else if constexpr (function::arity == 1)
    return function::value(get(index_constant<each.operand[0]>{}));
  else if constexpr (function::arity == 2)
    return function::value(get(index_constant<each.operand[0]>{}), get(index_constant<each.operand[1]>{}));
  else
    return function::value(get(index_constant<each.operand[0]>{}), get(index_constant<each.operand[1]>{}),
                           get(index_constant<each.operand[2]>{}));
}

template <class Ref, int I, class V>
using value_of_node =
    std::conditional_t<is_truth(node_at<Ref, I>), typename arithmetic<V>::truth,
                       std::conditional_t<is_integer(node_at<Ref, I>), typename arithmetic<V>::integer, V>>;

// Integers are kept, and given as parameters, where numbers of their size are: by their bits.

template <class T> SCANDSL_HD T bits_as_number(typename arithmetic<T>::integer value) {
  return std::bit_cast<T>(value);
}
template <class T> SCANDSL_HD typename arithmetic<T>::integer bits_as_integer(T value) {
  return std::bit_cast<typename arithmetic<T>::integer>(value);
}
/// The nearest integer of type I.
template <class I> SCANDSL_HD constexpr I saturated(std::int64_t value) {
  constexpr std::int64_t least = std::numeric_limits<I>::min(), most = std::numeric_limits<I>::max();
  return static_cast<I>(value < least ? least : value > most ? most : value);
}
/// A parameter of a program as kernels take it.
template <class T> T as_parameter(const parameter_decl& declared, double value) {
  if (declared.kind != primitive::value_kind::integer) return static_cast<T>(value);
  return bits_as_number<T>(saturated<typename arithmetic<T>::integer>(
      static_cast<std::int64_t>(std::fmin(std::fmax(value, -0x1p62), 0x1p62))));
}

/// The value of a node without axes, from the parameters.
template <class Ref, int I, class T> SCANDSL_HD auto uniform_value(const T* parameters) {
  constexpr node each = node_at<Ref, I>;
  if constexpr (each.op == opcode::constant)
    return static_cast<value_of_node<Ref, I, T>>(each.value);
  else if constexpr (each.op == opcode::parameter && is_integer(each))
    return bits_as_integer(parameters[each.target]);
  else if constexpr (each.op == opcode::parameter)
    return parameters[each.target];
  else
    return apply_node<Ref, I, T>([&]<int J>(index_constant<J>) { return uniform_value<Ref, J>(parameters); });
}

// ---- variables for nodes

template <int I, class T> struct node_slot {
  T value;
};
template <class Ref, class V, class Sequence> struct node_slots;
template <class Ref, class V, int... I>
struct node_slots<Ref, V, std::integer_sequence<int, I...>> : node_slot<I, value_of_node<Ref, I, V>>... {};

template <int I, class T> SCANDSL_HD T& slot(node_slot<I, T>& s) { return s.value; }

using node_list = fixed_list<int, max_nodes>;

namespace detail {
/// Holder::list, a static constexpr node_list, as a sequence.
template <class Holder, std::size_t... I> auto sequence_from(std::index_sequence<I...>) {
  return std::integer_sequence<int, Holder::list.items[I]...>{};
}
}  // namespace detail
template <class Holder>
using sequence_of = decltype(detail::sequence_from<Holder>(
    std::make_index_sequence<static_cast<std::size_t>(Holder::list.count)>{}));

// ---- combine

/// The nodes below the given roots, in order.
template <class Roots> constexpr node_list nodes_below(const program& p, const Roots& roots) {
  bool below[max_nodes] = {};
  for (const int root : roots) below[root] = true;
  for (int i = p.nodes.count - 1; i >= 0; --i)
    if (below[i])
      for (const node_id o : p.nodes[i].operand)
        if (o != no_node) below[o] = true;
  node_list list;
  for (int i = 0; i < p.nodes.count; ++i)
    if (below[i]) list.push_back(i);
  return list;
}

/// Bits for all components of scan S.
template <class Ref, int S>
inline constexpr unsigned all_components = (1U << Ref::value.scans[S].components) - 1U;

/// combine(left, right) of scan S for the components that the bits of Live mark; the others keep their value.
template <class Ref, int S, unsigned Live> struct combiner {
  static constexpr scan_decl scan = Ref::value.scans[S];
  static constexpr int components = scan.components;
  static constexpr node_list list = [] {
    node_list roots;
    for (int k = 0; k < components; ++k)
      if (Live >> k & 1U) roots.push_back(scan.combined[k]);
    return nodes_below(Ref::value, roots);
  }();

  template <class V> using states = std::array<V, static_cast<std::size_t>(components)>;

  template <class V> SCANDSL_INLINE static void apply(states<V>& left, const states<V>& right) {
    using sequence = sequence_of<combiner>;
    node_slots<Ref, V, sequence> slots;
    for_each_index(sequence{}, [&]<int I>(index_constant<I>) {
      constexpr node each = node_at<Ref, I>;
      if constexpr (each.op == opcode::left)
        slot<I>(slots) = std::get<each.target>(left);
      else if constexpr (each.op == opcode::right)
        slot<I>(slots) = std::get<each.target>(right);
      else if constexpr (each.op == opcode::constant)
        slot<I>(slots) = arithmetic<V>::constant(each.value);
      else
        slot<I>(slots) = apply_node<Ref, I, V>([&]<int J>(index_constant<J>) { return slot<J>(slots); });
    });
    for_each_index(std::make_integer_sequence<int, components>{}, [&]<int K>(index_constant<K>) {
      constexpr int result = scan.combined[K];
      if constexpr (Live >> K & 1U) std::get<K>(left) = slot<result>(slots);
    });
  }
};

}  // namespace scandsl
