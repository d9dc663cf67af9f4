#pragma once
#include <array>

#include "scandsl/pass/simplify.hpp"

/// What gradient (reverse mode) and jvp (forward mode) share.
namespace scandsl {
namespace detail {

/// A program to which the formulas of a derivative are added; the nodes of the source keep their numbers.
/// What is added is simplified on the way, and here a factor 0 makes a product 0: it says that no path leads
/// there, whatever the other factor is. So the zeros of a select, which a derivative rule wrote, stay zeros
/// also beside an infinite or undefined factor: select(c, g, 0) * h is select(c, g * h, 0). The same is not
/// done to zeros that the source computes.
class derivation {
public:
  builder target;

  constexpr explicit derivation(const program& source) {
    target.result = source;
    target.result.stores.count = 0;
  }

  constexpr const node& at(node_id id) const { return target.result.nodes[id]; }
  constexpr bool equals(node_id id, double value) const {
    return at(id).op == opcode::constant && at(id).value == value;
  }
  constexpr bool is_zero(node_id id) const { return equals(id, 0.0); }
  /// A select that a derivative rule made, one side of which is zero.
  constexpr bool is_masked(node_id id) const { return masked_[id]; }

  /// A formula of the source in its simplest form; it hides no NaN.
  constexpr node_id apply_as_written(int f, node_id x, node_id y = no_node, node_id z = no_node) {
    ordered_builder ordered{target};
    return algebra<ordered_builder>{ordered}.apply(f, x, y, z);
  }

  /// A formula of the derivative.
  constexpr node_id apply(int f, node_id x, node_id y = no_node, node_id z = no_node) {
    using namespace primitive;
    using primitive::index;
    if (f == index<multiply_op>) return product(x, y);
    if (f == index<divide_op>) return quotient(x, y);
    if (f == index<add_op> && is_negated(y)) return apply(index<subtract_op>, x, at(y).operand[0]);
    if (f == index<subtract_op> && is_negated(y)) return apply(index<add_op>, x, at(y).operand[0]);
    if ((f == index<add_op> || f == index<subtract_op>) && have_one_mask(x, y)) {
      const node one = at(x), other = at(y);
      return choice(one.operand[0], apply(f, one.operand[1], other.operand[1]),
                    apply(f, one.operand[2], other.operand[2]));
    }
    if (f == index<select_op>) return choice(x, y, z);
    return apply_as_written(f, x, y, z);
  }

  /// The sum along axes. A sign stays outside.
  constexpr node_id sum(node_id of, axis_mask along) {
    if (along == 0 || is_zero(of)) return of;
    return is_negated(of) ? negated(sum(at(of).operand[0], along)) : target.sum(of, along);
  }

  /// Declares a scan whose axes follow from its elements and initial values.
  constexpr int declare(scan_decl s) {
    const axis_mask segments = s.segment_axis < 0 ? 0 : axis_bit(s.segment_axis);
    s.axes = axis_bit(s.axis);
    for (int k = 0; k < s.components; ++k) {
      s.axes |= at(s.element[k]).axes;
      if (s.initial[k] != no_node) s.axes |= at(s.initial[k]).axes & ~segments;
    }
    return target.scan(s);
  }

  /// Drops the nodes from `first` on that none of `kept` needs. The others get new numbers; nothing but
  /// `kept` and these nodes themselves may know the old ones.
  template <std::size_t N> constexpr void keep_only(int first, std::array<node_id, N>& kept) {
    fixed_list<node, max_nodes>& nodes = target.result.nodes;
    bool needed[max_nodes] = {};
    for (const node_id id : kept)
      if (id >= first) needed[id] = true;
    for (int i = nodes.count; i-- > first;)
      for (const node_id operand : nodes[i].operand)
        if (needed[i] && operand >= first) needed[operand] = true;
    node_id moved[max_nodes] = {};
    int next = first;
    for (int i = first; i < nodes.count; ++i) {
      const bool masks = masked_[i];
      masked_[i] = false;
      if (!needed[i]) continue;
      node each = nodes[i];
      for (node_id& operand : each.operand)
        if (operand >= first) operand = moved[operand];
      moved[i] = static_cast<node_id>(next);
      masked_[next] = masks;
      nodes[next++] = each;
    }
    nodes.count = next;
    for (node_id& id : kept)
      if (id >= first) id = moved[id];
  }

private:
  bool masked_[max_nodes]{};

  constexpr bool is_negated(node_id x) const { return is_apply<primitive::neg_op>(at(x)); }
  constexpr bool have_one_mask(node_id x, node_id y) const {
    return is_masked(x) && is_masked(y) && at(x).operand[0] == at(y).operand[0];
  }
  constexpr node_id negated(node_id x) { return apply_as_written(primitive::index<primitive::neg_op>, x); }

  /// A sign stays outside of a mask.
  constexpr node_id choice(node_id condition, node_id x, node_id y) {
    if (is_zero(x) && is_negated(y)) return negated(choice(condition, x, at(y).operand[0]));
    if (is_zero(y) && is_negated(x)) return negated(choice(condition, at(x).operand[0], y));
    const int before = target.result.nodes.count;
    const node_id made = apply_as_written(primitive::index<primitive::select_op>, condition, x, y);
    if (made >= before && is_apply<primitive::select_op>(at(made)))
      masked_[made] = is_zero(at(made).operand[1]) || is_zero(at(made).operand[2]);
    return made;
  }
  constexpr node_id product(node_id x, node_id y) {
    if (is_zero(x) || is_zero(y)) return target.constant(0.0);
    if (is_negated(x)) return negated(product(at(x).operand[0], y));
    if (is_negated(y)) return negated(product(x, at(y).operand[0]));
    if (!is_masked(x) && is_masked(y)) return product(y, x);
    if (!is_masked(x)) return apply_as_written(primitive::index<primitive::multiply_op>, x, y);
    const node mask = at(x);
    return choice(mask.operand[0], product(mask.operand[1], y), product(mask.operand[2], y));
  }
  constexpr node_id quotient(node_id x, node_id y) {
    if (is_zero(x)) return x;
    if (is_negated(x)) return negated(quotient(at(x).operand[0], y));
    if (!is_masked(x)) return apply_as_written(primitive::index<primitive::divide_op>, x, y);
    const node mask = at(x);
    return choice(mask.operand[0], quotient(mask.operand[1], y), quotient(mask.operand[2], y));
  }
};

}  // namespace detail

/// A node of a derivation, with the language's operators: derivative rules are called on quantities.
struct quantity {
  using symbolic_tag = void;
  using derivation = detail::derivation;

  // All members of a default quantity are zero bits: in constant expressions GCC 12 fills the elements of
  // some nested arrays so, whatever their initialisers say.
  derivation* owner = nullptr;
  node_id id = 0;
  double number = 0.0;  ///< without an owner: a number that has not met one yet

  constexpr quantity() = default;
  constexpr quantity(double value) : number(value) {}
  constexpr quantity(derivation& d, node_id n) : owner(&d), id(n) {}

  constexpr node_id in(derivation& d) const { return owner != nullptr ? id : d.target.constant(number); }
  constexpr bool equals(double value) const {
    return owner == nullptr ? number == value : owner->equals(id, value);
  }
  constexpr bool is_zero() const { return equals(0.0); }

  template <class P, class... A> static constexpr quantity apply(const A&... arguments) {
    const std::array<quantity, sizeof...(A)> given{quantity(arguments)...};
    derivation* built = nullptr;
    for (const quantity& each : given)
      if (each.owner != nullptr) built = each.owner;
    if (built == nullptr) throw "scandsl: a derivative rule computes with numbers alone; write the result";
    node_id operands[3] = {no_node, no_node, no_node};
    for (std::size_t i = 0; i < given.size(); ++i) operands[i] = given[i].in(*built);
    built->target.fit(primitive::index<P>, operands);
    return quantity(*built, built->apply(primitive::index<P>, operands[0], operands[1], operands[2]));
  }
};

namespace detail {

using operand_quantities = std::array<quantity, 3>;

/// P::pullback for any P: the cotangents of its arguments.
template <class P>
constexpr operand_quantities pullback_of(quantity cotangent, const operand_quantities& arguments,
                                         quantity value) {
  operand_quantities result{};
  const auto keep = [&result](const auto& cotangents) {
    for (std::size_t i = 0; i < cotangents.size(); ++i) result[i] = cotangents[i];
  };
  if constexpr (P::result != value_kind::real)
    return result;  // conditions and integers pass nothing
  else if constexpr (P::arity == 1)
    keep(P::pullback(cotangent, arguments[0], value));
  else if constexpr (P::arity == 2)
    keep(P::pullback(cotangent, arguments[0], arguments[1], value));
  else
    keep(P::pullback(cotangent, arguments[0], arguments[1], arguments[2], value));
  return result;
}
inline constexpr auto pullbacks = []<class... P>(std::type_identity<std::tuple<P...>>) {
  return std::array{&pullback_of<P>...};
}(std::type_identity<primitive::primitive_list>{});

/// The cotangents of those of a node's operands that `is_wanted`, 0 for the others; `value` gives the
/// quantity of a node.
template <class Value, class IsWanted>
constexpr operand_quantities pull_back(derivation& built, const node& applied, quantity cotangent,
                                       quantity its_value, Value value, IsWanted is_wanted) {
  operand_quantities arguments{};
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (applied.operand[i] != no_node) arguments[i] = value(applied.operand[i]);
  const int before = built.target.result.nodes.count;
  operand_quantities result = pullbacks[applied.function](cotangent, arguments, its_value);
  std::array<node_id, 3> kept{no_node, no_node, no_node};
  for (std::size_t i = 0; i < result.size(); ++i)
    if (applied.operand[i] != no_node && is_wanted(applied.operand[i])) kept[i] = result[i].in(built);
  built.keep_only(before, kept);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = kept[i] == no_node ? quantity() : quantity(built, kept[i]);
  return result;
}

/// Sets of a scan's components, as bits.
using component_mask = std::uint16_t;
constexpr bool has(component_mask mask, int component) { return (mask >> component & 1U) != 0; }
constexpr component_mask component_bit(int component) { return static_cast<component_mask>(1U << component); }
static_assert(max_components <= 16);

/// What depends on what: which nodes vary with the operands that a derivative is taken with respect to, and
/// which components of the two states a node of a combine reads.
struct dependence {
  bool varied[max_nodes]{};
  component_mask left[max_nodes]{}, right[max_nodes]{};
  component_mask varied_components[max_scans]{};

  /// `is_variable(node)`: whether a load, a gather or a parameter reads such an operand.
  template <class IsVariable> constexpr dependence(const program& p, IsVariable is_variable) {
    bool known[max_scans] = {};
    for (int i = 0; i < p.nodes.count; ++i) {
      const node& n = p.nodes[i];
      if (n.op == opcode::left) left[i] = component_bit(n.target);
      if (n.op == opcode::right) right[i] = component_bit(n.target);
      for (const node_id operand : n.operand) {
        if (operand == no_node) continue;
        left[i] |= left[operand];
        right[i] |= right[operand];
        varied[i] = varied[i] || varied[operand];
      }
      if (n.op == opcode::load || n.op == opcode::gather || n.op == opcode::parameter)
        varied[i] = is_variable(n);
      if (n.kind != value_kind::real || is_apply<primitive::stop_gradient_op>(n)) varied[i] = false;
      if (!is_scan_value(n)) continue;
      if (!known[n.target]) find_components(p, n.target);
      known[n.target] = true;
      varied[i] = has(varied_components[n.target], n.component);
    }
  }
  constexpr bool inside_combine(node_id id) const { return left[id] != 0 || right[id] != 0; }
  /// The components of `wanted` and all whose carries they follow from.
  constexpr component_mask with_carries(const scan_decl& s, component_mask wanted) const {
    for (component_mask before = 0; before != wanted;) {
      before = wanted;
      for (int k = 0; k < s.components; ++k)
        if (has(wanted, k)) wanted |= left[s.combined[k]];
    }
    return wanted;
  }

private:
  constexpr void find_components(const program& p, int scan) {
    const scan_decl& s = p.scans[scan];
    component_mask elements = 0, states = 0;
    for (int k = 0; k < s.components; ++k) {
      if (varied[s.element[k]]) elements |= component_bit(k);
      if (s.initial[k] != no_node && varied[s.initial[k]]) states |= component_bit(k);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (int k = 0; k < s.components; ++k) {
        const bool reached = (left[s.combined[k]] & states) != 0 || (right[s.combined[k]] & elements) != 0;
        changed = changed || (reached && !has(states, k));
        if (reached) states |= component_bit(k);
      }
    }
    varied_components[scan] = states;
  }
};

/// The name with `prefix` in front, as often as it takes to be new among the tensors and scalars of `p`.
constexpr name derived_name(const program& p, char prefix, const name& of) {
  name result = of;
  do {
    if (result.size() + 1 >= name_capacity)
      throw "scandsl: a derivative's name has at most 23 characters; give the tensor or scalar a shorter one";
    for (std::size_t i = result.size(); i > 0; --i) result.text[i] = result.text[i - 1];
    result.text[0] = prefix;
  } while (p.find_tensor(result) >= 0 || p.find_parameter(result) >= 0);
  return result;
}
/// A program's name with the prefix, cut where it gets too long: it is there to be read.
constexpr name derived_title(char prefix, const name& of) {
  name result;
  result.text[0] = prefix;
  for (std::size_t i = 0; i < of.size() && i + 2 < name_capacity; ++i) result.text[i + 1] = of.text[i];
  return result;
}

}  // namespace detail
}  // namespace scandsl
