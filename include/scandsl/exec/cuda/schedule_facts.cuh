#pragma once
#include "scandsl/core/order.hpp"
#include "scandsl/exec/stage.hpp"
#include "scandsl/pass/reduction.hpp"
#include "scandsl/pass/telescope.hpp"

/// Facts of a program and its schedule, as constants that device code can read. Group has both: a `value` and
/// a `plan`.
namespace scandsl::cuda_detail {

template <class Group> inline constexpr int sweep_count = Group::plan.sweeps;
template <class Group> inline constexpr int scan_count = Group::value.scans.count;
/// A tally: a plain sum of what other scans of its sweep give, of which the last value alone is read. No fold
/// has it: a thread adds up its own steps as it walks through its tiles, and threads join at the sweep's end.
template <class Group> constexpr bool is_tally(int scan) {
  const scan_decl& s = Group::value.scans[scan];
  return Group::plan.round_of_scan[scan] > 0 && is_plain_sum(Group::value, scan) &&
         only_reduces(Group::value, scan) && s.scaled_by < 0 && s.every == no_node && s.initial[0] == no_node;
}
/// The rounds in which the scans of sweep s are folded: those of one round wait for none but earlier ones.
template <class Group> constexpr int find_rounds(int s) {
  int rounds = 0;
  for (int i = 0; i < Group::value.scans.count; ++i)
    if (Group::plan.sweep_of_scan[i] == s && !is_tally<Group>(i))
      rounds = larger(rounds, Group::plan.round_of_scan[i] + 1);
  return rounds;
}
template <class Group, int S> inline constexpr int rounds_of = find_rounds<Group>(S);
/// Tallies come behind all rounds.
template <class Group> constexpr int find_round(int scan) {
  return is_tally<Group>(scan) ? find_rounds<Group>(Group::plan.sweep_of_scan[scan])
                               : Group::plan.round_of_scan[scan];
}
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
template <class Group, int Scan> inline constexpr int round_of = find_round<Group>(Scan);
template <class Group, int Scan> inline constexpr int components_of = Group::value.scans[Scan].components;
/// Whether the scan's state is (m, s) and m may be held fixed over a tile (the tile's frame).
template <class Group, int Scan> inline constexpr bool is_log_sum = Group::value.scans[Scan].log_sum;
template <class Group, int Scan, int K>
inline constexpr double identity_of = Group::value.scans[Scan].identity[K];

/// Whether a walk in order needs the component: what is read, and what its combine reads.
template <class Group, int Scan, int K> inline constexpr bool is_live = Group::plan.live_component[Scan][K];

/// Whether last values of the scans of sweep s are read, tallies included or not.
template <class Group> constexpr bool find_last(int s, bool of_tallies = true) {
  for (const node& n : Group::value.nodes)
    if (n.op == opcode::last && Group::plan.sweep_of_scan[n.target] == s &&
        (of_tallies || !is_tally<Group>(n.target)))
      return true;
  return false;
}
/// Whether what the folds come to in the end is read.
template <class Group, int S = 0> inline constexpr bool uses_last = find_last<Group>(S, false);

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
/// Whether a strip's threads may bring its tiles together, for each one's own accesses are of few bytes: of
/// scans, and where there are several sweeps.
template <class Group>
inline constexpr bool shares_tiles = sweep_count<Group> > 1 ||
                                     (scan_count<Group> > 0 && !only_reduces<Group, 0>);

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

/// Calls f(constant) with whether sweep S goes the other way than the first. Gives what f gives.
template <class Group, int S, class A, class F>
__device__ __forceinline__ decltype(auto) with_heading(const A& a, F&& f) {
  if constexpr (heading_is_known<Group, S>)
    return f(std::bool_constant<goes_back<Group, S>>{});
  else if (a.reversed[S] != a.reversed[0])
    return f(std::true_type{});
  else
    return f(std::false_type{});
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

}  // namespace scandsl::cuda_detail
