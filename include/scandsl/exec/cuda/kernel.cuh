#pragma once
#include <tuple>

#include "scandsl/exec/cuda/approximate.cuh"
#include "scandsl/exec/cuda/arguments.hpp"
#include "scandsl/exec/cuda/float64.cuh"
#include "scandsl/exec/cuda/memory.cuh"
#include "scandsl/exec/cuda/schedule_facts.cuh"

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

/// The tensor that is read or written at every step and is the same operand as tensor T; T if there is none.
template <class Group, int T> constexpr int find_walked_namesake() {
  int found = T;
  for_each_index(
      std::make_integer_sequence<int, Group::value.tensors.count>{}, [&]<int I>(index_constant<I>) {
        if constexpr (is_walked<Group, I> && Group::value.tensors[I].id == Group::value.tensors[T].id)
          found = I;
      });
  return found;
}

/// `Group` has a program `value` and its schedule `plan`; C is the arithmetic, T the element type of each
/// tensor (any_type: looked up at run time; always so where a tensor is read or written once a lane only).
template <class Group, class C, class... T> struct typed_kernel {
  using group = Group;
  using compute = C;
  template <int I>
  using element = std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<T..., any_type>>;
  /// Of a tensor that is read once a lane: known where it is an operand that is also read at every step.
  template <int I> using element_of_operand = element<find_walked_namesake<Group, I>()>;
  static constexpr int tensors = Group::value.tensors.count;
  static_assert(sizeof...(T) == static_cast<std::size_t>(tensors));
  /// The kernel for tiles that hold frames (pass/telescope.hpp), and the one for all.
  using framed =
      typed_kernel<std::conditional_t<std::is_same_v<C, double>, Group, typename Group::framed>, C, T...>;
  using robust = typed_kernel<typename Group::robust, C, T...>;
  static constexpr int computed = computed_before<Group, tensors, 0>;
  using arguments = kernel_arguments<tensors, computed, C>;
};

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
                                   scan_count<typename K::group> > 0 && K::group::plan.rounds[0] == 1;

/// ... and whose states its gradient may want.
template <class K>
inline constexpr bool leaves_carries = scans_once<K> && gradient_has_states(K::group::value);

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
template <class Group, int B> struct read_at_boundary {  ///< as numbers: tensors that boundary B reads
  static constexpr node_list list = [] {
    bool used[max_tensors] = {};
    for (int i = 0; i < Group::value.nodes.count; ++i) {
      const node& n = Group::value.nodes[i];
      const source from = Group::plan.boundary[B].from[i];
      if (n.op == opcode::load && from == source::memory) used[n.target] = true;
      if (n.op == opcode::gather && from == source::computed) used[n.target] = true;
    }
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
/// Whether a node is worth a register where it would be computed again: all of real numbers but signs.
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

template <class Group, int T> constexpr bool find_placed() {
  for (int s = 0; s < Group::plan.sweeps; ++s)
    for (int i = 0; i < Group::value.nodes.count; ++i)
      if (Group::value.nodes[i].target == T &&
          (reads_in_place<Group>(s, i) || gathers<Group>(s, i) ||
           (Group::value.nodes[i].op == opcode::load && sweep_reads<Group>(s, i))))
        return true;
  if (size_of_list<shared_nodes<Group>> > 0)  // rows that go on from place to place
    for (const store_decl& store : Group::value.stores)
      if (store.tensor == T) return true;
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
    if ((sweep != all_sweeps && its_sweep != sweep) || is_tally<Group>(i) ||
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
    for_each_index(std::make_integer_sequence<int, components_of<Group, S>>{}, [&]<int K>(
                                                                                   index_constant<K> k) {
      if constexpr (!is_tally<Group>(S) && (is_kept_as_value<Group, C>(S) ? K == 0 : is_live<Group, S, K>))
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

/// Whether lanes may be cut into pieces: several sweeps, whose scans do not wait for each other.
template <class Group>
inline constexpr bool cuts_sweeps = [] {
  bool cuts = Group::plan.sweeps > 1 && Group::value.scans.count > 0;
  for (int s = 0; s < Group::plan.sweeps; ++s) cuts = cuts && Group::plan.rounds[s] <= 1;
  return cuts;
}();
/// In which launch a sweep's pieces are folded (or where it has no scans: gone through), for which those
/// before it must be known; of the number of sweeps: the last launch.
template <class Group> constexpr int launch_of_fold(int sweep) {
  int launch = 0;
  for (int s = 0; s < sweep; ++s) launch += Group::plan.sweep[s].has_scans ? 1 : 0;
  return launch;
}

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

/// Whether a kernel reads its elements twice: a reduction goes through them, and with its result one more
/// sweep, to as many elements of the same size. Nothing else is held from step to step meanwhile.
template <class K> constexpr bool find_reads_twice() {
  using group = typename K::group;
  if constexpr (!knows_types<K> || sweep_count<group> != 2 || sizeof(typename K::compute) != 4) {
    return false;
  } else {
    constexpr int held = size_of_list<shared_nodes<group>> + size_of_list<kept_exponentials<group>> +
                         size_of_list<common_nodes<group>> + most_remembered<group>;
    if constexpr (!only_reduces<group, 0> || sweep_has_scans<group, 1> || held > 0 ||
                  size_of_list<walked_loads<group, all_sweeps>> != 1 ||
                  stage_of<group, stage_kind::sweep, 0>.stores.count != 0 ||
                  stage_of<group, stage_kind::sweep, 1>.stores.count != 1) {
      return false;
    } else {
      constexpr int read = node_at<group, walked_loads<group, all_sweeps>::list[0]>.target,
                    written = store_at<group, stage_of<group, stage_kind::sweep, 1>.stores[0]>.tensor;
      return sizeof(typename K::template element<read>) == sizeof(typename K::template element<written>);
    }
  }
}
template <class K> inline constexpr bool reads_twice = find_reads_twice<K>();

}  // namespace scandsl::cuda_detail
