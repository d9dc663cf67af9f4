#pragma once
#include "scandsl/exec/cuda/schedule_facts.cuh"

/// What the schedules ask of a kernel program's nodes, answered when compiling: which are read where, which
/// are kept from one sweep to the next, which are worth a register, which vanish at steps that do not exist.
/// `Group` has a program `value` and its schedule `plan`.
namespace scandsl::cuda_detail {

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
/// Whether a node is worth a register where it would be computed again: all of real numbers but signs.
constexpr bool is_costly(const node& n) {
  return n.op == opcode::apply && n.function >= primitive::index<primitive::exp_op> && !is_integer(n);
}
/// Whether what a tile's fold leaves for sweep S is kept: for later sweeps that go through the tile again, or
/// where there are none for the sweep itself, which writes.
template <class Group> constexpr bool keeps_folds(int s) {
  return Group::plan.sweeps == 1 || is_replayed<Group>(s);
}
/// Nodes with exponentials and the like that no scan comes before, where the first sweep folds with them and
/// they are needed again: the outermost.
template <class Group> struct common_nodes {
  static constexpr node_list list = [] {
    node_list nodes;
    const program& p = Group::value;
    if (!keeps_folds<Group>(0)) return nodes;
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
      bool again = Group::plan.sweeps == 1 && Group::plan.sweep[0].from[i] == source::computed;
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
  // Elements that are looked up would have to be found for each row.
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

/// Log-sums of whose elements a tile's fold leaves the exponentials in registers, for what goes through it
/// again: the same sweep, which writes, and later ones. As numbers of scans.
template <class Group> struct kept_exponentials {
  static constexpr node_list list = [] {
    node_list scans;
    for (int i = 0; i < Group::value.scans.count; ++i)
      if (Group::value.scans[i].log_sum && keeps_folds<Group>(Group::plan.sweep_of_scan[i]))
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

/// Whether boundary 0 reads node i of a program without scans, in any case. There it comes before every tile,
/// for lanes have no others: to find the place by a call then weighs as much as the tile (a third of what
/// encodes the gradient of a softmax over the sequence). An operand that may be left out is left to a call,
/// which is then left out, too.
template <class Group> constexpr bool map_begins_with(int i) {
  const node& n = Group::value.nodes[i];
  const source from = Group::plan.boundary[0].from[i];
  return Group::value.scans.count == 0 &&
         ((n.op == opcode::load && from == source::memory) ||
          (n.op == opcode::gather && from == source::computed)) &&
         !Group::value.tensors[n.target].optional;
}
template <class Group, int T> constexpr bool find_placed() {
  for (int i = 0; i < Group::value.nodes.count; ++i) {
    if (Group::value.nodes[i].target != T) continue;
    if (map_begins_with<Group>(i)) return true;
    for (int s = 0; s < Group::plan.sweeps; ++s)
      if (reads_in_place<Group>(s, i) || gathers<Group>(s, i) ||
          (Group::value.nodes[i].op == opcode::load && sweep_reads<Group>(s, i)))
        return true;
  }
  if (size_of_list<shared_nodes<Group>> > 0)  // rows that go on from place to place
    for (const store_decl& store : Group::value.stores)
      if (store.tensor == T) return true;
  return is_walked<Group, T>;
}
template <class Group, int T> inline constexpr bool is_placed = find_placed<Group, T>();
template <class Group>
struct placed_tensors {  ///< as numbers: those whose place sweeps, or maps, need to know
  static constexpr node_list list = [] {
    node_list tensors;
    for_each_index(std::make_integer_sequence<int, Group::value.tensors.count>{},
                   [&]<int T>(index_constant<T>) {
                     if (is_placed<Group, T>) tensors.push_back(T);
                   });
    return tensors;
  }();
};

/// The scans of sweep S, all (Round < 0) or those of one round.
template <class Group, int S, int Round = -1> struct scans_in {
  static constexpr node_list list = [] {
    node_list scans;
    for (int i = 0; i < Group::value.scans.count; ++i)
      if (Group::plan.sweep_of_scan[i] == S && (Round < 0 || find_round<Group>(i) == Round))
        scans.push_back(i);
    return scans;
  }();
};

/// The tallies of sweep S.
template <class Group, int S> using tallies_in = scans_in<Group, S, rounds_of<Group, S>>;
template <class Group, int S> inline constexpr bool has_tallies = size_of_list<tallies_in<Group, S>> > 0;
/// The others, which are folded.
template <class Group, int S> struct folded_in {
  static constexpr node_list list = [] {
    node_list scans;
    for (int i = 0; i < Group::value.scans.count; ++i)
      if (Group::plan.sweep_of_scan[i] == S && !is_tally<Group>(i)) scans.push_back(i);
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
    most = larger(most, size_of_list<remembered_nodes<Group, S>>);
  });
  return most;
}();

}  // namespace scandsl::cuda_detail
