#pragma once
#include "scandsl/expr/expression.hpp"
#include "scandsl/pass/simplify.hpp"

namespace scandsl {

/// What `without(bias)` gives: an optional operand that stays unbound.
template <fixed_string N> struct left_out {
  static constexpr auto text = N;
};
template <class Operand>
  requires is_tensor<Operand>
constexpr auto without(const Operand&) {
  return left_out<Operand::text>{};
}

namespace detail {

/// What is known of a program's operands.
struct known_operands {
  bool has_value[max_parameters]{}, absent[max_tensors]{};
  double value[max_parameters]{};

  template <class Known> constexpr void take(const program& p, const Known& given) {
    constexpr name id = Known::text.value();
    if constexpr (requires { given.value; }) {
      const int t = p.find_parameter(id);
      if (t < 0) throw "scandsl: specialise: the program has no scalar of that name";
      has_value[t] = true;
      value[t] = given.value;
    } else {
      const int t = p.find_tensor(id);
      if (t < 0 || !p.tensors[t].optional)
        throw "scandsl: specialise: the program has no optional operand of that name";
      absent[t] = true;
    }
  }
};

/// The program with the directions that are known, and without the outputs that are left out.
constexpr program with_known_directions(program p, const known_operands& known) {
  for (int s = 0; s < p.scans.count; ++s) {
    scan_decl& scan = p.scans[s];
    if (scan.reverse_parameter < 0 || !known.has_value[scan.reverse_parameter]) continue;
    scan.reversed = scan.reversed != (known.value[scan.reverse_parameter] != 0.0);
    scan.reverse_parameter = -1;
  }
  const auto all = p.stores;
  p.stores = fixed_list<store_decl, max_stores>{};
  for (int i = 0; i < all.count; ++i)
    if (!known.absent[all[i].tensor]) p.stores.push_back(all[i]);
  return p;
}

}  // namespace detail

/// The program for calls in which some scalars have the given values and some optional operands are not
/// bound:
///   specialise(p, softcap = 0.0, without(bias))
/// What that decides is decided: a choice keeps the side that is taken, a direction is fixed, what is not
/// needed any more is gone. The result has neither those scalars nor those operands. Throws (in a constant
/// expression: does not compile) where p has no such scalar or optional operand.
///
/// Partial evaluation: Jones, Gomard and Sestoft, "Partial Evaluation and Automatic Program Generation",
/// 1993.
template <class... Known>
  requires(sizeof...(Known) > 0)
constexpr program specialise(const program& p, const Known&... given) {
  detail::known_operands known;
  (known.take(p, given), ...);
  const program turned = detail::with_known_directions(p, known);
  return simplify(rewrite(turned, [&](rewriting& copy, const node& old) {
    if (old.op == opcode::parameter && known.has_value[old.target])
      return copy.target.constant(known.value[old.target], old.kind);
    if ((old.op == opcode::load || old.op == opcode::gather) && known.absent[old.target])
      return copy.target.constant(turned.tensors[old.target].fallback, old.kind);
    return copy.copy(old);
  }));
}

}  // namespace scandsl
