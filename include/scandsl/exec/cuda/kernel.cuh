#pragma once
#include <tuple>

#include "scandsl/exec/cuda/approximate.cuh"
#include "scandsl/exec/cuda/arguments.hpp"
#include "scandsl/exec/cuda/float64.cuh"
#include "scandsl/exec/cuda/memory.cuh"
#include "scandsl/exec/cuda/node_lists.cuh"

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

/// Whether lanes may be cut into pieces: several sweeps, whose scans do not wait for each other. Tallies are
/// added up behind the last sweep.
template <class Group>
inline constexpr bool cuts_sweeps = [] {
  bool cuts = Group::plan.sweeps > 1 && Group::value.scans.count > 0;
  for (int s = 0; s < Group::plan.sweeps; ++s) cuts = cuts && find_rounds<Group>(s) <= 1;
  for (int i = 0; i < Group::value.scans.count; ++i)
    cuts = cuts && !(is_tally<Group>(i) && Group::plan.sweep_of_scan[i] + 1 < Group::plan.sweeps);
  return cuts;
}();
/// In which launch a sweep's pieces are folded (or where it has no scans: gone through), for which those
/// before it must be known; of the number of sweeps: the last launch, in which what comes behind them is
/// computed.
template <class Group> constexpr int launch_of_fold(int sweep) {
  int launch = 0;
  for (int s = 0; s < sweep; ++s) launch += Group::plan.sweep[s].has_scans ? 1 : 0;
  for (int i = 0; i < Group::value.scans.count; ++i)
    if (sweep == Group::plan.sweeps && is_tally<Group>(i)) return launch + 1;
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

/// Whether a tile that waits in shared memory can wait as the exponentials of what its only operand gives a
/// log-sum: they take as many bytes, and whoever walks the tile with them needs nothing else of the operand.
template <class K> constexpr bool find_exponentials_wait() {
  using group = typename K::group;
  if constexpr (sweep_count<group> != 1 || !knows_types<K> || size_of_list<kept_exponentials<group>> != 1 ||
                size_of_list<walked_loads<group, 0>> != 1) {
    return false;
  } else {
    constexpr int read = walked_loads<group, 0>::list[0], of_sum = kept_exponentials<group>::list[0];
    using element = typename K::template element<node_at<group, read>.target>;
    const program& p = group::value;
    node_list wanted;  // whatever the log-sum takes
    for (const store_decl& store : p.stores) wanted.push_back(store.value);
    for (int scan = 0; scan < p.scans.count; ++scan)
      for (int c = 0; c < p.scans[scan].components; ++c)
        if (scan != of_sum && p.scans[scan].element[c] != no_node) wanted.push_back(p.scans[scan].element[c]);
    for (const int i : nodes_below(p, wanted))
      if (i == read) return false;
    return can_be_framed<K, 0> && std::is_same_v<element, typename K::compute> &&
           std::is_same_v<element, float>;
  }
}
template <class K> inline constexpr bool exponentials_wait = find_exponentials_wait<K>();

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

/// Whether a node reads what an earlier kernel of the same run left.
template <class K> constexpr bool is_of_scratch(int i) {
  const node& n = K::group::value.nodes[i];
  return (n.op == opcode::load || n.op == opcode::gather) &&
         K::group::value.tensors[n.target].role == tensor_role::scratch;
}
/// Whether a kernel reads any of that, and whether step by step. Its launch may begin while the one before it
/// ends: it waits where it reads of that, or writes, for the first time.
template <class K>
inline constexpr bool reads_scratch = [] {
  for (int i = 0; i < K::group::value.nodes.count; ++i)
    if (is_of_scratch<K>(i)) return true;
  return false;
}();
template <class K>
inline constexpr bool walks_scratch = [] {
  for (const int i : walked_loads<typename K::group, all_sweeps>::list)
    if (is_of_scratch<K>(i)) return true;
  return false;
}();
/// Sums of nothing else, of which there is so little that one kernel for all lengths will do.
template <class K>
inline constexpr bool sums_scratch = [] {
  using group = typename K::group;
  if constexpr (sweep_count<group> != 1 || !only_reduces<group, 0>) {
    return false;
  } else {
    for (const int i : walked_loads<group, all_sweeps>::list)
      if (!is_of_scratch<K>(i)) return false;
    return true;
  }
}();

/// Whether its gradient may want the states of its scans.
template <class K>
inline constexpr bool leaves_carries =
    scans_once<K> && !sums_scratch<K> && gradient_has_states(K::group::value);

/// Whether rows that end within vectors have kernels of their own: of several sweeps, whose masks of steps
/// cost the others more. (Of one sweep, what follows a row matters where its last value is wanted alone.)
template <class K>
inline constexpr bool ragged_rows_apart =
    knows_types<K> && sweep_count<typename K::group> > 1 && !K::group::only_strips;

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
