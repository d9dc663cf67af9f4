#pragma once
#include <array>

#include "scandsl/expr/functions.hpp"
#include "scandsl/ir/program.hpp"

namespace scandsl {

/// Whether a node's value is a condition.
constexpr bool is_truth(const node& n) {
  constexpr auto kinds = []<class... P>(std::type_identity<std::tuple<P...>>) {
    return std::array<value_kind, sizeof...(P)>{P::result...};
  }(std::type_identity<primitive::primitive_list>{});
  return n.op == opcode::apply && kinds[n.function] == value_kind::truth;
}

/// Grows a program. Equal nodes are shared, equal scans too: common subexpressions exist once.
struct builder {
  program result;

  constexpr int axis(const name& id) {
    const int found = result.find_axis(id);
    return found >= 0 ? found : result.axes.push_back(id);
  }

  constexpr node_id add(const node& n) {
    for (int i = 0; i < result.nodes.count; ++i)
      if (result.nodes[i] == n) return static_cast<node_id>(i);
    return static_cast<node_id>(result.nodes.push_back(n));
  }

  constexpr node_id constant(double value) {
    node n;
    n.value = value;
    return add(n);
  }

  constexpr node_id parameter(const parameter_decl& declared) {
    int index = result.find_parameter(declared.id);
    if (index < 0)
      index = result.parameters.push_back(declared);
    else if (!(result.parameters[index] == declared))
      throw "scandsl: a scalar is used with two different fallbacks, or with and without one";
    node n;
    n.op = opcode::parameter;
    n.target = static_cast<std::int16_t>(index);
    return add(n);
  }

  /// Declares a tensor; a name means one tensor, with one list of axes and one role.
  constexpr int tensor(const tensor_decl& declared) {
    const int found = result.find_tensor(declared.id);
    if (found < 0) return result.tensors.push_back(declared);
    const tensor_decl& known = result.tensors[found];
    if (known.role != declared.role)
      throw "scandsl: one name stands for an input and an output (or for offsets); give them different names";
    if (!(known.axes == declared.axes)) throw "scandsl: a tensor is used with two different lists of axes";
    if (!(known == declared))
      throw "scandsl: a tensor is used with two different fallbacks, or with and without one";
    return found;
  }

  constexpr node_id load(const tensor_decl& declared) {
    node n;
    n.op = opcode::load;
    n.target = static_cast<std::int16_t>(tensor(declared));
    n.axes = declared.mask();
    return add(n);
  }

  constexpr node_id placeholder(opcode side, int component) {
    node n;
    n.op = side;
    n.target = static_cast<std::int16_t>(component);
    return add(n);
  }

  constexpr node_id apply(int function, node_id a, node_id b = no_node, node_id c = no_node) {
    node n;
    n.op = opcode::apply;
    n.function = static_cast<std::uint8_t>(function);
    const node_id operands[3] = {a, b, c};
    for (int i = 0; i < 3; ++i) {
      n.operand[i] = operands[i];
      if (operands[i] != no_node) n.axes |= result.nodes[operands[i]].axes;
    }
    return add(n);
  }

  /// The sum of a value along axes, in no particular order. A sum of a sum is one sum.
  constexpr node_id sum(node_id of, axis_mask along) {
    if (along == 0) return of;
    const node& inner = result.nodes[of];
    if ((summed_axes(inner) & along) == 0 && inner.op == opcode::sum)
      return sum(inner.operand[0], along | summed_axes(inner));
    node n;
    n.op = opcode::sum;
    n.operand[0] = of;
    n.target = static_cast<std::int16_t>(along);
    n.axes = inner.axes & ~along;
    return add(n);
  }

  constexpr int scan(const scan_decl& declared) {
    for (int s = 0; s < result.scans.count; ++s)
      if (result.scans[s] == declared) return s;
    return result.scans.push_back(declared);
  }

  /// opcode::carry, scan or last of a declared scan.
  constexpr node_id scan_value(opcode which, int scan_index, int component) {
    const scan_decl& s = result.scans[scan_index];
    node n;
    n.op = which;
    n.target = static_cast<std::int16_t>(scan_index);
    n.component = static_cast<std::int16_t>(component);
    n.axes = s.axes;
    if (which == opcode::last) {
      n.axes &= ~axis_bit(s.axis);
      if (s.segment_axis >= 0) n.axes |= axis_bit(s.segment_axis);
    }
    return add(n);
  }
};

/// A node of a program under construction, with the language's operators: user functions, scan operators and
/// derivative rules are written once and called on terms. A number is a term that has not met a builder yet.
struct term {
  using symbolic_tag = void;

  builder* owner = nullptr;
  node_id id = no_node;
  double number = 0.0;

  constexpr term(builder& b, node_id n) : owner(&b), id(n) {}
  constexpr term(double value) : number(value) {}
  template <class E>
    requires(expression<E> || is_tensor<E>)
  constexpr term(const E&) {
    static_assert(sizeof(E) == 0,
                  "scandsl: a function or scan operator uses an expression from outside; pass it as an "
                  "argument: fn([](auto x, auto t) { ... })(x(n), t(n))");
  }

  constexpr node_id in(builder& b) const { return id != no_node ? id : b.constant(number); }

  template <class P, class... A> static constexpr term apply(const A&... arguments) {
    const std::array<term, sizeof...(A)> terms{term(arguments)...};
    builder* b = nullptr;
    for (const term& t : terms)
      if (t.owner != nullptr) b = t.owner;
    if (b == nullptr) throw "scandsl: a function of numbers alone; compute it in C++ instead";
    for (int i = 0; i < static_cast<int>(terms.size()); ++i) {
      const bool truth = is_truth(b->result.nodes[terms[static_cast<std::size_t>(i)].in(*b)]);
      if (truth != (primitive::argument_kind<P>(i) == value_kind::truth))
        throw "scandsl: a condition where a value is taken, or a value where a condition is";
    }
    node_id operands[3] = {no_node, no_node, no_node};
    for (std::size_t i = 0; i < terms.size(); ++i) operands[i] = terms[i].in(*b);
    return term(*b, b->apply(primitive::index<P>, operands[0], operands[1], operands[2]));
  }
};

}  // namespace scandsl
