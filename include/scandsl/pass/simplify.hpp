#pragma once
#include <limits>
#include <optional>
#include <utility>

#include "scandsl/pass/rewrite.hpp"

namespace scandsl {
namespace detail {

/// Applies primitives in their simplest form. The rules hold in IEEE arithmetic up to the sign of zero, and
/// none hides a NaN: x * 0 and x - x stay. A Graph has at(id), constant(value, kind) and apply(function,
/// operands).
template <class Graph> struct algebra {
  Graph& graph;

  constexpr node_id apply(int f, node_id x, node_id y = no_node, node_id z = no_node) {
    using namespace primitive;
    using primitive::index;
    if (f == index<neg_op>) return negated(x);
    if (f == index<add_op>) return sum(x, y);
    if (f == index<subtract_op>) return difference(x, y);
    if (f == index<multiply_op>) return product(x, y);
    if (f == index<divide_op>) return quotient(x, y);
    if (f == index<max_op>) return extremum<max_op>(x, y, -infinity);
    if (f == index<min_op>) return extremum<min_op>(x, y, infinity);
    if (f == index<logaddexp_op>) return log_sum(x, y);
    if (f == index<pow_op> && equals(y, 1.0)) return x;
    if (f == index<exp_op> && equals(x, 0.0)) return graph.constant(1.0);
    if (f == index<log_op> && equals(x, 1.0)) return graph.constant(0.0);
    if (f == index<not_op> && is<not_op>(x)) return graph.at(x).operand[0];
    if (f == index<and_op>) return junction<and_op>(x, y, true);
    if (f == index<or_op>) return junction<or_op>(x, y, false);
    if (f == index<select_op>) return choice(x, y, z);
    if (f == index<floor_divide_op>) return floor_quotient(x, y);
    if (f == index<modulo_op>) return remainder(x, y);
    if (f == index<to_real_op> && is_constant(x)) return graph.constant(graph.at(x).value);
    return graph.apply(f, x, y, z);
  }

private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  template <class P> constexpr bool is(node_id x) const { return is_apply<P>(graph.at(x)); }
  constexpr bool is_constant(node_id x) const { return graph.at(x).op == opcode::constant; }
  constexpr bool equals(node_id x, double value) const {
    return is_constant(x) && graph.at(x).value == value;
  }
  constexpr bool is_negated(node_id x) const { return is<primitive::neg_op>(x); }
  constexpr node_id operand(node_id x) const { return graph.at(x).operand[0]; }
  constexpr node_id constant_like(node_id x, double value) { return graph.constant(value, graph.at(x).kind); }
  template <class P> constexpr node_id emit(node_id x, node_id y = no_node, node_id z = no_node) {
    return graph.apply(primitive::index<P>, x, y, z);
  }

  /// Whether arithmetic on the constant can neither overflow nor underflow: a constant expression must not.
  constexpr bool is_moderate(node_id x) const {
    if (!is_constant(x)) return false;
    const double value = graph.at(x).value;
    if (value != value) return false;
    const double size = value < 0 ? -value : value;
    return size == 0 || (size > 1e-150 && size < 1e150);
  }
  constexpr bool are_moderate(node_id x, node_id y) const { return is_moderate(x) && is_moderate(y); }

  constexpr node_id negated(node_id x) {
    if (is_constant(x)) return constant_like(x, -graph.at(x).value);
    return is_negated(x) ? operand(x) : emit<primitive::neg_op>(x);
  }
  constexpr node_id sum(node_id x, node_id y) {
    if (are_moderate(x, y)) return constant_like(x, graph.at(x).value + graph.at(y).value);
    if (equals(y, 0.0)) return x;
    if (equals(x, 0.0)) return y;
    if (is_negated(y)) return difference(x, operand(y));
    if (is_negated(x)) return difference(y, operand(x));
    return emit<primitive::add_op>(x, y);
  }
  constexpr node_id difference(node_id x, node_id y) {
    if (are_moderate(x, y)) return constant_like(x, graph.at(x).value - graph.at(y).value);
    if (equals(y, 0.0)) return x;
    if (equals(x, 0.0)) return negated(y);
    if (is_negated(y)) return sum(x, operand(y));
    if (is_negated(x)) return negated(sum(operand(x), y));
    return emit<primitive::subtract_op>(x, y);
  }
  constexpr node_id product(node_id x, node_id y) {
    if (are_moderate(x, y)) return constant_like(x, graph.at(x).value * graph.at(y).value);
    if (equals(y, 1.0)) return x;
    if (equals(x, 1.0)) return y;
    if (equals(y, -1.0)) return negated(x);
    if (equals(x, -1.0)) return negated(y);
    if (is_negated(x)) return negated(product(operand(x), y));
    if (is_negated(y)) return negated(product(x, operand(y)));
    return emit<primitive::multiply_op>(x, y);
  }
  constexpr node_id quotient(node_id x, node_id y) {
    if (are_moderate(x, y) && !equals(y, 0.0)) return graph.constant(graph.at(x).value / graph.at(y).value);
    if (equals(y, 1.0)) return x;
    if (equals(y, -1.0)) return negated(x);
    if (is_negated(x)) return negated(quotient(operand(x), y));
    if (is_negated(y)) return negated(quotient(x, operand(y)));
    return emit<primitive::divide_op>(x, y);
  }
  constexpr node_id floor_quotient(node_id x, node_id y) {
    if (equals(y, 1.0)) return x;
    if (is_constant(x) && is_constant(y)) return constant_like(x, rounded_down(x, y));
    return emit<primitive::floor_divide_op>(x, y);
  }
  constexpr node_id remainder(node_id x, node_id y) {
    if (equals(y, 1.0)) return constant_like(x, 0.0);
    if (is_constant(x) && is_constant(y))
      return constant_like(x, graph.at(x).value - graph.at(y).value * rounded_down(x, y));
    return emit<primitive::modulo_op>(x, y);
  }
  constexpr double rounded_down(node_id x, node_id y) const {
    return static_cast<double>(arithmetic<std::int64_t>::floor_divide(
        static_cast<std::int64_t>(graph.at(x).value), static_cast<std::int64_t>(graph.at(y).value)));
  }
  /// max or min, which keep the order of their operands: a tie passes its gradient to the first.
  template <class P> constexpr node_id extremum(node_id x, node_id y, double identity) {
    if (x == y || equals(y, identity)) return x;
    if (equals(x, identity)) return y;
    if (are_moderate(x, y)) {
      const double a = graph.at(x).value, b = graph.at(y).value;
      return (identity < 0 ? b > a : b < a) ? y : x;
    }
    return emit<P>(x, y);
  }
  constexpr node_id log_sum(node_id x, node_id y) {
    if (equals(y, -infinity)) return x;
    return equals(x, -infinity) ? y : emit<primitive::logaddexp_op>(x, y);
  }

  /// The truth of a condition on constants.
  constexpr std::optional<bool> known(node_id c) const {
    using namespace primitive;
    using primitive::index;
    const node& n = graph.at(c);
    if (is<not_op>(c)) {
      const std::optional<bool> inner = known(n.operand[0]);
      return inner ? std::optional(!*inner) : std::nullopt;
    }
    if (is<less_op>(c) || is<less_equal_op>(c) || is<equal_op>(c)) {
      if (!are_moderate(n.operand[0], n.operand[1])) return std::nullopt;
      const double x = graph.at(n.operand[0]).value, y = graph.at(n.operand[1]).value;
      return is<less_op>(c) ? x < y : is<equal_op>(c) ? x == y : x <= y;
    }
    return std::nullopt;
  }
  /// and (identity true) or or (identity false).
  template <class P> constexpr node_id junction(node_id x, node_id y, bool identity) {
    if (x == y) return x;
    if (const std::optional<bool> truth = known(x)) return *truth == identity ? y : x;
    if (const std::optional<bool> truth = known(y)) return *truth == identity ? x : y;
    return emit<P>(x, y);
  }
  constexpr node_id choice(node_id condition, node_id x, node_id y) {
    if (is<primitive::select_op>(x) && operand(x) == condition) x = graph.at(x).operand[1];
    if (is<primitive::select_op>(y) && operand(y) == condition) y = graph.at(y).operand[2];
    if (x == y) return x;
    if (const std::optional<bool> truth = known(condition)) return *truth ? x : y;
    if (is<primitive::not_op>(condition)) return choice(operand(condition), y, x);
    return emit<primitive::select_op>(condition, x, y);
  }
};

/// A builder that puts commutative operands in one order, so that a * b and b * a are shared. Of the possible
/// orders it is the one that prints well: a chain a * b * c stays a chain; numbers come first in a product
/// and last in a sum, the left state of a combine (the carry) the other way round.
struct ordered_builder {
  builder& target;

  constexpr const node& at(node_id id) const { return target.result.nodes[id]; }
  constexpr node_id constant(double value, value_kind kind = value_kind::real) {
    return target.constant(value, kind);
  }
  constexpr node_id apply(int f, node_id x, node_id y = no_node, node_id z = no_node) {
    using namespace primitive;
    using primitive::index;
    const bool commutes = f == index<multiply_op> || f == index<add_op> || f == index<logaddexp_op> ||
                          f == index<equal_op> || f == index<and_op> || f == index<or_op>;
    if (commutes) {
      const int order = rank(f, x) - rank(f, y);
      if (order > 0 || (order == 0 && x > y)) std::swap(x, y);
    }
    return target.apply(f, x, y, z);
  }

private:
  constexpr int rank(int f, node_id id) const {
    const bool product = f == primitive::index<primitive::multiply_op>;
    const node& n = at(id);
    if (n.op == opcode::apply && n.function == f) return product ? 1 : -1;
    return 2 * (product ? place(n.op) : 4 - place(n.op));
  }
  static constexpr int place(opcode op) {
    switch (op) {
    case opcode::constant: return 0;
    case opcode::parameter: return 1;
    case opcode::right: return 2;
    case opcode::load:
    case opcode::apply:
    case opcode::carry:
    case opcode::scan:
    case opcode::last:
    case opcode::index:
    case opcode::extent:
    case opcode::gather:
    case opcode::sum: return 3;
    case opcode::left: return 4;
    }
    return 3;
  }
};

}  // namespace detail

/// The program with algebraic identities applied and dead code removed. Every rule holds in IEEE arithmetic
/// up to the sign of zero, and none hides a NaN: x * 0 stays. User-given derivatives stay attached (see
/// drop_rules). Idempotent.
constexpr program simplify(const program& p) {
  return rewrite(p, [](rewriting& copy, const node& old) {
    if (old.op != opcode::apply) return copy.copy(old);
    detail::ordered_builder ordered{copy.target};
    return detail::algebra<detail::ordered_builder>{ordered}.apply(
        old.function, copy.at(old.operand[0]), copy.at(old.operand[1]), copy.at(old.operand[2]));
  });
}

/// The program without stop_gradient and attach_derivative, which say something to gradient only: what is
/// executed.
constexpr program drop_rules(const program& p) {
  return rewrite(p, [](rewriting& copy, const node& old) {
    const bool rule =
        is_apply<primitive::stop_gradient_op>(old) || is_apply<primitive::attach_derivative_op>(old);
    return rule ? copy.at(old.operand[0]) : copy.copy(old);
  });
}

}  // namespace scandsl
