#pragma once
#include <boost/hana/for_each.hpp>
#include <boost/hana/unpack.hpp>

#include "scandsl/expr/equation.hpp"
#include "scandsl/ir/builder.hpp"

namespace scandsl {
namespace lowering_detail {

/// Turns expressions into nodes of one builder.
struct lowering {
  builder& target;

  constexpr term lower(const literal& e) { return term(e.value); }

  template <class E>
    requires is_load<E>
  constexpr term lower(const E&) {
    return term(target, target.load(declaration<E>(tensor_role::input)));
  }
  template <class E>
    requires is_scalar<E>
  constexpr term lower(const E&) {
    return term(target, target.parameter(parameter_decl{E::id, false, 0.0, E::kind}));
  }
  template <class E> constexpr term lower(const optional_operand<E>& e) {
    if constexpr (is_scalar<E>) {
      return term(target, target.parameter(parameter_decl{E::id, true, e.fallback, E::kind}));
    } else {
      const auto optional = [&e](tensor_decl declared) {
        declared.optional = true;
        declared.fallback = e.fallback;
        return declared;
      };
      if constexpr (is_load<E>)
        return term(target, target.load(optional(declaration<E>(tensor_role::input))));
      else
        return gather(e.operand, optional);
    }
  }
  template <class E>
    requires is_gathered<E>
  constexpr term lower(const E& e) {
    return gather(e, [](const tensor_decl& declared) { return declared; });
  }
  template <class E>
    requires is_index<E>
  constexpr term lower(const E&) {
    return term(target, target.index(target.axis(E::id)));
  }
  template <class E>
    requires is_extent<E>
  constexpr term lower(const E&) {
    return term(target, target.extent(target.axis(E::id)));
  }
  /// A choice by the position along the new axis: the first of `parts` at 0, and so on.
  template <class E>
    requires is_stacked<E>
  constexpr term lower(const E& e) {
    return hana::unpack(e.parts, [this](const auto&... part) {
      constexpr int count = static_cast<int>(sizeof...(part));
      const std::array<node_id, sizeof...(part)> ids{real(lower(part)).id...};
      const int along = target.axis(E::axis_type::id);
      std::int16_t& declared = target.result.parts[along];
      if (declared != 0 && declared != count)
        throw "scandsl: different numbers of expressions are stacked along one axis; give each stack its own";
      declared = static_cast<std::int16_t>(count);
      const term at(target, target.index(along));
      term chosen(target, ids.back());
      for (int i = count - 1; i-- > 0;)
        chosen = select(at == term(target, target.constant(i, value_kind::integer)),
                        term(target, ids[static_cast<std::size_t>(i)]), chosen);
      return chosen;
    });
  }

  template <class P, class... A> constexpr term lower(const applied<P, A...>& e) {
    return hana::unpack(e.arguments, [this](const auto&... operand_) {
      constexpr bool integers = takes_integers<P, A...>();
      // Braces order the evaluation: nodes are numbered as they are read.
      const std::array<node_id, sizeof...(A)> ids{lower_number<integers>(operand_).in(target)...};
      node_id operands[3] = {no_node, no_node, no_node};
      for (std::size_t i = 0; i < ids.size(); ++i) operands[i] = ids[i];
      target.fit(primitive::index<P>, operands);
      return term(target, target.apply(primitive::index<P>, operands[0], operands[1], operands[2]));
    });
  }
  template <class F, class... A> constexpr term lower(const called<F, A...>& e) {
    return hana::unpack(e.arguments, [this, &e](const auto&... operand_) {
      const std::array<term, sizeof...(A)> terms{real(lower(operand_))...};
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return e.function(terms[I]...);
      }(std::index_sequence_for<A...>{});
    });
  }
  template <class Operator, class Over, class... A>
  constexpr term lower(const scanned<Operator, Over, A...>& e) {
    const int s = declare_scan(e);
    if constexpr (std::is_same_v<decltype(e.over.exclusive_flag), none>)
      return project(e.op, [&](int k) { return term(target, target.scan_value(opcode::scan, s, k)); });
    else if constexpr (std::is_same_v<decltype(e.over.exclusive_flag), always>)
      return project(e.op, [&](int k) { return term(target, target.scan_value(opcode::carry, s, k)); });
    else {
      const term exclusive = lower(e.over.exclusive_flag) != term(0.0);
      return project(e.op, [&](int k) {
        return select(exclusive, term(target, target.scan_value(opcode::carry, s, k)),
                      term(target, target.scan_value(opcode::scan, s, k)));
      });
    }
  }
  template <class Scan> constexpr term lower(const last_of<Scan>& e) {
    const int s = declare_scan(e.scan);
    return project(e.scan.op, [&](int k) { return term(target, target.scan_value(opcode::last, s, k)); });
  }

  template <class Load> constexpr tensor_decl declaration(tensor_role role) {
    tensor_decl declared{Load::id, {}, role, false, 0.0, Load::kind, {}};
    if constexpr (requires { Load::is_table; })
      if (Load::is_table) declared.role = tensor_role::table;
    for (int i = 0; i < Load::axes.count; ++i)
      declared.axes.push_back(static_cast<std::int16_t>(target.axis(Load::axes.items[i])));
    return declared;
  }

private:
  /// Whether numbers that were written as integers are integers as operands of P.
  template <class P, class... A> static constexpr bool takes_integers() {
    bool all = P::on_integers, any = P::of_position;
    int operand_ = 0;
    const auto look_at = [&](value_kind kind) {
      const value_kind taken = primitive::argument_kind<P>(operand_++);
      all = all && (taken == value_kind::truth || kind == value_kind::integer);
      any = any || taken == value_kind::integer;
    };
    (look_at(A::kind), ...);
    return all || any;
  }
  template <bool Integer, class E> constexpr term lower_number(const E& e) {
    if constexpr (Integer && std::is_same_v<E, whole_literal>)
      return term(target, target.constant(e.value, value_kind::integer));
    else
      return lower(e);
  }

  /// The same term as a node, so that a function of it always has a builder.
  constexpr term named(term t) { return term(target, t.in(target)); }
  /// ... and as a real number.
  constexpr term real(term t) { return term(target, target.as_real(t.in(target))); }

  /// `finish` makes the tensor's declaration from what the expression says of it.
  template <class E, class Finish> constexpr term gather(const E& e, Finish finish) {
    const tensor_decl declared = finish(declaration<typename E::load_type>(tensor_role::input));
    std::uint8_t dimensions = 0;
    node_id positions[3] = {no_node, no_node, no_node};
    int count = 0;
    hana::for_each(e.positions, [&]<class Position>(const Position& each) {
      const int along = target.axis(Position::id);
      for (int i = 0; i < declared.axes.count; ++i)
        if (declared.axes[i] == along) dimensions = static_cast<std::uint8_t>(dimensions | 1U << i);
      positions[count++] = lower_number<true>(each.position).in(target);
    });
    return term(target, target.gather(target.tensor(declared), dimensions, positions));
  }

  template <class State, std::size_t... I>
  constexpr void read_state(const State& s, node_id* ids, std::index_sequence<I...>) {
    ((ids[I] = term(std::get<I>(s)).in(target)), ...);
  }
  template <class Source, std::size_t... I>
  static constexpr auto make_state(Source source, std::index_sequence<I...>) {
    return state(source(static_cast<int>(I))...);
  }
  template <class Operator, class Source> constexpr term project(const Operator& op, Source source) {
    return named(term(op.project(make_state(source, components<Operator>{}))));
  }
  template <class Operator>
  using components = std::make_index_sequence<static_cast<std::size_t>(Operator::components)>;

  template <class Operator, class Over, class... A>
  constexpr int declare_scan(const scanned<Operator, Over, A...>& e) {
    constexpr components<Operator> indices{};
    scan_decl s;
    s.components = Operator::components;
    s.axis = static_cast<std::int16_t>(target.axis(Over::axis_type::id));
    s.axes = axis_bit(s.axis);
    hana::unpack(e.operands, [&](const auto&... operand_) {
      const std::array<term, sizeof...(A)> terms{real(lower(operand_))...};
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        read_state(e.op.lift(terms[I]...), s.element, indices);
      }(std::index_sequence_for<A...>{});
    });
    const auto side = [&](opcode which) {
      return make_state([&](int k) { return term(target, target.placeholder(which, k)); }, indices);
    };
    read_state(e.op.combine(side(opcode::left), side(opcode::right)), s.combined, indices);
    declare_walk(e.over, s);
    for (int k = 0; k < s.components; ++k) {
      s.identity[k] = e.op.identity[static_cast<std::size_t>(k)];
      s.initial[k] = no_node;
      s.axes |= target.result.nodes[s.element[k]].axes;
      if (target.result.nodes[s.combined[k]].axes != 0)
        throw "scandsl: combine may use states and numbers only";
    }
    declare_start(e.op, e.over.start, s);
    return target.scan(s);
  }

  template <class Over> constexpr void declare_walk(const Over& over, scan_decl& s) {
    s.reversed = Over::is_reversed;
    if constexpr (!std::is_same_v<decltype(over.reverse_flag), none>)
      s.reverse_parameter = target.result.nodes[lower(over.reverse_flag).in(target)].target;
    if constexpr (!std::is_same_v<decltype(over.every), none>) s.every = lower(over.every).in(target);
    if constexpr (!std::is_same_v<decltype(over.offsets), none>) {
      tensor_decl declared = declaration<decltype(over.offsets)>(tensor_role::offsets);
      declared.optional = true;
      s.offsets = static_cast<std::int16_t>(target.tensor(declared));
      s.segment_axis = declared.axes[0];
    }
  }

  template <class Operator, class Start>
  constexpr void declare_start(const Operator& op, const Start& start, scan_decl& s) {
    hana::unpack(start, [&]<class... E>(const E&... values) {
      if constexpr (sizeof...(E) > 0) {
        const std::array<term, sizeof...(E)> terms{real(lower(values))...};
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          read_state(op.seed(terms[I]...), s.initial, components<Operator>{});
        }(std::index_sequence_for<E...>{});
        for (int k = 0; k < s.components; ++k) s.axes |= target.result.nodes[s.initial[k]].axes;
        if (s.segment_axis >= 0) s.axes &= ~axis_bit(s.segment_axis);
      }
    });
  }
};

template <class Target, bool Optional, class E>
constexpr void lower_equation(builder& b, const equation<Target, Optional, E>& eq) {
  lowering lower{b};
  const node_id value = b.as_real(lower.lower(eq.value).in(b));
  tensor_decl declared = lower.template declaration<Target>(tensor_role::output);
  declared.optional = Optional;
  if (b.result.find_tensor(declared.id) >= 0)
    throw "scandsl: an output has the name of another tensor; give every output a name of its own";
  b.result.stores.push_back({static_cast<std::int16_t>(b.tensor(declared)), value});
}

/// The first name of each kind of misuse, over all equations; empty names where there is none.
struct name_clashes {
  name role, axes, fallback, rank, output;
};
template <class... Equation> constexpr name_clashes find_clashes() {
  leaf_list uses = leaves_of<decltype(Equation::value)...>();
  const leaf_list inputs = uses;
  name_clashes found;
  (
      [&] {
        using target = typename Equation::target;
        for (int i = inputs.count; i < uses.count; ++i)
          if (uses.items[i].id == target::id) found.output = target::id;
        uses.add(target::id, leaf::role::output, false, target::axes);
      }(),
      ...);
  found.role = uses.first_with([](const leaf& one, const leaf& other) { return one.as != other.as; });
  found.axes = uses.first_with(
      [](const leaf& one, const leaf& other) { return one.is_tensor() && !one.same_axes(other); });
  found.fallback =
      uses.first_with([](const leaf& one, const leaf& other) { return one.optional != other.optional; });
  for (int i = 0; i < uses.count; ++i)
    if (max_tensor_rank < leaf::most_axes && !(uses.items[i].axes[max_tensor_rank] == name{}))
      found.rank = uses.items[i].id;
  return found;
}

/// Whether each name stands for one thing throughout a program.
template <class... Equation> constexpr bool names_fit() {
  constexpr name_clashes found = find_clashes<Equation...>();
  constexpr bool one_output = found.output == name{}, one_role = found.role == name{};
  static_assert(sizeof(check::output_once<one_output, check::shown<found.output>()>) > 0);
  static_assert(sizeof(check::one_role<one_role, check::shown<found.role>()>) > 0);
  constexpr bool one_axis_list = !one_role || !one_output || found.axes == name{};
  static_assert(sizeof(check::one_axis_list<one_axis_list, check::shown<found.axes>()>) > 0);
  constexpr bool one_fallback = !one_role || !one_output || found.fallback == name{};
  static_assert(sizeof(check::one_fallback<one_fallback, check::shown<found.fallback>()>) > 0);
  constexpr bool small = found.rank == name{};
  static_assert(sizeof(check::rank_limit<small, check::shown<found.rank>(), max_tensor_rank>) > 0);
  return one_output && one_role && one_axis_list && one_fallback && small;
}

}  // namespace lowering_detail

/// The program of one or more equations: op<"gated">(out<"y">(b, n) = silu(scan(decayed_sum, over(n), a(n),
/// x(b, n)))). Keep it at namespace scope (inline constexpr auto): executors take it as a template argument.
template <fixed_string N, class... E> constexpr program op(const E&... equations) {
  constexpr bool all_equations = ((sizeof...(E) > 0) && ... && is_equation<E>);
  static_assert(sizeof(check::takes_equations<all_equations>) > 0);
  builder b;
  b.result.id = N.value();
  if constexpr (all_equations)
    if constexpr (lowering_detail::names_fit<E...>()) (lowering_detail::lower_equation(b, equations), ...);
  return b.result;
}
template <class... E> constexpr program op(const E&...) {
  static_assert(sizeof(check::program_has_name<sizeof...(E) == ~0UL>) > 0);
  return program{};
}

namespace check {
void contiguous_along_names_an_axis_that_the_program_lacks();  // not to be had: what a compiler says names it
}
/// The program, of which nearly every call has this axis contiguous: kernels that walk it are compiled for
/// rows alone, kernels that walk another one for lanes that lie side by side. Calls with other layouts run
/// all the same, slowly. Of the program that is run, as along_rows, which is for programs of one axis.
template <class Axis>
  requires is_axis<Axis>
constexpr program contiguous_along(program p, Axis) {
  if (p.find_axis(Axis::id) < 0) check::contiguous_along_names_an_axis_that_the_program_lacks();
  p.contiguous_axis = Axis::id;
  return p;
}

}  // namespace scandsl
