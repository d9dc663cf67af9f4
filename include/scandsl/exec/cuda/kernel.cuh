#pragma once
#include <tuple>

#include "scandsl/exec/cuda/approximate.cuh"
#include "scandsl/exec/cuda/arguments.hpp"
#include "scandsl/exec/cuda/float64.cuh"
#include "scandsl/exec/cuda/memory.cuh"
#include "scandsl/exec/stage.hpp"
#include "scandsl/pass/reduction.hpp"
#include "scandsl/pass/telescope.hpp"

/// One kernel program with its types: what the schedules are templates over, and the states of its scans.
namespace scandsl::cuda_detail {

/// The number of computed positions in tensors before T, and in the first `Dimensions` dimensions of T.
template <class Group, int T, int Dimensions>
inline constexpr int computed_before = [] {
  int count = 0;
  for (int t = 0; t <= T && t < Group::value.tensors.count; ++t)
    for (int i = 0; i < (t < T ? Group::value.tensors[t].axes.count : Dimensions); ++i)
      if (Group::value.tensors[t].place[i] == tensor_decl::computed) ++count;
  return count;
}();

/// `Group` has a program `value` and its schedule `plan`; C is the arithmetic, T the element type of each
/// tensor (any_type: looked up at run time; always so where a tensor is read or written once a lane only).
template <class Group, class C, class... T> struct typed_kernel {
  using group = Group;
  using compute = C;
  template <int I>
  using element = std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<T..., any_type>>;
  static constexpr int tensors = Group::value.tensors.count;
  static_assert(sizeof...(T) == static_cast<std::size_t>(tensors));
  /// The kernel for tiles that hold frames (pass/telescope.hpp), and the one for all.
  using framed =
      typed_kernel<std::conditional_t<std::is_same_v<C, double>, Group, typename Group::framed>, C, T...>;
  using robust = typed_kernel<typename Group::robust, C, T...>;
  static constexpr int computed = computed_before<Group, tensors, 0>;
  using arguments = kernel_arguments<tensors, computed, C>;
};

// ---- facts of a program and its schedule, as constants that device code can read

template <class Group> inline constexpr int sweep_count = Group::plan.sweeps;
template <class Group> inline constexpr int scan_count = Group::value.scans.count;
template <class Group, int S> inline constexpr int rounds_of = Group::plan.rounds[S];
/// The log-sum in units of whose s a scan's states are, inside a tile; -1: none.
template <class Group, int Scan> inline constexpr int scale_of = Group::value.scans[Scan].scaled_by;
/// Whether a scan is in units of a sum of sweep s.
template <class Group> constexpr bool scales_others(int s) {
  for (const scan_decl& scan : Group::value.scans)
    if (scan.scaled_by >= 0 && Group::plan.sweep_of_scan[scan.scaled_by] == s) return true;
  return false;
}
template <class Group, int S> inline constexpr bool sweep_has_scans = Group::plan.sweep[S].has_scans;
template <class Group, int Scan> inline constexpr int sweep_of = Group::plan.sweep_of_scan[Scan];
template <class Group, int Scan> inline constexpr int round_of = Group::plan.round_of_scan[Scan];
template <class Group, int Scan> inline constexpr int components_of = Group::value.scans[Scan].components;
/// Whether the scan's state is (m, s) and m may be held fixed over a tile (the tile's frame).
template <class Group, int Scan> inline constexpr bool is_log_sum = Group::value.scans[Scan].log_sum;
template <class Group, int Scan, int K>
inline constexpr double identity_of = Group::value.scans[Scan].identity[K];

/// Whether a walk in order needs the component: what is read, and what its combine reads.
template <class Group, int Scan, int K> inline constexpr bool is_live = Group::plan.live_component[Scan][K];

/// Whether last values of the scans of sweep s are read.
template <class Group> constexpr bool find_last(int s) {
  for (const node& n : Group::value.nodes)
    if (n.op == opcode::last && Group::plan.sweep_of_scan[n.target] == s) return true;
  return false;
}
template <class Group, int S = 0> inline constexpr bool uses_last = find_last<Group>(S);

/// Whether sweep s reads nothing of its scans but their last values.
template <class Group> constexpr bool find_only_reduces(int s) {
  for (int i = 0; i < Group::value.nodes.count; ++i) {
    const node& n = Group::value.nodes[i];
    if ((n.op == opcode::scan || n.op == opcode::carry) && Group::plan.sweep_of_scan[n.target] == s &&
        (Group::plan.sweep[s].from[i] != source::unused ||
         Group::plan.aggregate[s].from[i] != source::unused))
      return false;
  }
  return find_last<Group>(s);
}
template <class Group, int S> inline constexpr bool only_reduces = find_only_reduces<Group>(S);

/// Whether store i is made behind the last sweep.
template <class Group> constexpr bool stored_once(int i) {
  for (const std::int16_t store : Group::plan.boundary[Group::plan.sweeps].stores)
    if (store == i) return true;
  return false;
}

constexpr bool walks_along(const schedule& plan, axis_mask axes) {
  return plan.axis < 0 ? axes != 0 : (axes >> plan.axis & 1U) != 0;
}

/// Whether tensor T is the position along the walked axis, the same in all lanes.
template <class Group, int T>
inline constexpr bool counts_the_walk = Group::value.tensors[T].role == tensor_role::positions &&
                                        Group::value.tensors[T].axes[0] == Group::plan.axis;

/// Whether sweep s reads node i, a load, from memory.
template <class Group> constexpr bool sweep_reads(int s, int i) {
  return Group::plan.sweep[s].from[i] == source::memory || Group::plan.aggregate[s].from[i] == source::memory;
}

/// Whether sweep s uses scans' values of the earlier sweep q at its own steps. They are not stored: the sweep
/// goes through every tile of q again, from the carry that q had there.
template <class Group> constexpr bool replays(int s, int q) {
  if (q >= s) return false;
  for (int i = 0; i < Group::value.nodes.count; ++i) {
    if (Group::plan.sweep[s].from[i] != source::scratch &&
        Group::plan.aggregate[s].from[i] != source::scratch)
      continue;
    const int from = Group::plan.sweep_of_scan[Group::value.nodes[i].target];
    if (from == q || replays<Group>(from, q)) return true;
  }
  return false;
}
template <class Group> constexpr bool replays_any(int s) {
  for (int q = 0; q < s; ++q)
    if (replays<Group>(s, q)) return true;
  return false;
}
template <class Group> constexpr bool is_replayed(int q) {
  for (int s = q + 1; s < Group::plan.sweeps; ++s)
    if (replays<Group>(s, q)) return true;
  return false;
}
/// Whether sweep S goes the other way than the first: always, never, or as flags say at run time.
template <class Group, int S>
inline constexpr bool heading_is_known =
    !sweep_has_scans<Group, S> ||
    Group::plan.sweep[S].reverse_parameter == Group::plan.sweep[0].reverse_parameter;
template <class Group, int S>
inline constexpr bool goes_back = sweep_has_scans<Group, S> && heading_is_known<Group, S> &&
                                  Group::plan.sweep[S].reversed != Group::plan.sweep[0].reversed;

/// Calls f(constant) with whether sweep S goes the other way than the first.
template <class Group, int S, class A, class F>
__device__ __forceinline__ void with_heading(const A& a, F&& f) {
  if constexpr (heading_is_known<Group, S>)
    f(std::bool_constant<goes_back<Group, S>>{});
  else if (a.reversed[S] != a.reversed[0])
    f(std::true_type{});
  else
    f(std::false_type{});
}

/// Whether node i, which sweep s reads, is read by elements of its own each time: integers are.
template <class Group> constexpr bool reads_in_place(int s, int i) {
  return Group::value.nodes[i].op == opcode::load && is_integer(Group::value.nodes[i]) &&
         sweep_reads<Group>(s, i);
}
template <class Group> constexpr bool gathers(int s, int i) {
  return Group::value.nodes[i].op == opcode::gather && (Group::plan.sweep[s].from[i] == source::computed ||
                                                        Group::plan.aggregate[s].from[i] == source::computed);
}

template <class Group, int T> constexpr bool find_walked() {
  for (int s = 0; s < Group::plan.sweeps; ++s) {
    for (int i = 0; i < Group::value.nodes.count; ++i) {
      const node& n = Group::value.nodes[i];
      if (n.op == opcode::load && n.target == T && sweep_reads<Group>(s, i) && !is_integer(n) &&
          walks_along(Group::plan, n.axes))
        return true;
    }
    for (const std::int16_t store : Group::plan.sweep[s].stores)
      if (Group::value.stores[store].tensor == T) return true;
  }
  return false;
}
/// Whether the sweeps read or write tensor T at every step.
template <class Group, int T> inline constexpr bool is_walked = find_walked<Group, T>();

/// Whether the types of what the sweeps of kernel K read or write at every step are known when compiling.
template <class K>
inline constexpr bool knows_types = [] {
  bool known = true;
  for_each_index(std::make_integer_sequence<int, K::tensors>{}, [&]<int T>(index_constant<T>) {
    if constexpr (is_walked<typename K::group, T>)
      known = known && !std::is_same_v<typename K::template element<T>, any_type>;
  });
  return known;
}();

/// One sweep, whose scans do not wait for each other, over tensors of known types.
template <class K>
inline constexpr bool scans_once = knows_types<K> && sweep_count<typename K::group> == 1 &&
                                   scan_count<typename K::group> > 0 && rounds_of<typename K::group, 0> == 1;

/// ... and whose states its gradient may want.
template <class K>
inline constexpr bool leaves_carries = scans_once<K> && gradient_has_states(K::group::value);

template <class Group, int T> constexpr bool find_placed() {
  for (int s = 0; s < Group::plan.sweeps; ++s)
    for (int i = 0; i < Group::value.nodes.count; ++i)
      if (Group::value.nodes[i].target == T &&
          (reads_in_place<Group>(s, i) || gathers<Group>(s, i) ||
           (Group::value.nodes[i].op == opcode::load && sweep_reads<Group>(s, i))))
        return true;
  return is_walked<Group, T>;
}
template <class Group, int T> inline constexpr bool is_placed = find_placed<Group, T>();
template <class Group> struct placed_tensors {  ///< as numbers: those whose place sweeps need to know
  static constexpr node_list list = [] {
    node_list tensors;
    for_each_index(std::make_integer_sequence<int, Group::value.tensors.count>{},
                   [&]<int T>(index_constant<T>) {
                     if (is_placed<Group, T>) tensors.push_back(T);
                   });
    return tensors;
  }();
};

/// Lists of nodes, each as a type with a member `list`.
inline constexpr int all_sweeps = -1;
template <class Group, int S> struct walked_loads {  ///< read where sweep S goes
  static constexpr node_list list = [] {
    node_list nodes;
    for (int i = 0; i < Group::value.nodes.count; ++i)
      for (int s = 0; s < Group::plan.sweeps; ++s)
        if ((S == all_sweeps || s == S || replays<Group>(S, s)) && sweep_reads<Group>(s, i) &&
            !reads_in_place<Group>(s, i) && walks_along(Group::plan, Group::value.nodes[i].axes)) {
          nodes.push_back(i);
          break;
        }
    return nodes;
  }();
};
template <class Group> struct still_loads {  ///< read in sweeps, but the same at every step
  static constexpr node_list list = [] {
    node_list nodes;
    for (int i = 0; i < Group::value.nodes.count; ++i)
      for (int s = 0; s < Group::plan.sweeps; ++s)
        if (sweep_reads<Group>(s, i) && !walks_along(Group::plan, Group::value.nodes[i].axes)) {
          nodes.push_back(i);
          break;
        }
    return nodes;
  }();
};
template <class Group, int B>
struct tensors_at_boundary {  ///< as numbers: those that boundary B reads or writes
  static constexpr node_list list = [] {
    bool used[max_tensors] = {};
    for (int i = 0; i < Group::value.nodes.count; ++i) {
      const node& n = Group::value.nodes[i];
      const source from = Group::plan.boundary[B].from[i];
      if (n.op == opcode::load && from == source::memory) used[n.target] = true;
      if (n.op == opcode::gather && from == source::computed) used[n.target] = true;
    }
    for (const std::int16_t store : Group::plan.boundary[B].stores)
      used[Group::value.stores[store].tensor] = true;
    node_list tensors;
    for (int t = 0; t < Group::value.tensors.count; ++t)
      if (used[t]) tensors.push_back(t);
    return tensors;
  }();
};
template <class Group> struct kept_nodes {  ///< computed at a boundary, used later
  static constexpr node_list list = [] {
    node_list nodes;
    for (int b = 0; b <= Group::plan.sweeps; ++b)
      for (const node_id kept : Group::plan.boundary[b].keeps) nodes.push_back(kept);
    return nodes;
  }();
};
template <class Group> struct replayed_nodes {  ///< computed in one sweep, used in a later one
  static constexpr node_list list = [] {
    node_list nodes;
    for (int s = 0; s < Group::plan.sweeps; ++s)
      for (const node_id kept : Group::plan.sweep[s].keeps) nodes.push_back(kept);
    return nodes;
  }();
};
/// Elements of scans that their fold leaves in registers for the walk through the tile, which else would
/// compute the sums in whose units they are a third time.
template <class Group, int S> struct remembered_nodes {
  static constexpr node_list list = [] {
    node_list nodes;
    for (int i = 0; i < Group::value.scans.count; ++i)
      if (Group::plan.sweep_of_scan[i] == S && Group::value.scans[i].scaled_by >= 0)
        nodes.push_back(Group::value.scans[i].element[0]);
    return nodes;
  }();
};
/// Whether a node is an exponential, a sine or the like.
constexpr bool is_costly(const node& n) {
  return n.op == opcode::apply && n.function >= primitive::index<primitive::exp_op> && !is_integer(n);
}
/// Nodes with exponentials and the like that no scan comes before, where the first sweep folds with them and
/// later ones need them again: the outermost.
template <class Group> struct common_nodes {
  static constexpr node_list list = [] {
    node_list nodes;
    const program& p = Group::value;
    if (Group::plan.sweeps < 2 || !is_replayed<Group>(0)) return nodes;
    const auto& from = Group::plan.aggregate[0].from;
    bool costly[max_nodes] = {}, inner[max_nodes] = {};
    for (int i = 0; i < p.nodes.count; ++i) {
      const node& n = p.nodes[i];
      if (n.op != opcode::apply || is_integer(n) || from[i] != source::computed) continue;
      bool pointwise = true;
      costly[i] = is_costly(n);
      for (const node_id o : n.operand)
        if (o != no_node) {
          const bool known = from[o] != source::computed || p.nodes[o].op == opcode::constant;
          pointwise = pointwise && (costly[o] || known);
          costly[i] = costly[i] || costly[o];
        }
      costly[i] = costly[i] && pointwise;
      if (costly[i])
        for (const node_id o : n.operand)
          if (o != no_node) inner[o] = true;
    }
    for (int i = 0; i < p.nodes.count; ++i) {
      bool again = false;
      for (int s = 1; s < Group::plan.sweeps; ++s)
        again = again || Group::plan.sweep[s].from[i] == source::computed ||
                Group::plan.aggregate[s].from[i] == source::computed;
      if (costly[i] && !inner[i] && again) nodes.push_back(i);
    }
    return nodes;
  }();
};
/// What rows share that lie along some axis from each other: nodes with exponentials, sines and the like in
/// them that do not vary along it, where everything written does, the outermost of these. Of all axes the one
/// with most.
struct row_sharing {
  int axis = -1;
  node_list nodes;
  /// As bits: those that do not vary along the axis, of which the nodes are computed, and those that are read
  /// once a row. A thread's rows have the same elements of them.
  std::uint32_t tensors = 0;
};
/// A stage that computes node i; sweep < 0: none does.
struct computing_stage {
  stage_kind kind = stage_kind::sweep;
  int sweep = -1;
};
template <class Group> constexpr computing_stage find_computing(int i) {
  for (int s = 0; s < Group::plan.sweeps; ++s) {
    if (Group::plan.sweep[s].from[i] == source::computed) return {stage_kind::sweep, s};
    if (Group::plan.aggregate[s].from[i] == source::computed) return {stage_kind::aggregate, s};
  }
  return {};
}
template <class Group, int I> inline constexpr computing_stage computing = find_computing<Group>(I);
/// Whether node i, a load, is read once a row.
template <class Group> constexpr bool is_read_once(int i) {
  bool once = false;
  for (int s = 0; s < Group::plan.sweeps; ++s)
    once = once || (sweep_reads<Group>(s, i) && !walks_along(Group::plan, Group::value.nodes[i].axes));
  for (int b = 0; b <= Group::plan.sweeps; ++b)
    once = once || Group::plan.boundary[b].from[i] == source::memory;
  return once;
}
template <class Group> constexpr row_sharing sharing_along(int axis) {
  row_sharing result{axis, {}, 0};
  const program& p = Group::value;
  for (const store_decl& store : p.stores)
    if ((p.tensors[store.tensor].mask() & axis_bit(axis)) == 0) return {};
  bool pointwise[max_nodes] = {}, costly[max_nodes] = {}, wanted[max_nodes] = {};
  for (int i = 0; i < p.nodes.count; ++i) {
    const node& n = p.nodes[i];
    pointwise[i] = (n.axes & axis_bit(axis)) == 0 && (n.op == opcode::constant || n.op == opcode::parameter ||
                                                      n.op == opcode::load || n.op == opcode::apply);
    costly[i] = is_costly(n);
    for (const node_id o : n.operand)
      if (o != no_node) pointwise[i] = pointwise[i] && pointwise[o], costly[i] = costly[i] || costly[o];
    costly[i] = costly[i] && pointwise[i] && walks_along(Group::plan, n.axes) && !is_integer(n) &&
                find_computing<Group>(i).sweep >= 0;
  }
  for (int i = 0; i < p.nodes.count; ++i)
    if (!costly[i])
      for (const node_id o : p.nodes[i].operand)
        if (o != no_node) wanted[o] = true;
  for (int i = p.nodes.count - 1; i >= 0; --i) {
    const node& n = p.nodes[i];
    if (costly[i] && wanted[i]) result.nodes.push_back(i);
    if (n.op == opcode::load && ((n.axes & axis_bit(axis)) == 0 || is_read_once<Group>(i)))
      result.tensors |= 1U << n.target;
  }
  return result;
}
template <class Group>
inline constexpr row_sharing sharing_of = [] {
  row_sharing most;
  const program& p = Group::value;
  bool may_share = Group::plan.sweeps > 1;
  // What is written once a row, and elements that are looked up, would have to be found for each.
  for (int b = 0; b <= Group::plan.sweeps; ++b)
    may_share = may_share && Group::plan.boundary[b].stores.count == 0;
  for (const node& n : p.nodes) may_share = may_share && n.op != opcode::gather;
  for (int axis = 0; axis < p.axes.count && may_share; ++axis) {
    if ((Group::plan.space & axis_bit(axis)) == 0 || walks_along(Group::plan, axis_bit(axis))) continue;
    const row_sharing candidate = sharing_along<Group>(axis);
    if (candidate.nodes.count > most.nodes.count) most = candidate;
  }
  return most;
}();
template <class Group> struct shared_nodes {
  static constexpr node_list list = sharing_of<Group>.nodes;
};

/// Log-sums of whose elements a tile leaves the exponentials in registers, for later sweeps that go through
/// it again: as numbers of scans.
template <class Group> struct kept_exponentials {
  static constexpr node_list list = [] {
    node_list scans;
    for (int i = 0; i < Group::value.scans.count; ++i)
      if (Group::value.scans[i].log_sum && is_replayed<Group>(Group::plan.sweep_of_scan[i]))
        scans.push_back(i);
    return scans;
  }();
};
template <class Holder> constexpr int find_in(int node_index) {
  for (int i = 0; i < Holder::list.count; ++i)
    if (Holder::list[i] == node_index) return i;
  return -1;
}
template <class Holder, int I> inline constexpr int position_in = find_in<Holder>(I);
template <class Holder> inline constexpr int size_of_list = Holder::list.count;

/// The scans of sweep S, all (Round < 0) or those of one round.
template <class Group, int S, int Round = -1> struct scans_in {
  static constexpr node_list list = [] {
    node_list scans;
    for (int i = 0; i < Group::value.scans.count; ++i)
      if (Group::plan.sweep_of_scan[i] == S && (Round < 0 || Group::plan.round_of_scan[i] == Round))
        scans.push_back(i);
    return scans;
  }();
};

/// Whether node i is what a log-sum takes, read from memory: where steps do not exist tiles hold -inf, of
/// which the exponential in a frame is 0.
template <class Group> constexpr bool is_filled_low(int i) {
  if (Group::value.nodes[i].op != opcode::load || is_integer(Group::value.nodes[i])) return false;
  for (const scan_decl& scan : Group::value.scans)
    if (scan.log_sum && scan.element[0] == i) return true;
  return false;
}
template <class Group, int I> constexpr bool find_vanishes();
/// Whether node I is finite where a tile holds a frame, also at steps that do not exist.
template <class Group, int I> constexpr bool find_finite() {
  constexpr node each = node_at<Group, I>;
  if constexpr (is_apply<primitive::select_op>(each))
    return find_finite<Group, each.operand[1]>() && find_finite<Group, each.operand[2]>();
  else if constexpr (each.op == opcode::constant)
    return each.value - each.value == 0.0;
  else if constexpr (find_framed_node<Group, I>().form == frame_form::share &&
                     find_framed_node<Group, I>().scan >= 0)  // x / (a sum in a frame), which is positive
    return find_finite<Group, each.operand[0]>() || find_vanishes<Group, each.operand[0]>();
  return false;
}
/// Whether node I is 0 at steps that do not exist, where tiles hold 0 of all else.
template <class Group, int I> constexpr bool find_vanishes() {
  constexpr node each = node_at<Group, I>;
  if constexpr (each.op == opcode::load) {
    constexpr tensor_decl declared = tensor_at<Group, each.target>;
    return !is_integer(each) && walks_along(Group::plan, each.axes) && !is_filled_low<Group>(I) &&
           (!declared.optional || declared.fallback == 0.0);
  } else if constexpr (is_apply<primitive::select_op>(each)) {
    return find_vanishes<Group, each.operand[1]>() && find_vanishes<Group, each.operand[2]>();
  } else if constexpr (is_apply<primitive::multiply_op>(each)) {
    return (find_vanishes<Group, each.operand[0]>() && find_finite<Group, each.operand[1]>()) ||
           (find_vanishes<Group, each.operand[1]>() && find_finite<Group, each.operand[0]>());
  }
  return false;
}
/// Whether what scan S adds to its sum in a frame is 0 there: exponentials of a log-sum, terms of one in its
/// units.
template <class Group, int S>
inline constexpr bool vanishes =
    is_log_sum<Group, S> ? is_filled_low<Group>(scan_at<Group, S>.element[0]) &&
                               !tensor_at<Group, node_at<Group, scan_at<Group, S>.element[0]>.target>.optional
                         : find_vanishes<Group, scan_at<Group, S>.element[0]>();

template <class Group>
inline constexpr int most_remembered = [] {
  int most = 0;
  for_each_index(std::make_integer_sequence<int, sweep_count<Group>>{}, [&]<int S>(index_constant<S>) {
    most = std::max(most, size_of_list<remembered_nodes<Group, S>>);
  });
  return most;
}();

/// Whether of a log-sum's carry its value m + log(s) is kept alone: where all operands have 16 bits. (m and s
/// tell more where |m| is large: a float32 value is off by |m| 2^-24, as exponentials in a frame are.)
template <class Group, class C> constexpr bool is_kept_as_value(int scan) {
  return std::is_same_v<C, approximate> && Group::value.scans[scan].log_sum;
}
/// How many numbers are kept of a tile's carry before that component, or in all, of one sweep or of any: of
/// scans that a later sweep replays, or of a program of one sweep (for the gradient's), the live components.
template <class Group, class C> constexpr int kept_number(int scan, int component, int sweep = all_sweeps) {
  int count = 0;
  for (int i = 0; i < Group::value.scans.count; ++i) {
    const int its_sweep = Group::plan.sweep_of_scan[i];
    if ((sweep != all_sweeps && its_sweep != sweep) ||
        (Group::plan.sweeps > 1 && !is_replayed<Group>(its_sweep)))
      continue;
    for (int k = 0; k < Group::value.scans[i].components; ++k) {
      if (i == scan && k == component) return count;
      if (is_kept_as_value<Group, C>(i) ? k == 0 : Group::plan.live_component[i][k]) ++count;
    }
  }
  return count;
}
template <class Group, class C, int Sweep = all_sweeps>
inline constexpr int kept_count = kept_number<Group, C>(-1, -1, Sweep);
/// Whether tiles begin with carries that an earlier sweep had there.
template <class Group> constexpr bool find_replays_some() {
  bool some = false;
  for (int q = 0; q < Group::plan.sweeps; ++q) some = some || is_replayed<Group>(q);
  return some;
}
template <class Group, class C>
inline constexpr int saved_count = find_replays_some<Group>() ? kept_count<Group, C> : 0;

/// Calls f(number, scan, component), constants, for what is kept of the scans in Holder; of a log-sum that is
/// kept as its value once, with component 0.
template <class Group, class C, class Holder, class F> __device__ __forceinline__ void for_kept(F&& f) {
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S> scan) {
    for_each_index(std::make_integer_sequence<int, components_of<Group, S>>{},
                   [&]<int K>(index_constant<K> k) {
                     if constexpr (is_kept_as_value<Group, C>(S) ? K == 0 : is_live<Group, S, K>)
                       f(index_constant<kept_number<Group, C>(S, K)>{}, scan, k);
                   });
  });
}

/// Whether the first sweep does nothing but find the carries with which later ones go through its tiles
/// again.
template <class Group> constexpr bool find_first_is_replayed() {
  bool alone = Group::plan.sweeps > 1 && Group::plan.sweep[0].stores.count == 0;
  for (int s = 0; s < Group::plan.sweeps; ++s) alone = alone && is_replayed<Group>(s) == (s == 0);
  return alone && !find_last<Group>(0);
}
template <class Group> inline constexpr bool first_is_replayed = find_first_is_replayed<Group>();

/// Sums of exp(x - frame) above this are left to the running maximum: the exponent's own rounding would show.
template <class C> inline constexpr float largest_sum = 0x1p20F;
template <> inline constexpr float largest_sum<approximate> = 0x1p100F;

/// Whether the log-sums of sweep S may be held in frames: in float32 arithmetic.
template <class K, int S>
inline constexpr bool can_be_framed =
    can_hold_frame(K::group::value, K::group::plan, S) && !std::is_same_v<typename K::compute, double>;

/// Whether tiles are left to the slow ways where their log-sums' range is wide: more often than other reasons
/// come up.
template <class K>
inline constexpr bool leaves_wide_data = [] {
  bool any = false;
  for_each_index(std::make_integer_sequence<int, sweep_count<typename K::group>>{},
                 [&]<int S>(index_constant<S>) { any = any || can_be_framed<K, S>; });
  return any;
}();

/// Calls f(i) for every i below Count. Rolled: in a loop, whose arrays may lie in local memory, for code that
/// is seldom run and would take long to compile.
template <bool Rolled, int Count, class F> __device__ __forceinline__ void for_count(F&& f) {
  if constexpr (Rolled) {
#pragma unroll 1
    for (int i = 0; i < Count; ++i) f(i);
  } else {
#pragma unroll
    for (int i = 0; i < Count; ++i) f(i);
  }
}

// ---- barriers of a block's first threads; a kernel may have others beside them

/// Waits for `threads` threads.
__device__ __forceinline__ void wait_for_all(int threads) {
  asm volatile("bar.sync 0, %0;" ::"r"(threads) : "memory");
}
/// ... and says whether any of them said so.
__device__ __forceinline__ bool any_of_all(int threads, bool mine) {
  std::uint32_t any;
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.or.pred q, 0, %2, p; selp.u32 %0, 1, 0, q; }"
               : "=r"(any)
               : "r"(static_cast<std::uint32_t>(mine)), "r"(threads)
               : "memory");
  return any != 0;
}

// ---- launches that overlap: one may begin while the one before it ends, and waits where it needs its
// results

__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_last() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ---- the blocks of a cluster. Before compute capability 9.0 there are none: such kernels are not launched
// there.

__device__ __forceinline__ int block_of_cluster() {
  std::uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return static_cast<int>(rank);
}
/// The barrier of all threads of a cluster, in two halves. What a thread wrote before publish_in_cluster()
/// and its arrival is there for all behind the wait; other writes are not waited for.
__device__ __forceinline__ void publish_in_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
#endif
}
__device__ __forceinline__ void arrive_at_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}
/// Where what lies at `mine` in the shared memory of this block lies in that of another.
template <class T> __device__ __forceinline__ T* in_block_of_cluster(T* mine, int rank) {
  std::uint64_t other = reinterpret_cast<std::uint64_t>(mine);
#if __CUDA_ARCH__ >= 900
  asm("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(other), "r"(rank));
#endif
  return reinterpret_cast<T*>(other);
}

// ---- states

template <int Scan, class C, int Components> struct scan_state {
  std::array<C, static_cast<std::size_t>(Components)> value;
};
template <class Group, class C, class Sequence> struct scan_states;
template <class Group, class C, int... Scan>
struct scan_states<Group, C, std::integer_sequence<int, Scan...>>
    : scan_state<Scan, C, components_of<Group, Scan>>... {};

/// The states of all scans of a program, for one lane.
template <class Group, class C>
using states = scan_states<Group, C, std::make_integer_sequence<int, scan_count<Group>>>;

template <int Scan, class C, int Components>
__device__ __forceinline__ std::array<C, static_cast<std::size_t>(Components)>&
state_of(scan_state<Scan, C, Components>& s) {
  return s.value;
}
template <int Scan, class C, int Components>
__device__ __forceinline__ const std::array<C, static_cast<std::size_t>(Components)>&
state_of(const scan_state<Scan, C, Components>& s) {
  return s.value;
}

/// Calls f(scan, component) with constants, for every component of the scans in Holder::list; Framed: without
/// the m of log-sums, which then is the same all over the tile.
template <class Group, class Holder, bool Framed = false, class F>
__device__ __forceinline__ void for_components(F&& f) {
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) {
    for_each_index(std::make_integer_sequence<int, components_of<Group, S>>{}, [&]<int K>(index_constant<K>) {
      if constexpr (!(Framed && is_log_sum<Group, S> && K == 0)) f(index_constant<S>{}, index_constant<K>{});
    });
  });
}
/// Position of a component among those that for_components visits.
template <class Group, class Holder> constexpr int component_index(int scan, int component) {
  int index = 0;
  for (const int each : Holder::list) {
    if (each == scan) return index + component;
    index += Group::value.scans[each].components;
  }
  return -1;
}

template <class Group, class Holder, bool Framed = false, class C>
__device__ __forceinline__ void set_identity(states<Group, C>& s) {
  for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    std::get<K>(state_of<S>(s)) = static_cast<C>(identity_of<Group, S, K>);
  });
}
/// What is kept of a component, and the component from that.
template <class Group, int S, int K, class C>
__device__ __forceinline__ typename scratch_type_of<C>::type kept_of(const states<Group, C>& s) {
  const auto& state = state_of<S>(s);
  if constexpr (is_kept_as_value<Group, C>(S))
    return static_cast<float>(state[0] + arithmetic<C>::log(state[1]));
  else
    return static_cast<typename scratch_type_of<C>::type>(std::get<K>(state));
}
template <class Group, int S, int K, class C>
__device__ __forceinline__ void restore_kept(states<Group, C>& s, typename scratch_type_of<C>::type kept) {
  auto& state = state_of<S>(s);
  std::get<K>(state) = static_cast<C>(kept);
  if constexpr (is_kept_as_value<Group, C>(S)) state[1] = C(1);
}
/// right = combine(left, right).
template <class Group, class Holder, bool Framed = false, class C>
__device__ __forceinline__ void combine_onto(const states<Group, C>& left, states<Group, C>& right) {
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) {
    if constexpr (Framed && is_log_sum<Group, S>) {
      std::get<1>(state_of<S>(right)) = std::get<1>(state_of<S>(left)) + std::get<1>(state_of<S>(right));
    } else {
      auto before = state_of<S>(left);
      combiner<Group, S, all_components<Group, S>>::apply(before, state_of<S>(right));
      state_of<S>(right) = before;
    }
  });
}
template <class Group, class Holder, class C>
__device__ __forceinline__ void copy_states(const states<Group, C>& from, states<Group, C>& to) {
  for_each_index(sequence_of<Holder>{},
                 [&]<int S>(index_constant<S>) { state_of<S>(to) = state_of<S>(from); });
}

/// The most components that the scans of one round have: what threads exchange at a time.
template <class Group> constexpr int find_component_capacity() {
  int most = 0;
  for (int s = 0; s < Group::plan.sweeps; ++s)
    for (int round = 0; round < Group::plan.rounds[s]; ++round) {
      int count = 0;
      for (int i = 0; i < Group::value.scans.count; ++i)
        if (Group::plan.sweep_of_scan[i] == s && Group::plan.round_of_scan[i] == round)
          count += Group::value.scans[i].components;
      if (count > most) most = count;
    }
  return most;
}
template <class Group> inline constexpr int component_capacity = find_component_capacity<Group>();

/// The states `distance` threads further up a warp, or where the scan goes Back through it, down.
template <class Group, class Holder, bool Framed, bool Back, class C>
__device__ __forceinline__ states<Group, C> shuffle_before(const states<Group, C>& from, int distance) {
  states<Group, C> left = from;
  for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    const C mine = std::get<K>(state_of<S>(from));
    const auto apart = static_cast<unsigned>(distance);
    std::get<K>(state_of<S>(left)) = Back ? shuffle_down(mine, apart, 32) : shuffle_up(mine, apart, 32);
  });
  return left;
}
template <class Group, class Holder, bool Framed = false, class C>
__device__ __forceinline__ states<Group, C> shuffle_from(const states<Group, C>& from, int lane, int width) {
  states<Group, C> state = from;
  for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    std::get<K>(state_of<S>(state)) = shuffle_from(std::get<K>(state_of<S>(from)), lane, width);
  });
  return state;
}

/// Whether the scan's combine multiplies. Adding and comparing make no NaN that a walk in order would not
/// make; nor do log-sums, which multiply by 1 or less: sums in frames have largest_sum to be below, and 2^24
/// tiles' of them stay finite; others are at most as many as there are elements.
template <class Group, int Scan> constexpr bool find_scales() {
  if (is_log_sum<Group, Scan>) return false;
  node_list roots;
  for (int k = 0; k < Group::value.scans[Scan].components; ++k)
    roots.push_back(Group::value.scans[Scan].combined[k]);
  for (const int i : nodes_below(Group::value, roots)) {
    const node& n = Group::value.nodes[i];
    if (is_apply<primitive::multiply_op>(n) || is_apply<primitive::divide_op>(n) ||
        is_apply<primitive::pow_op>(n))
      return true;
  }
  return false;
}
template <class Group, int Scan> inline constexpr bool scales = find_scales<Group, Scan>();
/// Whether the combine of some scan in Holder multiplies: a stretch of it may be unfit for being combined.
template <class Group, class Holder>
inline constexpr bool any_scales = [] {
  bool any = false;
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) { any = any || scales<Group, S>; });
  return any;
}();
/// Whether component K of a scan is a factor: it has identity 1, and the combine multiplies.
template <class Group, int Scan, int K>
inline constexpr bool is_factor = scales<Group, Scan> && identity_of<Group, Scan, K> == 1.0;

/// Whether of the scans in Holder nothing is wanted but the last value, in whatever order it is made.
template <class Group, class Holder> constexpr bool find_reduces() {
  bool reduces = true;
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) {
    constexpr int sweep = sweep_of<Group, S>;
    constexpr bool any_order = commutes(Group::value, S);
    reduces = reduces && only_reduces<Group, sweep> && !is_replayed<Group>(sweep) && any_order;
  });
  return reduces;
}
template <class Group, class Holder> inline constexpr bool reduces = find_reduces<Group, Holder>();

/// Whether the scan's combine hides no infinity and no NaN: it adds and multiplies only.
template <class Group, int Scan> constexpr bool find_passes_on() {
  node_list roots;
  for (int k = 0; k < Group::value.scans[Scan].components; ++k)
    roots.push_back(Group::value.scans[Scan].combined[k]);
  for (const int i : nodes_below(Group::value, roots)) {
    const node& n = Group::value.nodes[i];
    if (n.op == opcode::apply && !is_apply<primitive::multiply_op>(n) && !is_apply<primitive::add_op>(n) &&
        !is_apply<primitive::subtract_op>(n) && !is_apply<primitive::neg_op>(n))
      return false;
  }
  return true;
}
/// Whether a stretch of which overflows() says nothing has no part of which it would, but for its factors:
/// products and sums of what is not finite are not finite, and sums in a frame, which are not negative, are
/// as large as their parts. (A product need not tell: a factor of 0 may have come before others overflowed.)
template <class Group, class Holder, bool Framed> constexpr bool find_whole_tells() {
  bool tells = true;
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) {
    if (Framed && is_log_sum<Group, S>) return;
    tells = tells && (!scales<Group, S> || find_passes_on<Group, S>());
  });
  return tells;
}
template <class Group, class Holder, bool Framed>
inline constexpr bool whole_tells = find_whole_tells<Group, Holder, Framed>();

/// Whether a factor is not finite.
template <class Group, class Holder, class C>
__device__ __forceinline__ bool factors_overflow(const states<Group, C>& stretch) {
  bool overflow = false;
  for_components<Group, Holder>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    if constexpr (is_factor<Group, S, K>) {
      const C own = std::get<K>(state_of<S>(stretch));
      overflow = overflow | !(own - own == C(0));
    }
  });
  return overflow;
}

/// Up to which magnitude a component of each of `Joined` stretches stays finite in what they make together:
/// factors where their product does; what is added to others while the product of
/// factors is above 1 (Growing), or is not. Of float32, or of float64.
template <class C, int Joined> constexpr double largest_joined(bool factor, bool growing) {
  constexpr int exponents = std::is_same_v<C, double> ? 1022 : 126;
  constexpr int of_product = exponents / 4 * 3;
  int exponent = factor ? of_product / Joined : growing ? exponents - of_product - 1 : exponents;
  if (!factor)
    for (int joined = 1; joined < Joined; joined *= 2) --exponent;
  double power = 1;
  for (int i = 0; i < exponent; ++i) power *= 2;
  return power;
}

/// Sums in units of a log-sum above this are left to the scans' own operators: so many of them are finite.
inline constexpr float largest_scaled_sum = 0x1p100F;

/// Whether joining a stretch to what precedes it may make a NaN that a walk in order does not make: the
/// stretch's own state is not finite though its identity and the carry are (decays of 2 and a carry of 0
/// would make inf * 0), or the carry is infinite (and the stretch's product of decays may have become 0).
/// Joined: or what so many such stretches make together. Framed: or a sum leaves the range in which its frame
/// is exact.
template <class Group, class Holder, bool Framed = false, int Joined = 1, class C>
__device__ __forceinline__ bool overflows(const states<Group, C>& carry, const states<Group, C>& stretch) {
  bool suspect = false, growing = false;
  if constexpr (Joined > 1)
    for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
      if constexpr (is_factor<Group, S, K>) {
        const C own = std::get<K>(state_of<S>(stretch));
        growing = growing | (own > C(1)) | (own < C(-1));
      }
    });
  for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    constexpr double identity = identity_of<Group, S, K>;
    const C own = std::get<K>(state_of<S>(stretch)), before = std::get<K>(state_of<S>(carry));
    if constexpr (Framed && is_log_sum<Group, S>) {
      suspect = suspect | !(own < C(largest_sum<C>));
    } else if constexpr (scale_of<Group, S> >= 0) {  // what multiplies it may be 0 (frame_form::vanishing)
      const C limit = C(largest_scaled_sum);
      suspect = suspect | !((own < limit) & (own > -limit)) | !((before < limit) & (before > -limit));
    } else if constexpr (scales<Group, S> && identity - identity == 0.0) {
      bool fits = own - own == C(0);
      if constexpr (Joined > 1) {
        constexpr bool factor = is_factor<Group, S, K>;
        const C limit = growing ? static_cast<C>(largest_joined<C, Joined>(factor, true))
                                : static_cast<C>(largest_joined<C, Joined>(factor, false));
        fits = (own <= limit) & (own >= -limit);
      }
      const bool carried = !is_live<Group, S, K> || before - before == C(0);
      suspect = suspect | (!fits & carried) | (!carried & (before == before));  // no branches
    }
  });
  return suspect;
}

}  // namespace scandsl::cuda_detail
