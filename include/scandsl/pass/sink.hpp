#pragma once
#include "scandsl/pass/rewrite.hpp"

namespace scandsl {
namespace detail {

/// Whether a node follows from constants and parameters alone. (No axes is not enough: a combine's operands
/// have none either.)
constexpr bool is_uniform(const program& p, node_id x) {
  const node& n = p.nodes[x];
  if (n.op != opcode::apply) return n.op == opcode::constant || n.op == opcode::parameter;
  for (const node_id operand : n.operand)
    if (operand != no_node && !is_uniform(p, operand)) return false;
  return true;
}

/// The most selects that one may become.
inline constexpr int most_sunk_selects = 2;

/// How many selects select(c, x, y) becomes when functions that both sides share are applied after it.
constexpr int sunk_selects(const program& p, node_id x, node_id y) {
  if (x == y) return 0;
  const node &one = p.nodes[x], &other = p.nodes[y];
  if (one.op != opcode::apply || other.op != opcode::apply || one.function != other.function ||
      is_apply<primitive::select_op>(one) || is_truth(one))
    return 1;
  int count = 0;
  for (int k = 0; k < 3; ++k)
    if (one.operand[k] != no_node) {
      if (is_truth(p.nodes[one.operand[k]])) return most_sunk_selects + 1;
      count += sunk_selects(p, one.operand[k], other.operand[k]);
    }
  return count;
}

constexpr node_id sink(builder& b, node_id condition, node_id x, node_id y) {
  if (x == y) return x;
  const node one = b.result.nodes[x], other = b.result.nodes[y];
  if (one.op != opcode::apply || other.op != opcode::apply || one.function != other.function ||
      is_apply<primitive::select_op>(one))
    return b.apply(primitive::index<primitive::select_op>, condition, x, y);
  node_id operands[3] = {no_node, no_node, no_node};
  for (int k = 0; k < 3; ++k)
    if (one.operand[k] != no_node) operands[k] = sink(b, condition, one.operand[k], other.operand[k]);
  return b.apply(one.function, operands[0], operands[1], operands[2]);
}

constexpr bool has_operand(const node& n, node_id x) {
  return n.operand[0] == x || n.operand[1] == x || n.operand[2] == x;
}

/// The copy of side k (1 or 2) of a select. An operand of it that is an exponential or the like, f(d),
/// becomes the select between f(d) and d on the same condition, if there was one before: on that side it is
/// the same, and f(d) may then have no other user. (Of another value than d the side would need to know more,
/// and perhaps vary along more axes.)
constexpr node_id side_of_choices(rewriting& copy, const node& choice, int k) {
  const node& side = copy.source.nodes[choice.operand[k]];
  if (side.op != opcode::apply || is_apply<primitive::select_op>(side)) return copy.at(choice.operand[k]);
  const auto chosen = [&](node_id x) {
    if (x != no_node && is_transcendental(copy.source.nodes[x]))
      for (node_id i = 0; copy.source.nodes[i] != choice; ++i) {
        const node& earlier = copy.source.nodes[i];
        if (is_apply<primitive::select_op>(earlier) && earlier.operand[0] == choice.operand[0] &&
            earlier.operand[k] == x && has_operand(copy.source.nodes[x], earlier.operand[3 - k]) &&
            copy.nodes[i] != no_node)
          return copy.at(i);
      }
    return copy.at(x);
  };
  return copy.target.apply(side.function, chosen(side.operand[0]), chosen(side.operand[1]),
                           chosen(side.operand[2]));
}

}  // namespace detail

/// select(c, f(x), f(y)) as f(select(c, x, y)) where c is the same everywhere (a flag such as `exclusive`):
/// the function is then computed once, without a branch. (Not where one side is an operand of the other,
/// which is then computed in any case.) And where there is select(c, exp(d), d), select(c, g(exp(d)), y) as
/// select(c, g(select(c, exp(d), d)), y).
constexpr program sink_selects(const program& p) {
  return rewrite(p, [](rewriting& copy, const node& old) {
    if (!is_apply<primitive::select_op>(old) || !detail::is_uniform(copy.source, old.operand[0]))
      return copy.copy(old);
    const node_id condition = copy.at(old.operand[0]), x = detail::side_of_choices(copy, old, 1),
                  y = detail::side_of_choices(copy, old, 2);
    const fixed_list<node, max_nodes>& nodes = copy.target.result.nodes;
    if (detail::has_operand(nodes[x], y) || detail::has_operand(nodes[y], x) ||
        detail::sunk_selects(copy.target.result, x, y) > detail::most_sunk_selects)
      return copy.target.apply(primitive::index<primitive::select_op>, condition, x, y);
    return detail::sink(copy.target, condition, x, y);
  });
}

}  // namespace scandsl
