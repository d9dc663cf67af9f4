#pragma once
#include "scandsl/exec/evaluate.hpp"
#include "scandsl/pass/schedule.hpp"

/// One stage of a schedule at one position: which nodes are computed, in which order. Shared by all
/// executors.
namespace scandsl {

enum class stage_kind { boundary, sweep, aggregate };

template <class Group, int I> inline constexpr guard guard_at = Group::plan.guards[I];
/// The schedule of a stage, as a constant of its own.
template <class Group, stage_kind Kind, int Index>
inline constexpr stage_schedule stage_of = Kind == stage_kind::boundary ? Group::plan.boundary[Index]
                                           : Kind == stage_kind::sweep  ? Group::plan.sweep[Index]
                                                                        : Group::plan.aggregate[Index];

/// Whether node I is the s of a log-sum (m, s), or one of two such by a condition.
template <class Group, int I> constexpr bool find_log_sum_value() {
  constexpr node each = node_at<Group, I>;
  if constexpr (each.op == opcode::scan || each.op == opcode::carry)
    return scan_at<Group, each.target>.log_sum && each.component == 1;
  else if constexpr (is_apply<primitive::select_op>(each))
    return find_log_sum_value<Group, each.operand[1]>() && find_log_sum_value<Group, each.operand[2]>();
  else
    return false;
}
template <class Group, int I> inline constexpr bool is_log_sum_value = find_log_sum_value<Group, I>();

/// `Group` has a program `value` and its schedule `plan`.
template <class Group, stage_kind Kind, int Index> struct stage {
  struct uniform_nodes {
    static constexpr node_list list = [] {
      node_list nodes;
      for (int i = 0; i < Group::value.nodes.count; ++i)
        if (stage_of<Group, Kind, Index>.from[i] == source::uniform) nodes.push_back(i);
      return nodes;
    }();
  };
  struct variable_nodes {
    static constexpr node_list list = [] {
      node_list nodes;
      for (int i = 0; i < Group::value.nodes.count; ++i)
        if (stage_of<Group, Kind, Index>.from[i] != source::uniform &&
            stage_of<Group, Kind, Index>.from[i] != source::unused)
          nodes.push_back(i);
      return nodes;
    }();
  };
  struct instruction_list {
    static constexpr node_list list = [] {
      node_list all;
      for (const std::int16_t each : stage_of<Group, Kind, Index>.instructions) all.push_back(each);
      return all;
    }();
  };
  using instructions = sequence_of<instruction_list>;
  /// Values that come from constants and parameters alone: numbers, the same for every lane and step.
  template <class T> using uniforms = node_slots<Group, T, sequence_of<uniform_nodes>>;
  template <class V> using variables = node_slots<Group, V, sequence_of<variable_nodes>>;

  template <int I> static constexpr source from = stage_of<Group, Kind, Index>.from[I];
  template <int I> static constexpr bool is_uniform = from<I> == source::uniform;

  /// The components of scan S that a walk of this stage carries; a stretch that others combine needs all.
  template <int S>
  static constexpr unsigned live_components = [] {
    unsigned live = 0;
    for (int k = 0; k < Group::value.scans[S].components; ++k)
      if (Kind == stage_kind::aggregate || Group::plan.live_component[S][k]) live |= 1U << k;
    return live;
  }();

  template <class T> SCANDSL_HD static uniforms<T> evaluate_uniforms(const T* parameters) {
    uniforms<T> u;
    for_each_index(sequence_of<uniform_nodes>{},
                   [&]<int I>(index_constant<I>) { slot<I>(u) = uniform_value<Group, I>(parameters); });
    return u;
  }

  template <int I, class T, class V>
  SCANDSL_HD static value_of_node<Group, I, V> get(uniforms<T>& u, variables<V>& v) {
    if constexpr (is_uniform<I>)
      return value_of_node<Group, I, V>(slot<I>(u));
    else
      return slot<I>(v);
  }

  /// Computes the stage's nodes. `memory` gives what is not computed here: memory.read(index_constant<I>)
  /// the value of node I, memory.last(scan, component) a final state, and memory.advance(scan, elements,
  /// before, after) takes one step of a scan and calls those two with its states before and after the step;
  /// memory.log_of_sum(s), if there is such a function, the logarithm of a log-sum's s.
  /// With takes_branches what a uniform select leaves out is skipped, else both sides are computed.
  template <class T, class V, class Memory>
  SCANDSL_HD static void evaluate(uniforms<T>& u, variables<V>& v, Memory&& memory) {
    for_each_index(instructions{}, [&]<int I>(index_constant<I>) {
      if constexpr (I < 0) {
        advance<-1 - I>(u, v, memory);
      } else {
        if (!std::remove_cvref_t<Memory>::takes_branches || wanted<I>(u)) compute<I>(u, v, memory);
      }
    });
  }

private:
  /// Whether node I is wanted at all: see schedule::guards.
  template <int I, class T> SCANDSL_HD static bool wanted(uniforms<T>& u) {
    constexpr guard g = guard_at<Group, I>;
    if constexpr (g.condition == no_node)
      return true;
    else
      return slot<g.condition>(u) == g.when;
  }

  template <int I, class T, class V, class Memory>
  SCANDSL_HD static void compute(uniforms<T>& u, variables<V>& v, Memory& memory) {
    constexpr node each = node_at<Group, I>;
    if constexpr (from<I> != source::computed) {
      slot<I>(v) = memory.read(index_constant<I>{});
    } else if constexpr (each.op == opcode::last) {
      slot<I>(v) = memory.last(index_constant<each.target>{}, index_constant<each.component>{});
    } else if constexpr (is_apply<primitive::select_op>(each)) {
      if constexpr (is_uniform<each.operand[0]>)
        slot<I>(v) = slot<each.operand[0]>(u) ? get<each.operand[1]>(u, v) : get<each.operand[2]>(u, v);
      else
        slot<I>(v) = apply_node<Group, I>([&]<int J>(index_constant<J>) { return get<J>(u, v); });
    } else if constexpr (each.op == opcode::apply) {
      if constexpr (is_apply<primitive::log_op>(each) && requires { memory.log_of_sum(V()); }) {
        if constexpr (is_log_sum_value<Group, each.operand[0]>)
          slot<I>(v) = memory.log_of_sum(get<each.operand[0]>(u, v));
        else
          slot<I>(v) = primitive::log_op::value(get<each.operand[0]>(u, v));
      } else {
        slot<I>(v) = apply_node<Group, I>([&]<int J>(index_constant<J>) { return get<J>(u, v); });
      }
    }
  }

  template <int S, class T, class V, class Memory>
  SCANDSL_HD static void advance(uniforms<T>& u, variables<V>& v, Memory& memory) {
    constexpr scan_decl scan = scan_at<Group, S>;
    std::array<V, static_cast<std::size_t>(scan.components)> element{};
    for_each_index(std::make_integer_sequence<int, scan.components>{}, [&]<int K>(index_constant<K>) {
      if constexpr (from<scan.element[K]> != source::unused)
        std::get<K>(element) = get<scan.element[K]>(u, v);
    });
    memory.advance(
        index_constant<S>{}, element, [&](const auto& state) { assign<S, opcode::carry>(state, v); },
        [&](const auto& state) { assign<S, opcode::scan>(state, v); });
  }
  template <int S, opcode Which, class States, class V>
  SCANDSL_HD static void assign(const States& state, variables<V>& v) {
    for_each_index(sequence_of<variable_nodes>{}, [&]<int I>(index_constant<I>) {
      constexpr node each = node_at<Group, I>;
      if constexpr (each.op == Which && each.target == S && from<I> == source::computed)
        slot<I>(v) = std::get<each.component>(state);
    });
  }
};

}  // namespace scandsl
