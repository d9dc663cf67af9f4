#pragma once
#include <bit>

#include "scandsl/core/order.hpp"
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

/// The log-sum scan whose component Component (0: m, 1: s) node I is at some step; -1: none.
template <class Group, int I, int Component> constexpr int find_log_sum_of() {
  constexpr node each = node_at<Group, I>;
  if constexpr (each.op == opcode::scan || each.op == opcode::carry)
    if (scan_at<Group, each.target>.log_sum && each.component == Component) return each.target;
  return -1;
}
template <class Group, int I, int Component>
inline constexpr int log_sum_of = find_log_sum_of<Group, I, Component>();

/// The log-sum scan whose s node I is, or by a condition one of two such values; -1: none.
template <class Group, int I> constexpr int find_log_sum_value() {
  constexpr node each = node_at<Group, I>;
  if constexpr (is_apply<primitive::select_op>(each)) {
    constexpr int one = find_log_sum_value<Group, each.operand[1]>();
    return one == find_log_sum_value<Group, each.operand[2]>() ? one : -1;
  } else {
    return log_sum_of<Group, I, 1>;
  }
}

/// The log-sum scan whose m node I is, at some step or the last one; -1: none.
template <class Group, int I>
inline constexpr int log_sum_maximum_of = [] {
  constexpr node each = node_at<Group, I>;
  const bool is_maximum =
      is_scan_value(each) && each.component == 0 && Group::value.scans[each.target].log_sum;
  return is_maximum ? each.target : -1;
}();

/// What is computed otherwise while the m of log-sum Scan stays as it is.
enum class frame_form {
  none,
  exponential,  ///< exp(x - m)
  of_element,   ///< ... of the scan's own element x, m being that of its tile
  vanishing,    ///< 0 if x == -inf else such an exponential times what is finite
  one,          ///< exp_difference(m, m)
  share,        ///< x / s
  logarithm,    ///< log(s)
};
struct framed_node {
  frame_form form = frame_form::none;
  int scan = -1;
};
template <class Group, int I> constexpr framed_node find_framed_node();

/// Whether node I is finite wherever tiles hold frames: a sum in units of a log-sum, which is asked for that.
template <class Group, int I> constexpr bool is_finite_in_frame() {
  constexpr node each = node_at<Group, I>;
  if constexpr (is_apply<primitive::select_op>(each))
    return is_finite_in_frame<Group, each.operand[1]>() && is_finite_in_frame<Group, each.operand[2]>();
  else if constexpr (each.op == opcode::scan || each.op == opcode::carry)
    return Group::value.scans[each.target].scaled_by >= 0;
  return false;
}
/// The log-sum of whose element at -inf a select takes care, though in a frame its exponential does: `when`
/// is the condition, `other` what is selected else; -1: none.
template <class Group, int When, int Other> constexpr int find_vanishing() {
  constexpr node when = node_at<Group, When>, other = node_at<Group, Other>;
  if constexpr (is_apply<primitive::equal_op>(when) && is_apply<primitive::multiply_op>(other)) {
    constexpr node limit = node_at<Group, when.operand[1]>;
    constexpr framed_node left = find_framed_node<Group, other.operand[0]>(),
                          right = find_framed_node<Group, other.operand[1]>();
    constexpr bool is_limit =
        limit.op == opcode::constant && limit.value < 0 && limit.value == 2 * limit.value;
    constexpr framed_node exponential = left.form == frame_form::of_element ? left : right;
    if constexpr (is_limit && exponential.form == frame_form::of_element)
      if (Group::value.scans[exponential.scan].element[0] == when.operand[0] &&
          is_finite_in_frame<Group, other.operand[left.form == frame_form::of_element ? 1 : 0]>())
        return exponential.scan;
  }
  return -1;
}
template <class Group, int I> constexpr framed_node find_framed_node() {
  constexpr node each = node_at<Group, I>;
  if constexpr (is_apply<primitive::exp_op>(each)) {
    constexpr node gap = node_at<Group, each.operand[0]>;
    if constexpr (is_apply<primitive::subtract_op>(gap)) {
      constexpr int scan = log_sum_maximum_of<Group, gap.operand[1]>;
      if constexpr (scan >= 0)
        return {node_at<Group, gap.operand[1]>.op != opcode::last &&
                        Group::value.scans[scan].element[0] == gap.operand[0]
                    ? frame_form::of_element
                    : frame_form::exponential,
                scan};
    }
  } else if constexpr (is_apply<primitive::select_op>(each)) {
    constexpr node zero = node_at<Group, each.operand[1]>;
    if constexpr (zero.op == opcode::constant && zero.value == 0.0)
      return {frame_form::vanishing, find_vanishing<Group, each.operand[0], each.operand[2]>()};
  } else if constexpr (is_apply<primitive::exp_difference_op>(each)) {
    constexpr int left = log_sum_of<Group, each.operand[0], 0>;
    return {frame_form::one, left == log_sum_of<Group, each.operand[1], 0> ? left : -1};
  } else if constexpr (is_apply<primitive::divide_op>(each)) {
    return {frame_form::share, find_log_sum_value<Group, each.operand[1]>()};
  } else if constexpr (is_apply<primitive::log_op>(each)) {
    return {frame_form::logarithm, find_log_sum_value<Group, each.operand[0]>()};
  }
  return {};
}

/// Whether a stage's memory holds the m of log-sum Scan as it is.
template <class Memory, int Scan> constexpr bool holds_in_frame() {
  if constexpr (Scan >= 0 && requires { Memory::template in_frame<0>; })
    return Memory::template in_frame<Scan>;
  else
    return false;
}

/// Whether a stage's memory has some nodes already, and whether it has node I.
template <class Memory> constexpr bool remembers_some() {
  if constexpr (requires { Memory::remembers_some; })
    return Memory::remembers_some;
  else
    return requires { Memory::template remembered_at<0>; };
}
template <class Memory, int I> constexpr bool remembers() {
  if constexpr (remembers_some<Memory>())
    return Memory::template remembered_at<I> >= 0;
  else
    return false;
}

/// Whether what a stage computes for nodes alone that its memory has already is left out. (A compiler sees
/// that, too, where nothing is fetched for them; but it takes time.)
template <class Memory> constexpr bool leaves_out_unread() {
  if constexpr (requires { Memory::leaves_out; })
    return Memory::leaves_out;
  else
    return false;
}

/// Whether node I divides integers by a parameter or an element of a table that is always bound: numbers
/// known at launch.
template <class Group, int I> constexpr bool find_divides_by_launch_number() {
  constexpr node each = node_at<Group, I>;
  if constexpr (is_apply<primitive::floor_divide_op>(each) || is_apply<primitive::modulo_op>(each)) {
    constexpr node divisor = node_at<Group, each.operand[1]>;
    return divisor.op == opcode::parameter ||
           (divisor.op == opcode::gather && tensor_at<Group, divisor.target>.role == tensor_role::table &&
            !tensor_at<Group, divisor.target>.optional);
  }
  return false;
}
template <class Group, int I>
inline constexpr bool divides_by_launch_number = find_divides_by_launch_number<Group, I>();

/// Whether a stage's memory divides integers x by node I's divisor:
/// memory.floor_quotient(index_constant<I>{}, x, position...), given where in its table the divisor is.
template <class Memory> constexpr bool knows_divisors() {
  if constexpr (requires { Memory::knows_divisors; })
    return Memory::knows_divisors;
  else
    return false;
}

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
  /// the value of node I, memory.gather(index_constant<I>, positions...) an element of its tensor,
  /// memory.last(scan, component) a final state, and memory.advance(scan, elements, before, after) takes one
  /// step of a scan and calls those two with its states before and after the step. For log-sums (m, s) whose
  /// m stays as it is (memory.in_frame, if there is such a constant), memory.exp_in_frame(x, m) gives exp(x -
  /// m), memory.exp_of_element<scan>(x, m) that of the scan's element at this step, memory.share(x, s) x / s,
  /// and memory.log_of_sum(s) log(s). memory.remembered<I>() gives a node that
  /// need not be computed again (memory.remembered_at says which); with leaves_out, nor is what it is made
  /// of. With takes_branches what a uniform select leaves out is skipped, else both sides are computed.
  template <class T, class V, class Memory>
  SCANDSL_HD static void evaluate(uniforms<T>& u, variables<V>& v, Memory&& memory) {
    for_each_index(instructions{}, [&]<int I>(index_constant<I>) {
      if constexpr (I < 0) {
        advance<-1 - I>(u, v, memory);
      } else if constexpr (reads<std::remove_cvref_t<Memory>, I>()) {
        if (!std::remove_cvref_t<Memory>::takes_branches || wanted<I>(u)) compute<I>(u, v, memory);
      }
    });
  }

  /// The same for several lanes, none of which takes a step of a scan: node by node, so that what the lanes
  /// read is on its way together. memory.of_lane(lane) is one lane's memory; memory.read(index_constant<I>{},
  /// values) and memory.gather(index_constant<I>{}, positions, values) read for all of them.
  template <class T, class V, int Lanes, class Memory>
  SCANDSL_HD static void evaluate_lanes(uniforms<T>& u, variables<V> (&v)[Lanes], Memory&& memory) {
    // What is read comes first, so that it is on its way together; integers last, which are waited for where
    // they are read, to be converted.
    const auto all = [&]<int Turn>(index_constant<Turn>) {
      for_each_index(instructions{}, [&]<int I>(index_constant<I>) {
        if constexpr (I >= 0) {
          if constexpr (Turn == turn_of<I>)
            if (!std::remove_cvref_t<Memory>::takes_branches || wanted<I>(u)) compute_lanes<I>(u, v, memory);
        }
      });
    };
    all(index_constant<0>{});
    all(index_constant<1>{});
    all(index_constant<2>{});
  }

private:
  template <int I>
  static constexpr int turn_of = from<I> != source::memory       ? 2
                                 : is_integer(node_at<Group, I>) ? 1
                                                                 : 0;
  /// Whether component k of scan s's elements is wanted: of a memory with wants_element(s, k), which then has
  /// no other use for what the stage computes.
  template <class Memory> static constexpr bool wants_element(int s, int k) {
    if constexpr (requires { Memory::wants_element(s, k); })
      return Memory::wants_element(s, k);
    else
      return true;
  }
  /// Of the sine and the cosine of one product, computed by this stage under one guard, the other; -1: none.
  template <int I>
  static constexpr int twin_of = [] {
    const node each = node_at<Group, I>;
    int found = -1;
    for (int i = 0; i < Group::value.nodes.count; ++i) {
      const node& other = Group::value.nodes[i];
      const bool are_twins =
          (is_apply<primitive::sin_of_product_op>(each) && is_apply<primitive::cos_of_product_op>(other)) ||
          (is_apply<primitive::cos_of_product_op>(each) && is_apply<primitive::sin_of_product_op>(other));
      if (are_twins && other.operand[0] == each.operand[0] && other.operand[1] == each.operand[1] &&
          stage_of<Group, Kind, Index>.from[i] == source::computed &&
          Group::plan.guards[i] == guard_at<Group, I>)
        found = i;
    }
    return found;
  }();
  /// Which nodes the stage reads, by number, where Memory remembers some.
  template <class Memory>
  static constexpr std::array<bool, max_nodes> is_read = [] {
    std::array<bool, max_nodes> read{};
    const auto mark = [&](node_id i) {
      if (i != no_node) read[static_cast<std::size_t>(i)] = true;
    };
    if constexpr (!requires { Memory::wants_element(0, 0); }) {
      for (const std::int16_t store : stage_of<Group, Kind, Index>.stores)
        mark(Group::value.stores[store].value);
      for (const node_id kept : stage_of<Group, Kind, Index>.keeps) mark(kept);
    }
    for (const std::int16_t each : stage_of<Group, Kind, Index>.instructions)
      if (each < 0)
        for (int k = 0; k < Group::value.scans[-1 - each].components; ++k)
          if (wants_element<Memory>(-1 - each, k)) mark(Group::value.scans[-1 - each].element[k]);
    for_each_index(std::make_integer_sequence<int, Group::value.nodes.count>{},
                   [&]<int N>(index_constant<N>) {
                     constexpr int i = Group::value.nodes.count - 1 - N;
                     if constexpr (from<i> == source::computed && !remembers<Memory, i>())
                       if (read[static_cast<std::size_t>(i)]) {
                         for (const node_id o : Group::value.nodes[i].operand) mark(o);
                         if constexpr (twin_of<i> >= 0) mark(static_cast<node_id>(twin_of<i>));
                       }
                   });
    return read;
  }();

  template <class Memory, int I> static constexpr bool reads() {
    if constexpr (leaves_out_unread<Memory>())
      return is_read<Memory>[I];
    else
      return true;
  }

  template <int I, class T, class V, int Lanes, class Memory>
  SCANDSL_HD static void compute_lanes(uniforms<T>& u, variables<V> (&v)[Lanes], Memory& memory) {
    constexpr node each = node_at<Group, I>;
    using lanes = std::make_integer_sequence<int, Lanes>;
    if constexpr (from<I> != source::computed) {
      value_of_node<Group, I, V> values[Lanes];
      memory.read(index_constant<I>{}, values);
      for_each_index(lanes{}, [&](int lane) { slot<I>(v[lane]) = values[lane]; });
    } else if constexpr (each.op == opcode::gather) {
      typename arithmetic<V>::integer positions[larger(1, positions_of<I>)][Lanes];
      for_each_index(std::make_integer_sequence<int, positions_of<I>>{}, [&]<int P>(index_constant<P>) {
        for_each_index(lanes{}, [&](int lane) { positions[P][lane] = get<each.operand[P]>(u, v[lane]); });
      });
      value_of_node<Group, I, V> values[Lanes];
      memory.gather(index_constant<I>{}, positions, values);
      for_each_index(lanes{}, [&](int lane) { slot<I>(v[lane]) = values[lane]; });
    } else {
      for_each_index(lanes{}, [&](int lane) {
        auto of_lane = memory.of_lane(lane);
        compute<I>(u, v[lane], of_lane);
      });
    }
  }

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
    constexpr auto framed = find_framed_node<Group, I>();
    if constexpr (from<I> == source::computed && remembers<std::remove_cvref_t<Memory>, I>()) {
      slot<I>(v) = memory.template remembered<I>();
    } else if constexpr (from<I> == source::computed &&
                         holds_in_frame<std::remove_cvref_t<Memory>, framed.scan>()) {
      if constexpr (framed.form == frame_form::exponential) {
        constexpr node gap = node_at<Group, each.operand[0]>;
        slot<I>(v) = memory.exp_in_frame(get<gap.operand[0]>(u, v), get<gap.operand[1]>(u, v));
      } else if constexpr (framed.form == frame_form::of_element) {
        constexpr node gap = node_at<Group, each.operand[0]>;
        slot<I>(v) =
            memory.template exp_of_element<framed.scan>(get<gap.operand[0]>(u, v), get<gap.operand[1]>(u, v));
      } else if constexpr (framed.form == frame_form::vanishing) {
        slot<I>(v) = get<each.operand[2]>(u, v);
      } else if constexpr (framed.form == frame_form::share) {
        slot<I>(v) = memory.share(get<each.operand[0]>(u, v), get<each.operand[1]>(u, v));
      } else if constexpr (framed.form == frame_form::logarithm) {
        slot<I>(v) = memory.log_of_sum(get<each.operand[0]>(u, v));
      } else {
        slot<I>(v) = V(1);
      }
    } else if constexpr (from<I> != source::computed) {
      slot<I>(v) = memory.read(index_constant<I>{});
    } else if constexpr (each.op == opcode::last) {
      slot<I>(v) = memory.last(index_constant<each.target>{}, index_constant<each.component>{});
    } else if constexpr (each.op == opcode::gather) {
      slot<I>(v) = gather<I>(u, v, memory, std::make_integer_sequence<int, positions_of<I>>{});
    } else if constexpr (twin_of<I> >= 0) {
      if constexpr (I < twin_of<I>) {
        using m = arithmetic<V>;
        const V half_turns = m::half_turns_of_product(get<each.operand[0]>(u, v), get<each.operand[1]>(u, v));
        constexpr int sine = is_apply<primitive::sin_of_product_op>(each) ? I : twin_of<I>,
                      cosine = I + twin_of<I> - sine;
        slot<sine>(v) = m::sinpi(half_turns);
        slot<cosine>(v) = m::cospi(half_turns);
      }
    } else if constexpr (knows_divisors<std::remove_cvref_t<Memory>>() && has_divisor_here<I>) {
      const auto x = get<each.operand[0]>(u, v);
      const auto quotient =
          divide<I>(u, v, memory, std::make_integer_sequence<int, positions_of<each.operand[1]>>{});
      if constexpr (is_apply<primitive::modulo_op>(each))
        slot<I>(v) =
            arithmetic<typename arithmetic<V>::integer>::rest(x, get<each.operand[1]>(u, v), quotient);
      else
        slot<I>(v) = quotient;
    } else if constexpr (is_apply<primitive::select_op>(each)) {
      if constexpr (is_uniform<each.operand[0]>)
        slot<I>(v) = slot<each.operand[0]>(u) ? get<each.operand[1]>(u, v) : get<each.operand[2]>(u, v);
      else
        slot<I>(v) = apply_node<Group, I, V>([&]<int J>(index_constant<J>) { return get<J>(u, v); });
    } else if constexpr (each.op == opcode::apply) {
      slot<I>(v) = apply_node<Group, I, V>([&]<int J>(index_constant<J>) { return get<J>(u, v); });
    }
  }

  /// How many positions are computed of a gather.
  template <int I>
  static constexpr int positions_of =
      node_at<Group, I>.op == opcode::gather ? std::popcount(node_at<Group, I>.function) : 0;
  template <int I, class T, class V, class Memory, int... P>
  SCANDSL_HD static auto gather(uniforms<T>& u, variables<V>& v, Memory& memory,
                                std::integer_sequence<int, P...>) {
    return memory.gather(index_constant<I>{}, get<node_at<Group, I>.operand[P]>(u, v)...);
  }

  /// Whether node I's divisor is known at launch, and here where in its table it is.
  template <int I>
  static constexpr bool has_divisor_here = [] {
    if constexpr (divides_by_launch_number<Group, I>) {
      constexpr int divisor = node_at<Group, I>.operand[1];
      return node_at<Group, divisor>.op == opcode::parameter || from<divisor> == source::computed;
    }
    return false;
  }();
  template <int I, class T, class V, class Memory, int... P>
  SCANDSL_HD static auto divide(uniforms<T>& u, variables<V>& v, Memory& memory,
                                std::integer_sequence<int, P...>) {
    constexpr node each = node_at<Group, I>;
    return memory.floor_quotient(index_constant<I>{}, get<each.operand[0]>(u, v),
                                 get<node_at<Group, each.operand[1]>.operand[P]>(u, v)...);
  }

  template <int S, class T, class V, class Memory>
  SCANDSL_HD static void advance(uniforms<T>& u, variables<V>& v, Memory& memory) {
    constexpr scan_decl scan = scan_at<Group, S>;
    std::array<V, static_cast<std::size_t>(scan.components)> element{};
    for_each_index(std::make_integer_sequence<int, scan.components>{}, [&]<int K>(index_constant<K>) {
      if constexpr (from<scan.element[K]> != source::unused &&
                    wants_element<std::remove_cvref_t<Memory>>(S, K))
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
