#pragma once
#include <limits>

#include "scandsl/expr/operators.hpp"
#include "scandsl/pass/rewrite.hpp"

/// Programs as executors walk them, for the interpreter.
namespace support {

using namespace scandsl;

namespace detail {

/// A tensor that is read or written where `places` say, as what it is in memory: all of it.
inline std::int16_t whole(program& p, int tensor) {
  const auto first = static_cast<std::int16_t>(p.find_tensor(p.tensors[tensor].id));
  for (std::int16_t& place : p.tensors[first].place) place = 0;
  return first;
}

/// The element that a load or a gather reads, every dimension that is fixed at a position being one that is
/// computed.
inline node_id element(rewriting& copy, const node& n) {
  const tensor_decl read = copy.source.tensors[n.target];
  node_id positions[3] = {no_node, no_node, no_node};
  unsigned dimensions = 0;
  for (int i = 0, computed = 0, from = 0; i < read.axes.count; ++i) {
    const bool is_computed = n.op == opcode::gather && (n.function >> i & 1U) != 0;
    if (!is_computed && read.place[i] <= 0) continue;
    dimensions |= 1U << i;
    positions[from++] = is_computed ? copy.at(n.operand[computed++])
                                    : copy.target.constant(read.place[i] - 1, primitive::value_kind::integer);
  }
  const std::int16_t tensor = whole(copy.target.result, n.target);
  if (dimensions != 0) return copy.target.gather(tensor, static_cast<std::uint8_t>(dimensions), positions);
  return copy.target.load(copy.target.result.tensors[tensor]);
}

/// All that is stored to the output of one name, by position; NaN where nothing is.
inline node_id stored_whole(rewriting& copy, const name& output) {
  builder& b = copy.target;
  term chosen(b, b.constant(std::numeric_limits<double>::quiet_NaN()));
  for (const store_decl& store : copy.source.stores) {
    const tensor_decl& written = copy.source.tensors[store.tensor];
    if (!(written.id == output)) continue;
    term value(b, copy.at(store.value));
    for (int i = 0; i < written.axes.count; ++i)
      if (written.place[i] > 0) {
        const term position(b, b.constant(written.place[i] - 1, primitive::value_kind::integer));
        value = select(term(b, b.index(written.axes[i])) == position, value, chosen);
      }
    chosen = value;
  }
  return chosen.id;
}

}  // namespace detail

/// What a program of executors says, in nodes that the interpreter takes: slices are elements at computed
/// positions or choices by the position, loads of positions are positions, parameters that are extents
/// extents.
inline program interpreted(const program& p) {
  rewriting copy(p);
  const scandsl::detail::liveness live(p);
  for (int i = 0; i < p.nodes.count; ++i) {
    if (!live.nodes[i]) continue;
    const node& n = p.nodes[i];
    if (n.op == opcode::load && p.tensors[n.target].role == tensor_role::positions)
      copy.nodes[i] = copy.target.index(p.tensors[n.target].axes[0]);
    else if (n.op == opcode::load || n.op == opcode::gather)
      copy.nodes[i] = detail::element(copy, n);
    else if (n.op == opcode::parameter && p.parameters[n.target].is_extent)
      copy.nodes[i] = copy.target.extent(p.find_axis(p.parameters[n.target].id));
    else
      copy.nodes[i] = copy.copy(n);
  }
  program& result = copy.target.result;
  for (const store_decl& store : p.stores) {
    const std::int16_t tensor = detail::whole(result, store.tensor);
    bool is_stored = false;
    for (const store_decl& known : result.stores) is_stored = is_stored || known.tensor == tensor;
    if (!is_stored) result.stores.push_back({tensor, detail::stored_whole(copy, p.tensors[tensor].id)});
  }
  return prune(result);
}

}  // namespace support
