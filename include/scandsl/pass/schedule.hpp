#pragma once
#include "scandsl/ir/builder.hpp"
#include "scandsl/pass/reduction.hpp"
#include "scandsl/pass/rotation.hpp"

/// How one kernel program is walked: an axis, one or more sweeps along it, and what is computed where.
/// Depends on the program alone; shapes and strides come in at run time (pass/plan.hpp).
///
/// A *lane* is one position of every axis but the walked one. For each lane an executor runs
///     boundary 0, sweep 0, boundary 1, sweep 1, ..., boundary m
/// where a sweep visits every position of the walked axis and a boundary is evaluated once. Values that do
/// not vary along the walked axis are thereby hoisted out of the loop over it; values after `last` wait for
/// the next boundary.
namespace scandsl {

inline constexpr int max_sweeps = 6, max_instructions = max_nodes + max_scans;

/// Where a sweep or a boundary gets a node's value from.
enum class source : std::uint8_t {
  unused,
  uniform,   ///< from constants and parameters alone, once per call
  memory,    ///< a load: through the node's stream (a gather is computed)
  kept,      ///< computed at an earlier boundary: through the node's stream, the same at every step
  scratch,   ///< a scan's value of an earlier sweep: through the node's stream
  computed,  ///< here
};

/// One sweep, or one boundary (which has no direction and no scans).
struct stage_schedule {
  bool reversed = false;
  std::int16_t reverse_parameter = -1;
  bool has_scans = false;
  source from[max_nodes] = {};
  /// The nodes to read or compute, in order; -1 - s stands for "advance scan s", which gives its carry and
  /// scan nodes.
  fixed_list<std::int16_t, max_instructions> instructions;
  fixed_list<std::int16_t, max_stores> stores;  ///< indices into program::stores
  fixed_list<node_id, max_nodes> keeps;  ///< computed here and written to their streams for later stages
};

/// A uniform condition under which alone a node is needed: `select(condition, ...)` evaluates one side only.
struct guard {
  node_id condition = no_node;
  bool when = true;
  constexpr bool operator==(const guard&) const = default;
};

struct schedule {
  int axis = -1;        ///< the walked axis; -1: no scan and nothing to hoist, so any dimension may be walked
  axis_mask space = 0;  ///< all axes, the segments' axis excepted
  int segment_axis = -1;
  int sweeps = 0;
  stage_schedule sweep[max_sweeps];
  stage_schedule
      aggregate[max_sweeps];  ///< the same sweep reduced to its scans' states, every component (for pieces)
  stage_schedule boundary[max_sweeps + 1];
  std::int8_t sweep_of_scan[max_scans] = {};
  std::int8_t round_of_scan[max_scans] = {};  ///< 0 for a scan that depends on no other scan of its sweep
  bool live_component[max_scans][max_components] = {};  ///< what a sequential sweep must carry
  int rounds[max_sweeps] = {};
  guard guards[max_nodes] = {};

  int streams = 0;                         ///< of loads, kept values and scratch
  std::int16_t stream_of[max_nodes] = {};  ///< -1: none; of a gather, where its tensor lies
};

namespace detail {

struct scheduler {
  const program& p;
  schedule s;
  std::int8_t level[max_nodes] = {};
  bool kept_somewhere[max_nodes] = {};
  bool is_uniform[max_nodes] = {};  ///< from constants and parameters alone
  bool scratch_somewhere[max_nodes] = {};

  constexpr explicit scheduler(const program& source_program, int axis) : p(source_program) {
    s.axis = axis;
    for (std::int16_t& stream : s.stream_of) stream = -1;
    for (int i = 0; i < p.nodes.count; ++i) {
      const opcode op = p.nodes[i].op;
      is_uniform[i] = op == opcode::constant || op == opcode::parameter || op == opcode::apply;
      for (const node_id o : p.nodes[i].operand)
        if (o != no_node && !is_uniform[o]) is_uniform[i] = false;
    }
  }

  constexpr bool uniform(int i) const { return is_uniform[i]; }
  constexpr bool walks(axis_mask axes) const {
    return s.axis < 0 ? axes != 0 : (axes & axis_bit(s.axis)) != 0;
  }
  constexpr bool walks(int i) const { return walks(p.nodes[i].axes); }
  constexpr bool is_scan_value(int i) const { return scandsl::is_scan_value(p.nodes[i]); }

  constexpr schedule run() {
    for (int i = 0; i < p.tensors.count; ++i)
      s.space |= p.tensors[i].role == tensor_role::output || p.tensors[i].role == tensor_role::scratch
                     ? p.tensors[i].mask()
                     : 0;
    for (const scan_decl& scan : p.scans) {
      s.space |= scan.axes;
      if (scan.segment_axis >= 0) s.segment_axis = scan.segment_axis;
    }
    if (s.segment_axis >= 0) s.space &= ~axis_bit(s.segment_axis);
    assign_levels();
    find_live_components();
    for (int i = s.sweeps; i >= 0; --i) {
      demand_boundary(i);
      if (i > 0) demand_sweep(i - 1);
    }
    for (int i = 0; i < s.sweeps; ++i) {
      finish(s.sweep[i], i);
      finish(s.aggregate[i], i);
    }
    for (int i = 0; i <= s.sweeps; ++i) finish(s.boundary[i], i);
    find_guards();
    return s;
  }

  constexpr void assign_levels() {
    bool assigned[max_scans] = {};
    for (int i = 0; i < p.nodes.count; ++i) {
      const node& n = p.nodes[i];
      if (is_scan_value(i)) {
        if (!assigned[n.target]) assign_scan(n.target);
        assigned[n.target] = true;
        level[i] = static_cast<std::int8_t>(s.sweep_of_scan[n.target] + (n.op == opcode::last ? 1 : 0));
      }
      for (const node_id o : n.operand)
        if (o != no_node && level[o] > level[i]) level[i] = level[o];
    }
    for (const store_decl& store : p.stores)
      if (walks(p.tensors[store.tensor].mask()) && level[store.value] >= s.sweeps)
        s.sweeps = level[store.value] + 1;
    if (s.sweeps > max_sweeps) throw "scandsl: the program needs more sweeps than max_sweeps";
  }

  constexpr void assign_scan(int index) {
    const scan_decl& scan = p.scans[index];
    int first = 0, round = 0;
    for (int k = 0; k < scan.components; ++k) {
      if (level[scan.element[k]] > first) first = level[scan.element[k]];
      if (scan.initial[k] != no_node && level[scan.initial[k]] > first) first = level[scan.initial[k]];
    }
    while (first < s.sweeps && s.sweep[first].has_scans &&
           !(s.sweep[first].reversed == scan.reversed &&
             s.sweep[first].reverse_parameter == scan.reverse_parameter))
      ++first;
    if (first >= max_sweeps) throw "scandsl: the program needs more sweeps than max_sweeps";
    s.sweep[first].has_scans = s.aggregate[first].has_scans = true;
    s.sweep[first].reversed = s.aggregate[first].reversed = scan.reversed;
    s.sweep[first].reverse_parameter = s.aggregate[first].reverse_parameter = scan.reverse_parameter;
    s.sweep_of_scan[index] = static_cast<std::int8_t>(first);
    if (first >= s.sweeps) s.sweeps = first + 1;
    bool below[max_nodes] = {};
    for (int k = 0; k < scan.components; ++k) below[scan.element[k]] = true;
    for (int i = p.nodes.count - 1; i >= 0; --i) {
      if (!below[i]) continue;
      const node& n = p.nodes[i];
      if ((n.op == opcode::carry || n.op == opcode::scan) && s.sweep_of_scan[n.target] == first &&
          s.round_of_scan[n.target] + 1 > round)
        round = s.round_of_scan[n.target] + 1;
      for (const node_id o : n.operand)
        if (o != no_node) below[o] = true;
    }
    s.round_of_scan[index] = static_cast<std::int8_t>(round);
    if (round + 1 > s.rounds[first]) s.rounds[first] = round + 1;
  }

  /// The components whose carry a sequential sweep needs: those that are read, and what their combine reads.
  constexpr void find_live_components() {
    for (int i = 0; i < p.nodes.count; ++i)
      if (is_scan_value(i)) s.live_component[p.nodes[i].target][p.nodes[i].component] = true;
    for (int index = 0; index < p.scans.count; ++index) {
      const scan_decl& scan = p.scans[index];
      for (bool changed = true; changed;) {
        changed = false;
        bool below[max_nodes] = {};
        for (int k = 0; k < scan.components; ++k)
          if (s.live_component[index][k]) below[scan.combined[k]] = true;
        for (int i = p.nodes.count - 1; i >= 0; --i) {
          if (!below[i]) continue;
          const node& n = p.nodes[i];
          if (n.op == opcode::left && !s.live_component[index][n.target])
            s.live_component[index][n.target] = changed = true;
          for (const node_id o : n.operand)
            if (o != no_node) below[o] = true;
        }
      }
    }
  }

  constexpr bool right_is_used(int index, int component) const {
    bool below[max_nodes] = {};
    const scan_decl& scan = p.scans[index];
    for (int k = 0; k < scan.components; ++k)
      if (s.live_component[index][k]) below[scan.combined[k]] = true;
    for (int i = p.nodes.count - 1; i >= 0; --i) {
      if (!below[i]) continue;
      if (p.nodes[i].op == opcode::right && p.nodes[i].target == component) return true;
      for (const node_id o : p.nodes[i].operand)
        if (o != no_node) below[o] = true;
    }
    return false;
  }

  constexpr void need(stage_schedule& at, int index, bool sweeping, node_id v) {
    if (at.from[v] != source::unused) return;
    const node& n = p.nodes[v];
    if (uniform(v)) {
      at.from[v] = source::uniform;
      for (const node_id o : n.operand)
        if (o != no_node) need(at, index, sweeping, o);
    } else if (n.op == opcode::load) {
      at.from[v] = source::memory;
    } else if (!is_truth(n) &&
               (sweeping ? !walks(v) : level[v] < index)) {  // a condition is computed anew: no stream
      at.from[v] = source::kept;
      kept_somewhere[v] = true;
    } else if (sweeping && is_scan_value(v) && level[v] < index) {
      at.from[v] = source::scratch;
      scratch_somewhere[v] = true;
    } else {
      at.from[v] = source::computed;
      for (const node_id o : n.operand)
        if (o != no_node) need(at, index, sweeping, o);
    }
  }

  constexpr void demand_sweep(int index) {
    stage_schedule& at = s.sweep[index];
    for (int i = 0; i < p.stores.count; ++i) {
      const store_decl& store = p.stores[i];
      if (!walks(p.tensors[store.tensor].mask()) || level[store.value] != index) continue;
      at.stores.push_back(static_cast<std::int16_t>(i));
      need(at, index, true, store.value);
    }
    for (int i = 0; i < p.nodes.count; ++i)
      if (scratch_somewhere[i] && level[i] == index) {
        need(at, index, true, static_cast<node_id>(i));
        at.keeps.push_back(static_cast<node_id>(i));
      }
    for (int i = 0; i < p.scans.count; ++i) {
      if (s.sweep_of_scan[i] != index) continue;
      for (int k = 0; k < p.scans[i].components; ++k) {
        if (right_is_used(i, k)) need(at, index, true, p.scans[i].element[k]);
        need(s.aggregate[index], index, true, p.scans[i].element[k]);
      }
    }
  }

  constexpr void demand_boundary(int index) {
    stage_schedule& at = s.boundary[index];
    for (int i = 0; i < p.stores.count; ++i) {
      const store_decl& store = p.stores[i];
      if (walks(p.tensors[store.tensor].mask()) || level[store.value] != index) continue;
      at.stores.push_back(static_cast<std::int16_t>(i));
      need(at, index, false, store.value);
    }
    for (int i = 0; i < p.scans.count; ++i)
      for (int k = 0; k < p.scans[i].components; ++k)
        if (s.sweep_of_scan[i] == index && p.scans[i].initial[k] != no_node)
          need(at, index, false, p.scans[i].initial[k]);
    // Sweep `index` and all later stages have been demanded already.
    for (int i = 0; i < p.nodes.count; ++i)
      if (kept_somewhere[i] && level[i] == index) {
        need(at, index, false, static_cast<node_id>(i));
        at.keeps.push_back(static_cast<node_id>(i));
      }
  }

  /// Orders what a stage computes and numbers the streams it reads and writes.
  constexpr void finish(stage_schedule& at, int index) {
    bool advanced[max_scans] = {};
    const bool sweeping = &at != &s.boundary[index];
    for (int i = 0; i < p.nodes.count; ++i) {
      const node& n = p.nodes[i];
      if (at.from[i] == source::unused || at.from[i] == source::uniform) continue;
      if (at.from[i] != source::computed || n.op == opcode::gather) stream(i);
      if (at.from[i] == source::computed && (n.op == opcode::carry || n.op == opcode::scan) &&
          !advanced[n.target]) {
        at.instructions.push_back(static_cast<std::int16_t>(-1 - n.target));
        advanced[n.target] = true;
      }
      at.instructions.push_back(static_cast<std::int16_t>(i));
    }
    for (const node_id kept : at.keeps) stream(kept);
    if (!sweeping) return;
    for (int i = 0; i < p.scans.count; ++i)
      if (s.sweep_of_scan[i] == index && !advanced[i])
        at.instructions.push_back(static_cast<std::int16_t>(-1 - i));
  }
  constexpr void stream(int i) {
    if (s.stream_of[i] < 0) s.stream_of[i] = static_cast<std::int16_t>(s.streams++);
  }

  /// A node all of whose uses lie on one side of selects with one uniform condition.
  constexpr void find_guards() {
    bool used[max_nodes] = {}, free_of_guards[max_nodes] = {};
    const auto use = [&](node_id v, const guard& g) {
      if (g.condition == no_node || (used[v] && !(s.guards[v] == g))) {
        free_of_guards[v] = true;
        s.guards[v] = {};
      } else if (!free_of_guards[v]) {
        s.guards[v] = g;
      }
      used[v] = true;
    };
    for (const store_decl& store : p.stores) use(store.value, {});
    for (const scan_decl& scan : p.scans)
      for (int k = 0; k < scan.components; ++k) {
        use(scan.element[k], {});
        if (scan.initial[k] != no_node) use(scan.initial[k], {});
      }
    for (int i = 0; i < p.nodes.count; ++i)
      if (scratch_somewhere[i] || kept_somewhere[i]) use(static_cast<node_id>(i), {});
    for (int i = p.nodes.count - 1; i >= 0; --i) {
      const node& n = p.nodes[i];
      const bool branches = is_apply<primitive::select_op>(n) && uniform(n.operand[0]);
      for (int k = 0; k < 3; ++k) {
        if (n.operand[k] == no_node) continue;
        use(n.operand[k], branches && k > 0 ? guard{n.operand[0], k == 1} : s.guards[i]);
      }
    }
  }
};

}  // namespace detail

/// The schedule of a program whose scans (if any) walk `axis`: one that pass/split.hpp made.
constexpr schedule make_schedule(const program& p, int axis) { return detail::scheduler(p, axis).run(); }

// ---- what a driver needs of a schedule at run time

struct stream_read {
  std::int16_t stream = -1;
  source from = source::unused;
  std::int16_t tensor = -1;  ///< of source::memory
};

struct walk_stage {
  bool reversed = false;
  bool has_scans = false;
  /// Of positions that are integers, sines and cosines follow from those a step before, or may
  /// (rotation.hpp).
  bool rotates = false;
  std::int16_t reverse_parameter = -1;
  fixed_list<stream_read, 32> reads;
  fixed_list<stream_read, 32> gathers;
  fixed_list<std::int16_t, max_stores> stores;
  fixed_list<std::int16_t, 32> keeps;  ///< streams written
};

struct walk_table {
  int axis = -1;
  int segment_axis = -1;
  axis_mask space = 0;
  int sweeps = 0;
  int streams = 0;
  bool uses_last = false;
  bool rotates = false;  ///< sines and cosines follow from those of the step before (pass/rotation.hpp)
  bool reduces = false;  ///< scans do nothing but reduce the axis, in any order (pass/reduction.hpp)
  walk_stage sweep[max_sweeps], aggregate[max_sweeps], boundary[max_sweeps + 1];
  int rounds[max_sweeps] = {};
  std::int8_t sweep_of_scan[max_scans] = {}, round_of_scan[max_scans] = {};
  std::uint16_t live_components[max_scans] = {};  ///< as bits: what a sequential sweep carries
};

/// Whether sines and cosines of positions that are integers rotate, or may, in a sweep.
constexpr bool any_rotates(const walk_table& table) {
  bool any = false;
  for (int i = 0; i < table.sweeps; ++i) any = any || table.sweep[i].rotates;
  return any;
}

namespace detail {
constexpr walk_stage summarise(const program& p, const schedule& s, const stage_schedule& from) {
  walk_stage to;
  to.reversed = from.reversed;
  to.has_scans = from.has_scans;
  to.reverse_parameter = from.reverse_parameter;
  to.stores = from.stores;
  for (int i = 0; i < p.nodes.count; ++i) {
    const stream_read read{s.stream_of[i], from.from[i], p.nodes[i].target};
    if (from.from[i] == source::memory || from.from[i] == source::kept || from.from[i] == source::scratch)
      to.reads.push_back(read);
    if (from.from[i] == source::computed && p.nodes[i].op == opcode::gather) to.gathers.push_back(read);
    to.rotates =
        to.rotates || (from.from[i] == source::computed &&
                       ((rotates_along(p, i, s.axis) && is_integer(p.nodes[p.nodes[i].operand[0]])) ||
                        may_turn_along(p, i, s.axis)));
  }
  for (const node_id kept : from.keeps) to.keeps.push_back(s.stream_of[kept]);
  return to;
}
}  // namespace detail

constexpr walk_table make_walk_table(const program& p, const schedule& s) {
  walk_table table;
  table.axis = s.axis;
  table.segment_axis = s.segment_axis;
  table.space = s.space;
  table.sweeps = s.sweeps;
  table.streams = s.streams;
  table.reduces = is_reduction(p);
  for (const node& n : p.nodes) table.uses_last = table.uses_last || n.op == opcode::last;
  for (int i = 0; i < p.nodes.count; ++i) table.rotates = table.rotates || rotates_along(p, i, s.axis);
  for (int i = 0; i < s.sweeps; ++i) {
    table.sweep[i] = detail::summarise(p, s, s.sweep[i]);
    table.aggregate[i] = detail::summarise(p, s, s.aggregate[i]);
    table.rounds[i] = s.rounds[i];
  }
  for (int i = 0; i <= s.sweeps; ++i) table.boundary[i] = detail::summarise(p, s, s.boundary[i]);
  for (int i = 0; i < p.scans.count; ++i) {
    table.sweep_of_scan[i] = s.sweep_of_scan[i];
    table.round_of_scan[i] = s.round_of_scan[i];
    for (int k = 0; k < p.scans[i].components; ++k)
      if (s.live_component[i][k])
        table.live_components[i] = static_cast<std::uint16_t>(table.live_components[i] | 1U << k);
  }
  return table;
}

}  // namespace scandsl
