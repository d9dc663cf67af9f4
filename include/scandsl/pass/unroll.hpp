#pragma once
#include "scandsl/pass/rewrite.hpp"

namespace scandsl {
namespace detail {

/// The most expressions that are stacked along one axis, to be unrolled; longer stacks remain choices.
inline constexpr int max_unrolled_parts = 4;

constexpr bool is_unrolled(const program& p, int axis) {
  if (p.parts[axis] < 1 || p.parts[axis] > max_unrolled_parts) return false;
  for (const scan_decl& s : p.scans)
    if (s.axis == axis || s.segment_axis == axis) return false;
  return true;
}

/// Copies a program once for each position of an axis; what does not vary along it once.
struct unrolling {
  const program& source;
  rewriting copy;
  int along, parts;
  node_id nodes[max_unrolled_parts][max_nodes]{};       ///< by part, then by source node
  std::int16_t scans[max_unrolled_parts][max_scans]{};  ///< by part, then by source scan

  constexpr unrolling(const program& p, int axis) : source(p), copy(p), along(axis), parts(p.parts[axis]) {
    for (auto& of_part : scans)
      for (std::int16_t& s : of_part) s = -1;
    const liveness live(p);
    for (int i = 0; i < p.nodes.count; ++i) {
      if (!live.nodes[i]) continue;
      const node n = p.nodes[i];
      for (int part = 0; part < parts; ++part)
        nodes[part][i] = part == 0 || varies(n) ? of_part(n, part) : nodes[0][i];
    }
    for (const store_decl& store : p.stores)
      for (int part = 0; part < (varies(p.tensors[store.tensor].mask()) ? parts : 1); ++part)
        copy.target.result.stores.push_back({slice(store.tensor, part), nodes[part][store.value]});
  }

private:
  constexpr bool varies(axis_mask axes) const { return (axes & axis_bit(along)) != 0; }
  constexpr bool varies(const node& n) const { return varies(n.axes); }

  constexpr node_id of_part(const node& n, int part) {
    builder& b = copy.target;
    if (n.op == opcode::index && n.target == along) return b.constant(part, value_kind::integer);
    if (n.op == opcode::extent && n.target == along) return b.constant(parts, value_kind::integer);
    if (varies(summed_axes(n))) return total(n);
    enter(n, part);
    node read = n;
    if (n.op == opcode::load || n.op == opcode::gather) read.target = slice(n.target, part);
    if (n.op == opcode::load) read.axes &= ~axis_bit(along);
    const node_id result = copy.copy(read);
    if (n.op == opcode::carry || n.op == opcode::scan || n.op == opcode::last)
      scans[part][n.target] = copy.scans[n.target];
    return result;
  }
  constexpr node_id total(const node& n) {
    node_id sum = nodes[0][n.operand[0]];
    for (int part = 1; part < parts; ++part)
      sum = copy.target.apply(primitive::index<primitive::add_op>, sum, nodes[part][n.operand[0]]);
    return copy.target.sum(sum, summed_axes(n) & ~axis_bit(along));
  }

  /// Lets `copy` see one part's copies of what a node reads.
  constexpr void enter(const node& n, int part) {
    for (const node_id operand : n.operand) show(operand, part);
    if (n.op != opcode::carry && n.op != opcode::scan && n.op != opcode::last) return;
    const scan_decl& s = source.scans[n.target];
    copy.scans[n.target] = scans[part][n.target];
    show(s.every, part);
    for (int k = 0; k < s.components; ++k) {
      show(s.initial[k], part);
      show(s.element[k], part);
      show(s.combined[k], part);
    }
  }
  constexpr void show(node_id id, int part) {
    if (id != no_node) copy.nodes[id] = nodes[part][id];
  }

  /// A tensor at one position of the axis: itself where it does not vary along it.
  constexpr std::int16_t slice(int tensor, int part) {
    tensor_decl at = source.tensors[tensor];
    if (!varies(at.mask())) return static_cast<std::int16_t>(tensor);
    for (int i = 0; i < at.axes.count; ++i)
      if (at.axes[i] == along) at.place[i] = static_cast<std::int16_t>(part + 1);
    return find_or_add(copy.target.result, at);
  }

public:
  /// The tensor that is read or written in this way.
  static constexpr std::int16_t find_or_add(program& p, const tensor_decl& wanted) {
    for (int t = 0; t < p.tensors.count; ++t)
      if (p.tensors[t] == wanted) return static_cast<std::int16_t>(t);
    return static_cast<std::int16_t>(p.tensors.push_back(wanted));
  }
};

}  // namespace detail

/// The axes along which expressions are stacked, written out: each position becomes values, loads and stores
/// of its own, and a sum along such an axis a sum of terms. A choice by the position then costs nothing. Axes
/// that a scan walks, and stacks of many expressions, stay.
constexpr program unroll(program p) {
  for (int a = 0; a < p.axes.count; ++a)
    if (detail::is_unrolled(p, a)) p = detail::unrolling(p, a).copy.target.result;
  return prune(p);
}

}  // namespace scandsl
