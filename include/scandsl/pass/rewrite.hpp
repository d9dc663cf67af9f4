#pragma once
#include "scandsl/ir/builder.hpp"
#include "scandsl/pass/prune.hpp"

namespace scandsl {

constexpr bool is_number(const program& p, node_id id, double value) {
  return p.nodes[id].op == opcode::constant && p.nodes[id].value == value;
}

/// A program while it is copied, node by node, through a builder. Axes, tensors and parameters keep their
/// indices; nodes and scans are mapped.
struct rewriting {
  const program& source;
  builder target;
  node_id nodes[max_nodes]{};       ///< by source node: its copy; no_node where there is none yet
  std::int16_t scans[max_scans]{};  ///< by source scan: its copy; -1 where there is none yet

  constexpr explicit rewriting(const program& p) : source(p) {
    target.result.id = p.id;
    target.result.is_gradient = p.is_gradient;
    target.result.axes = p.axes;
    for (int a = 0; a < max_axes; ++a) target.result.parts[a] = p.parts[a];
    target.result.tensors = p.tensors;
    target.result.parameters = p.parameters;
    for (node_id& n : nodes) n = no_node;
    for (std::int16_t& s : scans) s = -1;
  }

  /// The copy of a source node; no_node stays no_node.
  constexpr node_id at(node_id old) const {
    if (old == no_node) return no_node;
    if (nodes[old] == no_node) throw "scandsl: a program's node is used before it is defined";
    return nodes[old];
  }

  /// A scan of the source in terms of the target. Its axes are found anew: a copied element may vary along
  /// fewer.
  constexpr scan_decl translated(const scan_decl& old) const {
    scan_decl s = old;
    const axis_mask segments = s.segment_axis < 0 ? 0 : axis_bit(s.segment_axis);
    s.axes = axis_bit(s.axis);
    s.every = at(old.every);
    if (s.scaled_by >= 0) s.scaled_by = scans[old.scaled_by];
    for (int k = 0; k < s.components; ++k) {
      s.element[k] = at(old.element[k]);
      s.combined[k] = at(old.combined[k]);
      s.initial[k] = at(old.initial[k]);
      s.axes |= target.result.nodes[s.element[k]].axes;
      if (s.initial[k] != no_node) s.axes |= target.result.nodes[s.initial[k]].axes & ~segments;
    }
    return s;
  }

  /// The copy of a source scan, declared when it is first asked for.
  constexpr int scan(int old) {
    if (scans[old] < 0) scans[old] = static_cast<std::int16_t>(target.scan(translated(source.scans[old])));
    return scans[old];
  }

  /// Copies a source node as it is.
  constexpr node_id copy(const node& old) {
    switch (old.op) {
    case opcode::apply:
      return target.apply(old.function, at(old.operand[0]), at(old.operand[1]), at(old.operand[2]));
    case opcode::carry:
    case opcode::scan:
    case opcode::last: return target.scan_value(old.op, scan(old.target), old.component);
    case opcode::sum: return target.sum(at(old.operand[0]), summed_axes(old));
    case opcode::gather: {
      const node_id positions[3] = {at(old.operand[0]), at(old.operand[1]), at(old.operand[2])};
      return target.gather(old.target, old.function, positions);
    }
    case opcode::index:
    case opcode::extent:
    case opcode::constant:
    case opcode::parameter:
    case opcode::load:
    case opcode::left:
    case opcode::right: break;
    }
    return target.add(old);
  }
};

/// Copies a program and lets `replace(rewriting&, const node& old)` say, in order, what each live node of the
/// source becomes: a node of the target, by default `rewriting::copy(old)`. What is not needed in the end is
/// pruned.
template <class Replace> constexpr program rewrite(const program& source, Replace replace) {
  rewriting copy(source);
  const detail::liveness live(source);
  for (int i = 0; i < source.nodes.count; ++i)
    if (live.nodes[i]) copy.nodes[i] = replace(copy, source.nodes[i]);
  for (const store_decl& store : source.stores)
    copy.target.result.stores.push_back({store.tensor, copy.at(store.value)});
  return prune(copy.target.result);
}

}  // namespace scandsl
