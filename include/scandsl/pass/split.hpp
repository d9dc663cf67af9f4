#pragma once
#include "scandsl/pass/address.hpp"
#include "scandsl/pass/reduction.hpp"
#include "scandsl/pass/rotation.hpp"

namespace scandsl {

inline constexpr int max_kernels = 16;

/// A program cut into kernel programs, in the order in which they run. Each has one iteration space and walks
/// one axis: that of its scans, else the one along which its sines and cosines rotate, else one along which
/// something stays as it is (-1: there is none); a value that crosses is stored in a tensor of role scratch,
/// which later kernel programs load under the same name.
struct kernel_programs {
  fixed_list<program, max_kernels> programs;
  int walked_axis[max_kernels] = {};
  /// Whether there is another way to walk, where the first axis is short or angles can turn: along that axis,
  /// or along any (-1).
  bool has_other[max_kernels] = {};
  int other_axis[max_kernels] = {};
};

namespace detail {

struct splitter {
  const program& p;
  bool apart;  ///< reductions are kernels of their own
  bool scan_done[max_scans] = {}, store_done[max_stores] = {};
  std::uint32_t below[max_nodes] = {};  ///< the scans that a node depends on, as bits
  std::int8_t kernel_of_scan[max_scans] = {};

  struct group {
    int leader = -1;  ///< the scan whose walk it is; -1: none
    axis_mask space = 0;
    fixed_list<std::int16_t, max_scans> scans;
    fixed_list<std::int16_t, max_stores> stores;
  };
  fixed_list<group, max_kernels> groups;

  constexpr splitter(const program& source, bool reduces_apart) : p(source), apart(reduces_apart) {
    for (int i = 0; i < p.nodes.count; ++i) {
      const node& n = p.nodes[i];
      for (const node_id o : n.operand)
        if (o != no_node) below[i] |= below[o];
      if (n.op == opcode::carry || n.op == opcode::scan || n.op == opcode::last)
        below[i] |= below_scan(n.target) | 1U << n.target;
    }
  }
  constexpr std::uint32_t below_scan(int s) const {
    std::uint32_t bits = 0;
    for (int k = 0; k < p.scans[s].components; ++k) {
      bits |= below[p.scans[s].element[k]];
      if (p.scans[s].initial[k] != no_node) bits |= below[p.scans[s].initial[k]];
    }
    return bits;
  }
  constexpr std::uint32_t done() const {
    std::uint32_t bits = 0;
    for (int s = 0; s < p.scans.count; ++s) bits |= scan_done[s] ? 1U << s : 0U;
    return bits;
  }
  constexpr bool ready(std::uint32_t needed) const { return (needed & ~done()) == 0; }

  constexpr void form_groups() {
    while (true) {
      int leader = -1;
      for (int s = p.scans.count - 1; s >= 0; --s)
        if (!scan_done[s] && ready(below_scan(s))) leader = s;
      if (leader < 0) break;
      group g;
      g.leader = leader;
      g.space = p.scans[leader].axes;
      absorb(g);
      groups.push_back(g);
    }
    for (int i = 0; i < p.stores.count; ++i) {
      if (store_done[i]) continue;
      group g;
      g.space = p.tensors[p.stores[i].tensor].mask();
      for (int j = i; j < p.stores.count; ++j)
        if (!store_done[j] && p.tensors[p.stores[j].tensor].mask() == g.space) {
          g.stores.push_back(static_cast<std::int16_t>(j));
          store_done[j] = true;
        }
      groups.push_back(g);
    }
  }

  /// Whether what depends on `scans` is to be computed apart from group g, which reduces some of them.
  constexpr bool is_apart(const group& g, std::uint32_t scans) const {
    for (const std::int16_t s : g.scans)
      if (apart && (scans >> s & 1U) != 0 && only_reduces(p, s)) return true;
    return false;
  }

  /// Takes in what can run in the same nest: scans with the same walk and axes, stores of the same space, or
  /// of the space without the walked axis.
  constexpr void absorb(group& g) {
    for (bool grown = true; grown;) {
      grown = false;
      for (int s = 0; s < p.scans.count; ++s) {
        if (scan_done[s] || p.scans[s].axes != g.space || !p.scans[s].same_walk(p.scans[g.leader]) ||
            !ready(below_scan(s)) || is_apart(g, below_scan(s)))
          continue;
        scan_done[s] = grown = true;
        kernel_of_scan[s] = static_cast<std::int8_t>(groups.count);
        g.scans.push_back(static_cast<std::int16_t>(s));
      }
    }
    const scan_decl& walk = p.scans[g.leader];
    const axis_mask segments = walk.segment_axis >= 0 ? axis_bit(walk.segment_axis) : 0,
                    walked = axis_bit(walk.axis);
    for (int i = 0; i < p.stores.count; ++i) {
      const axis_mask target = p.tensors[p.stores[i].tensor].mask(), value = p.nodes[p.stores[i].value].axes;
      const bool inside =
          target == g.space && (value & segments) == 0 && !is_apart(g, below[p.stores[i].value]);
      const bool after = (target & ~segments) == (g.space & ~walked) && (value & walked) == 0;
      // A per-segment output of a value that does not vary by segment, or the reverse, is left to a map of
      // its own.
      const bool by_segment = (target & segments) == segments;
      if (store_done[i] || !ready(below[p.stores[i].value]) || !(inside || (after && by_segment))) continue;
      store_done[i] = true;
      g.stores.push_back(static_cast<std::int16_t>(i));
    }
  }

  constexpr tensor_decl scratch_tensor(int node_index) const {
    tensor_decl t{
        numbered_name("scratch ", node_index), {}, tensor_role::scratch, false, 0.0, value_kind::real, {}};
    for (int a = 0; a < max_axes; ++a)
      if (p.nodes[node_index].axes & axis_bit(a)) t.axes.push_back(static_cast<std::int16_t>(a));
    return t;
  }
  constexpr bool from_another(int node_index, int kernel) const {
    const node& n = p.nodes[node_index];
    return (n.op == opcode::carry || n.op == opcode::scan || n.op == opcode::last) &&
           kernel_of_scan[n.target] != kernel;
  }

  /// The nodes of other kernels that this one reads.
  constexpr void mark_crossing(int kernel, bool* crossing) const {
    bool wanted[max_nodes] = {};
    const group& g = groups[kernel];
    for (const std::int16_t i : g.stores) wanted[p.stores[i].value] = true;
    for (const std::int16_t s : g.scans)
      for (int k = 0; k < p.scans[s].components; ++k) {
        wanted[p.scans[s].element[k]] = true;
        if (p.scans[s].initial[k] != no_node) wanted[p.scans[s].initial[k]] = true;
      }
    for (int i = p.nodes.count - 1; i >= 0; --i) {
      if (!wanted[i]) continue;
      if (from_another(i, kernel)) {
        crossing[i] = true;
        continue;
      }
      for (const node_id o : p.nodes[i].operand)
        if (o != no_node) wanted[o] = true;
    }
  }

  constexpr program extract(int kernel, const bool* crossing) const {
    rewriting copy(p);
    for (int i = 0; i < p.nodes.count; ++i) {
      if (from_another(i, kernel)) {
        // Only a crossing value gets a tensor; the others of another kernel are not used here.
        if (crossing[i]) copy.nodes[i] = copy.target.load(scratch_tensor(i));
      } else if (all_there(copy, p.nodes[i])) {
        copy.nodes[i] = copy.copy(p.nodes[i]);
      }
    }
    for (const std::int16_t i : groups[kernel].stores)
      copy.target.result.stores.push_back({p.stores[i].tensor, copy.at(p.stores[i].value)});
    for (int i = 0; i < p.nodes.count; ++i)
      if (crossing[i] && !from_another(i, kernel))
        copy.target.result.stores.push_back({static_cast<std::int16_t>(copy.target.tensor(scratch_tensor(i))),
                                             copy.at(static_cast<node_id>(i))});
    return prune(copy.target.result);
  }
  constexpr bool all_there(const rewriting& copy, const node& n) const {
    for (const node_id o : n.operand)
      if (o != no_node && copy.nodes[o] == no_node) return false;
    if (n.op != opcode::carry && n.op != opcode::scan && n.op != opcode::last) return true;
    for (int k = 0; k < p.scans[n.target].components; ++k)
      if (copy.nodes[p.scans[n.target].element[k]] == no_node) return false;
    return true;
  }
};

/// Without scans: the axis outside of whose loop the most transcendental work can be hoisted; -1 where there
/// is none.
constexpr int axis_to_hoist_from(const program& p, axis_mask space) {
  int best = -1, most = 0;
  for (int a = 0; a < p.axes.count; ++a) {
    if (!(space & axis_bit(a))) continue;
    int hoisted = 0;
    for (const node& n : p.nodes)
      if (is_transcendental(n) && n.axes != 0 && !(n.axes & axis_bit(a))) ++hoisted;
    if (hoisted > most) {
      most = hoisted;
      best = a;
    }
  }
  return best;
}

/// Without scans: the axis but `walked` outside of whose loop the most lookups (loads at computed positions)
/// can be hoisted; -1 where there is none.
constexpr int axis_to_look_up_from(const program& p, axis_mask space, int walked) {
  int best = -1, most = 0;
  for (int a = 0; a < p.axes.count; ++a) {
    if (!(space & axis_bit(a)) || a == walked) continue;
    int hoisted = 0;
    for (const node& n : p.nodes)
      if (n.op == opcode::gather && n.axes != 0 && !(n.axes & axis_bit(a))) ++hoisted;
    if (hoisted > most) {
      most = hoisted;
      best = a;
    }
  }
  return best;
}

}  // namespace detail

/// Cuts a program into kernel programs.
constexpr kernel_programs split(const program& p, bool reduces_apart = false) {
  detail::splitter s(p, reduces_apart);
  s.form_groups();
  bool crossing[max_nodes] = {};
  for (int k = 0; k < s.groups.count; ++k) s.mark_crossing(k, crossing);
  kernel_programs result;
  for (int k = 0; k < s.groups.count; ++k) {
    const program kernel = s.extract(k, crossing);
    const detail::splitter::group& g = s.groups[k];
    int axis = g.leader >= 0 ? kernel.find_axis(p.axes[p.scans[g.leader].axis]) : -1, other = -1;
    bool has_other = false;
    if (g.leader < 0) {
      axis_mask space = 0;
      for (const store_decl& store : kernel.stores) space |= kernel.tensors[store.tensor].mask();
      axis = axis_to_rotate_along(kernel);
      if (axis < 0) {
        axis = detail::axis_to_hoist_from(kernel, space);
        other = axis_to_turn_along(kernel);
        if (axis >= 0 && other < 0) other = detail::axis_to_look_up_from(kernel, space, axis);
        has_other = axis >= 0 || other >= 0;
      }
    }
    const int number = result.programs.push_back(kernel);
    result.walked_axis[number] = axis;
    result.has_other[number] = has_other;
    result.other_axis[number] = other;
  }
  return result;
}

}  // namespace scandsl
