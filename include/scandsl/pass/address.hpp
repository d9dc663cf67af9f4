#pragma once
#include "scandsl/pass/unroll.hpp"

namespace scandsl {
namespace detail {

constexpr name numbered_name(std::string_view prefix, int number) {
  name n = make_name(prefix);
  std::size_t at = prefix.size();
  if (number >= 100) n.text[at++] = static_cast<char>('0' + number / 100);
  if (number >= 10) n.text[at++] = static_cast<char>('0' + number / 10 % 10);
  n.text[at] = static_cast<char>('0' + number % 10);
  return n;
}

/// The position along an axis as the element of a tensor without memory.
constexpr tensor_decl positions_along(int axis) {
  tensor_decl t{
      numbered_name("positions ", axis), {}, tensor_role::positions, false, 0.0, value_kind::integer, {}};
  t.axes.push_back(static_cast<std::int16_t>(axis));
  return t;
}

/// A tensor that is read at computed positions, where `n` computes them.
constexpr tensor_decl tensor_of_gather(const program& p, const node& n) {
  tensor_decl t = p.tensors[n.target];
  for (int i = 0; i < t.axes.count; ++i)
    if (n.function >> i & 1U) t.place[i] = tensor_decl::computed;
  return t;
}

}  // namespace detail

/// The program as drivers walk it: every node that reads memory has a tensor that is read in that way only,
/// so that a tensor's strides say where its elements are from position to position. A position along an axis
/// becomes a load of a tensor in which element i is i: what moves an address moves it. Extents become
/// parameters.
constexpr program address(const program& p) {
  return rewrite(p, [](rewriting& copy, const node& old) {
    program& made = copy.target.result;
    if (old.op == opcode::index) {
      node n = old;
      n.op = opcode::load;
      n.target = detail::unrolling::find_or_add(made, detail::positions_along(old.target));
      return copy.target.add(n);
    }
    if (old.op == opcode::extent)
      return copy.target.parameter({copy.source.axes[old.target], false, 0.0, value_kind::integer, true});
    if (old.op == opcode::gather) {
      node n = old;
      n.target = detail::unrolling::find_or_add(made, detail::tensor_of_gather(copy.source, old));
      return copy.copy(n);
    }
    return copy.copy(old);
  });
}

}  // namespace scandsl
