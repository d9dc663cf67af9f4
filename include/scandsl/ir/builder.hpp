#pragma once
#include <array>

#include "scandsl/expr/functions.hpp"
#include "scandsl/ir/program.hpp"

namespace scandsl {

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

  constexpr node_id constant(double value, value_kind kind = value_kind::real) {
    node n;
    n.value = value;
    n.kind = kind;
    return add(n);
  }
  /// The position along an axis.
  constexpr node_id index(int along) {
    node n = of_axis(opcode::index, along);
    n.axes = axis_bit(along);
    return add(n);
  }
  constexpr node_id extent(int along) { return add(of_axis(opcode::extent, along)); }

  constexpr node_id parameter(const parameter_decl& declared) {
    int index = -1;
    for (int i = 0; i < result.parameters.count; ++i)
      if (result.parameters[i].id == declared.id && result.parameters[i].is_extent == declared.is_extent)
        index = i;
    if (index < 0)
      index = result.parameters.push_back(declared);
    else if (!(result.parameters[index] == declared))
      throw "scandsl: a scalar is used with two different fallbacks, or with and without one";
    node n;
    n.op = opcode::parameter;
    n.kind = declared.kind;
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
    n.kind = declared.kind;
    return add(n);
  }

  /// A tensor's element at positions that are computed in the dimensions that are the bits of `dimensions`,
  /// by one operand each, and current in the others; 0 where such a position is outside of its axis.
  constexpr node_id gather(int of_tensor, std::uint8_t dimensions, const node_id (&positions)[3]) {
    const tensor_decl& t = result.tensors[of_tensor];
    node n;
    n.op = opcode::gather;
    n.target = static_cast<std::int16_t>(of_tensor);
    n.function = dimensions;
    n.kind = t.kind;
    axis_mask computed = 0;
    for (int i = 0; i < t.axes.count; ++i) {
      if (dimensions >> i & 1U)
        computed |= axis_bit(t.axes[i]);
      else if (t.walks(i))
        n.axes |= axis_bit(t.axes[i]);
    }
    for (int i = 0; i < 3; ++i) {
      n.operand[i] = positions[i];
      if (positions[i] != no_node) n.axes |= result.nodes[positions[i]].axes;
    }
    if ((n.axes & computed) != 0)
      throw "scandsl: a computed position varies along an axis on which a position of the same tensor is "
            "computed; "
            "give the tensor's dimension an axis of its own";
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
    n.kind = primitive::result_kind(function,
                                    result.nodes[operands[primitive::signature_of(function).arity - 1]].kind);
    return add(n);
  }

  /// An integer as a real number; other values as they are.
  constexpr node_id as_real(node_id id) {
    const node n = result.nodes[id];
    if (!is_integer(n)) return id;
    if (n.op == opcode::constant) return constant(n.value);
    const auto is_number = [this](node_id each) { return result.nodes[each].op == opcode::constant; };
    if (is_apply<primitive::select_op>(n) && is_number(n.operand[1]) && is_number(n.operand[2]))
      return apply(n.function, n.operand[0], as_real(n.operand[1]), as_real(n.operand[2]));
    return apply(primitive::index<primitive::to_real_op>, id);
  }

  /// Makes of operands what a function takes: an integer beside real values becomes one.
  constexpr void fit(int function, node_id (&operands)[3]) {
    const primitive::signature& wanted = primitive::signature_of(function);
    bool integers = wanted.on_integers;
    for (int i = 0; i < wanted.arity; ++i)
      integers =
          integers && (wanted.argument[i] == value_kind::truth || is_integer(result.nodes[operands[i]]));
    for (int i = 0; i < wanted.arity; ++i) {
      value_kind kind = wanted.argument[i];
      const bool position = wanted.of_position && i == 0 && is_integer(result.nodes[operands[0]]);
      if (kind == value_kind::real && (integers || position)) kind = value_kind::integer;
      if (kind == value_kind::real) operands[i] = as_real(operands[i]);
      if (result.nodes[operands[i]].kind != kind)
        throw "scandsl: a condition where a value is taken, a value where a condition is, or a real number "
              "where an "
              "integer is";
    }
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
    n.component = static_cast<std::int8_t>(component);
    n.axes = s.axes;
    if (which == opcode::last) {
      n.axes &= ~axis_bit(s.axis);
      if (s.segment_axis >= 0) n.axes |= axis_bit(s.segment_axis);
    }
    return add(n);
  }

private:
  static constexpr node of_axis(opcode which, int along) {
    node n;
    n.op = which;
    n.target = static_cast<std::int16_t>(along);
    n.kind = value_kind::integer;
    return n;
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
    node_id operands[3] = {no_node, no_node, no_node};
    for (std::size_t i = 0; i < terms.size(); ++i) operands[i] = terms[i].in(*b);
    b->fit(primitive::index<P>, operands);
    return term(*b, b->apply(primitive::index<P>, operands[0], operands[1], operands[2]));
  }
};

}  // namespace scandsl
