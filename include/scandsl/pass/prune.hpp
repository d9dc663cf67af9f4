#pragma once
#include "scandsl/ir/program.hpp"

namespace scandsl {
namespace detail {

/// What the stores of a program need, found backwards from them. A scan is needed whole: an executor that
/// combines two stretches in parallel uses every component, also one that no carry of the sequential
/// recurrence reads.
struct liveness {
  bool nodes[max_nodes]{}, scans[max_scans]{}, tensors[max_tensors]{}, parameters[max_parameters]{};
  axis_mask axes = 0;

  constexpr explicit liveness(const program& p) {
    for (const store_decl& store : p.stores) {
      need_tensor(p, store.tensor);
      need(store.value);
    }
    while (pending.count > 0) visit(p, p.nodes[pending[--pending.count]]);
  }

private:
  fixed_list<node_id, max_nodes> pending;

  constexpr void need(node_id id) {
    if (id == no_node || nodes[id]) return;
    nodes[id] = true;
    pending.push_back(id);
  }
  constexpr void need_tensor(const program& p, int tensor) {
    tensors[tensor] = true;
    for (const std::int16_t a : p.tensors[tensor].axes) axes |= axis_bit(a);
  }
  constexpr void need_scan(const program& p, int index) {
    if (scans[index]) return;
    scans[index] = true;
    const scan_decl& s = p.scans[index];
    axes |= s.axes | axis_bit(s.axis);
    if (s.segment_axis >= 0) axes |= axis_bit(s.segment_axis);
    if (s.offsets >= 0) need_tensor(p, s.offsets);
    if (s.reverse_parameter >= 0) parameters[s.reverse_parameter] = true;
    if (s.scaled_by >= 0) need_scan(p, s.scaled_by);
    need(s.every);
    for (int k = 0; k < s.components; ++k) {
      need(s.initial[k]);
      need(s.element[k]);
      need(s.combined[k]);
    }
  }
  constexpr void visit(const program& p, const node& n) {
    axes |= n.axes | named_axes(n);
    for (const node_id operand : n.operand) need(operand);
    if (n.op == opcode::parameter) parameters[n.target] = true;
    if (n.op == opcode::load || n.op == opcode::gather) need_tensor(p, n.target);
    if (n.op == opcode::carry || n.op == opcode::scan || n.op == opcode::last) need_scan(p, n.target);
  }
};

/// New indices of the items that stay, in their old order.
template <int Capacity> struct renumbering {
  std::int16_t index[static_cast<std::size_t>(Capacity)]{};

  constexpr explicit renumbering(const bool (&keep)[static_cast<std::size_t>(Capacity)]) {
    std::int16_t next = 0;
    for (int i = 0; i < Capacity; ++i) index[i] = keep[i] ? next++ : std::int16_t{-1};
  }
  constexpr std::int16_t operator()(int old) const { return old < 0 ? std::int16_t{-1} : index[old]; }
};

struct axis_renumbering {
  axis_mask kept;

  constexpr std::int16_t operator()(int old) const {
    return static_cast<std::int16_t>(old < 0 ? -1 : std::popcount(kept & (axis_bit(old) - 1)));
  }
  constexpr axis_mask mask(axis_mask old) const {
    axis_mask result = 0;
    for (int a = 0; a < max_axes; ++a)
      if (old & axis_bit(a)) result |= axis_bit((*this)(a));
    return result;
  }
};

/// Copies the live parts of a program under their new indices.
struct pruning {
  const program& source;
  liveness live;
  renumbering<max_nodes> nodes;
  renumbering<max_scans> scans;
  renumbering<max_tensors> tensors;
  renumbering<max_parameters> parameters;
  axis_renumbering axes;

  constexpr explicit pruning(const program& p)
      : source(p), live(p), nodes(live.nodes), scans(live.scans), tensors(live.tensors),
        parameters(live.parameters), axes{live.axes} {}

  constexpr tensor_decl renumbered(tensor_decl t) const {
    for (std::int16_t& a : t.axes) a = axes(a);
    return t;
  }
  constexpr node renumbered(node n) const {
    for (node_id& operand : n.operand) operand = nodes(operand);
    n.axes = axes.mask(n.axes);
    switch (n.op) {
    case opcode::parameter: n.target = parameters(n.target); break;
    case opcode::load:
    case opcode::gather: n.target = tensors(n.target); break;
    case opcode::index:
    case opcode::extent: n.target = axes(n.target); break;
    case opcode::carry:
    case opcode::scan:
    case opcode::last: n.target = scans(n.target); break;
    case opcode::sum: n.target = static_cast<std::int16_t>(axes.mask(summed_axes(n))); break;
    case opcode::constant:
    case opcode::apply:
    case opcode::left:
    case opcode::right: break;
    }
    return n;
  }
  constexpr scan_decl renumbered(scan_decl s) const {
    s.axis = axes(s.axis);
    s.axes = axes.mask(s.axes);
    s.segment_axis = axes(s.segment_axis);
    s.offsets = tensors(s.offsets);
    s.reverse_parameter = parameters(s.reverse_parameter);
    s.every = nodes(s.every);
    s.scaled_by = scans(s.scaled_by);
    for (int k = 0; k < s.components; ++k) {
      s.initial[k] = nodes(s.initial[k]);
      s.element[k] = nodes(s.element[k]);
      s.combined[k] = nodes(s.combined[k]);
    }
    return s;
  }
  template <class List> constexpr void copy(const List& from, const bool* keep, List& to) const {
    for (int i = 0; i < from.count; ++i)
      if (keep[i]) to.push_back(renumbered(from[i]));
  }
};

}  // namespace detail

/// The program without what its stores do not need: nodes, scans, tensors, parameters and axes are renumbered
/// and keep their order.
constexpr program prune(const program& p) {
  const detail::pruning pruned{p};
  program result;
  result.id = p.id;
  result.is_gradient = p.is_gradient;
  for (int a = 0; a < p.axes.count; ++a)
    if (pruned.live.axes & axis_bit(a)) result.parts[result.axes.push_back(p.axes[a])] = p.parts[a];
  for (int i = 0; i < p.parameters.count; ++i)
    if (pruned.live.parameters[i]) result.parameters.push_back(p.parameters[i]);
  pruned.copy(p.tensors, pruned.live.tensors, result.tensors);
  pruned.copy(p.nodes, pruned.live.nodes, result.nodes);
  pruned.copy(p.scans, pruned.live.scans, result.scans);
  for (const store_decl& store : p.stores)
    result.stores.push_back({pruned.tensors(store.tensor), pruned.nodes(store.value)});
  return result;
}

}  // namespace scandsl
