#pragma once
#include "scandsl/pass/derivative.hpp"
#include "scandsl/pass/log_sum.hpp"

/// The linear recurrences inside scans. A scan goes from the state y_{t-1} and the element x_t to y_t; to
/// first order a change of y_t is a matrix times that of y_{t-1} plus another times that of x_t. Forward mode
/// runs this recurrence with the scan, reverse mode runs its transpose from the other end; both are scans
/// over pairs (matrix, vector).
namespace scandsl::detail {

using component_vector = std::array<quantity, static_cast<std::size_t>(max_components)>;
using component_matrix = std::array<component_vector, static_cast<std::size_t>(max_components)>;

/// The share of x in s = log(exp(x) + ...), which lies in [0, 1]: exp(x - s), and 0 where x is -inf, also
/// where s is.
constexpr quantity share(quantity x, quantity s) { return select(x == -inf, 0.0, exp(x - s)); }

/// The derivative of a scan's step at (carry, element). Its entries are nodes of the derivation; those that
/// are structurally 0 or 1 are these constants.
struct step_derivative {
  component_matrix carry{};    ///< [i][j]: of component i after the step by component j before it
  component_matrix element{};  ///< [i][j]: by component j of the element
  component_vector start{};    ///< [j]: of component j of the state by the initial value given for it
};

/// Differentiates the combine of one scan.
class step_differentiation {
public:
  constexpr step_differentiation(derivation& d, const dependence& depends, int scan)
      : d_(d), depends_(depends), scan_(scan), s_(d.target.result.scans[scan]) {
    for (node_id& id : instance_) id = no_node;
  }

  /// The rows of the components `wanted`; the others stay 0.
  constexpr step_derivative rows(component_mask wanted) {
    step_derivative result;
    for (int k = 0; k < s_.components; ++k) result.start[slot(k)] = number(1.0);
    if (is_log_add_exp(d_.target.result, scan_)) {
      log_sum_row(result);
      return result;
    }
    for (int i = 0; i < s_.components; ++i)
      if (has(wanted, i)) row(i, result);
    return result;
  }

private:
  derivation& d_;
  const dependence& depends_;
  int scan_;
  scan_decl s_;
  node_id instance_[max_nodes] = {};  ///< by node of the combine: its value at (carry, element)
  quantity adjoint_[max_nodes] = {};

  static constexpr std::size_t slot(int i) { return static_cast<std::size_t>(i); }
  constexpr quantity number(double value) { return {d_, d_.target.constant(value)}; }
  constexpr quantity state(opcode which, int component) {
    return {d_, d_.target.scan_value(which, scan_, component)};
  }

  /// y_t = log(exp(y_{t-1}) + exp(x_t)). Where y does not move, all of it passes: 1 also between equal
  /// infinities, so that a +inf (whose own derivative is NaN) leaves the positions before it alone. Positions
  /// of -inf take no share of what passes.
  constexpr void log_sum_row(step_derivative& result) {
    const quantity y = state(opcode::scan, 0);
    result.carry[0][0] = exp_difference(state(opcode::carry, 0), y);
    result.element[0][0] = share({d_, s_.element[0]}, y);
    if (s_.initial[0] != no_node)
      result.start[0] = select(quantity(d_, s_.initial[0]) == -inf, 0.0, number(1.0));
  }

  /// Reverse mode from component i of the combine down to the two states.
  constexpr void row(int i, step_derivative& result) {
    const node_id root = s_.combined[i];
    for (quantity& q : adjoint_) q = quantity();
    adjoint_[root] = number(1.0);
    for (node_id id = root; id >= 0; --id) {
      if (adjoint_[id].is_zero() || !depends_.inside_combine(id)) continue;
      const node n = d_.at(id);
      if (n.op == opcode::left) result.carry[slot(i)][slot(n.target)] = adjoint_[id];
      if (n.op == opcode::right) result.element[slot(i)][slot(n.target)] = adjoint_[id];
      if (n.op != opcode::apply) continue;
      const operand_quantities passed = pull_back(
          d_, n, adjoint_[id], value(id), [this](node_id operand) { return value(operand); },
          [this](node_id operand) { return depends_.inside_combine(operand); });
      for (std::size_t o = 0; o < passed.size(); ++o)
        if (!passed[o].is_zero()) add(n.operand[o], passed[o]);
    }
  }
  constexpr void add(node_id id, quantity passed) {
    adjoint_[id] = adjoint_[id].is_zero() ? passed : adjoint_[id] + passed;
  }

  /// A node of the combine with the carry as the left state and the element as the right one; the scan's own
  /// value where the node is that.
  constexpr quantity value(node_id id) {
    if (!depends_.inside_combine(id)) return {d_, id};
    if (instance_[id] == no_node) instance_[id] = make_instance(id);
    return {d_, instance_[id]};
  }
  constexpr node_id make_instance(node_id id) {
    const node n = d_.at(id);
    if (n.op == opcode::left) return state(opcode::carry, n.target).id;
    if (n.op == opcode::right) return s_.element[n.target];
    for (int k = 0; k < s_.components; ++k)
      if (s_.combined[k] == id) return state(opcode::scan, k).id;
    node_id operands[3] = {no_node, no_node, no_node};
    for (int o = 0; o < 3; ++o)
      if (n.operand[o] != no_node) operands[o] = value(n.operand[o]).id;
    return d_.apply_as_written(n.function, operands[0], operands[1], operands[2]);
  }
};

/// r_t = matrix_t r_{t-1} + offset_t.
struct affine_recurrence {
  int size = 0;
  component_matrix matrix{};
  component_vector offset{};
  component_vector initial{};
  bool starts_at_zero = true;  ///< `initial` is not read
};

/// A recurrence as a scan, and which of its components are r.
struct affine_scan {
  int scan = -1;
  int component[max_components] = {};
};

/// Declares the scan of a recurrence along the walk of `walk` (its axis, direction and restarts). The state
/// is (M, c), a step from r to M r + c; of M only the entries are stored that are not 0 or 1 for good. One
/// entry stands for a whole diagonal of equal ones.
/// Blelloch, "Prefix sums and their applications", 1990, section 1.4.
class affine_declaration {
public:
  constexpr affine_declaration(derivation& d, const scan_decl& walk, const affine_recurrence& r)
      : d_(d), r_(r), s_(walk) {
    find_stored();
    place();
  }

  constexpr affine_scan operator()() {
    for (int k = 0; k < s_.components; ++k) s_.initial[k] = no_node;
    for (int j = 0; j < r_.size; ++j) {
      quantity vector = side(opcode::right, result_.component[j]);
      for (int k = 0; k < r_.size; ++k)
        vector = entry(opcode::right, j, k) * side(opcode::left, result_.component[k]) + vector;
      fill(result_.component[j], vector, at(r_.offset, j), 0.0,
           r_.starts_at_zero ? quantity() : at(r_.initial, j));
      for (int i = 0; i < r_.size; ++i)
        if (owns_[j][i]) fill_entry(j, i);
    }
    result_.scan = d_.declare(s_);
    return result_;
  }

private:
  derivation& d_;
  const affine_recurrence& r_;
  scan_decl s_;
  affine_scan result_;
  bool stored_[max_components][max_components] = {}, owns_[max_components][max_components] = {};
  int place_[max_components][max_components] = {};

  static constexpr quantity at(const component_vector& v, int i) { return v[static_cast<std::size_t>(i)]; }
  constexpr quantity element(int j, int i) const { return at(r_.matrix[static_cast<std::size_t>(j)], i); }
  constexpr bool is_fixed(int j, int i) const { return element(j, i).equals(i == j ? 1.0 : 0.0); }

  /// Whether a term of the product of two such matrices adds to more than a fixed 0 or 1.
  constexpr bool grows(int j, int i) const {
    for (int k = 0; k < r_.size; ++k) {
      const bool zero = (!stored_[j][k] && j != k) || (!stored_[k][i] && k != i);
      const bool one = !stored_[j][k] && !stored_[k][i] && j == k && k == i;
      if (!zero && !one) return true;
    }
    return false;
  }
  constexpr void find_stored() {
    for (int j = 0; j < r_.size; ++j)
      for (int i = 0; i < r_.size; ++i) stored_[j][i] = !is_fixed(j, i);
    for (bool changed = true; changed;) {
      changed = false;
      for (int j = 0; j < r_.size; ++j)
        for (int i = 0; i < r_.size; ++i)
          if (!stored_[j][i] && grows(j, i)) stored_[j][i] = changed = true;
    }
  }
  constexpr bool is_diagonal() const {
    for (int j = 0; j < r_.size; ++j)
      for (int i = 0; i < r_.size; ++i)
        if (i != j && stored_[j][i]) return false;
    return true;
  }
  constexpr void place() {
    const bool diagonal = is_diagonal();
    int next = 0;
    for (int j = 0; j < r_.size; ++j)
      for (int i = 0; i < r_.size; ++i) {
        if (!stored_[j][i]) continue;
        owns_[j][i] = true;
        for (int k = 0; diagonal && k < j; ++k)
          if (owns_[k][k] && element(k, k).id == element(j, j).id) {
            owns_[j][i] = false;
            place_[j][i] = place_[k][k];
          }
        if (owns_[j][i]) place_[j][i] = next++;
      }
    for (int j = 0; j < r_.size; ++j) result_.component[j] = next++;
    if (next > max_components)
      throw "scandsl: the derivative of a scan needs more components than max_components (ir/program.hpp)";
    s_.components = static_cast<std::int16_t>(next);
  }

  constexpr quantity side(opcode which, int component) {
    return {d_, d_.target.placeholder(which, component)};
  }
  constexpr quantity entry(opcode which, int j, int i) {
    return stored_[j][i] ? side(which, place_[j][i]) : quantity(i == j ? 1.0 : 0.0);
  }
  constexpr void fill_entry(int j, int i) {
    quantity product(d_, d_.target.constant(0.0));
    for (int k = 0; k < r_.size; ++k)
      if (stored_[j][k] || stored_[k][i] || (j == k && k == i))
        product = product + multiplied(entry(opcode::right, j, k), entry(opcode::left, k, i));
    const double unit = i == j ? 1.0 : 0.0;
    fill(place_[j][i], product, element(j, i), unit, quantity(unit));
  }
  static constexpr quantity multiplied(quantity x, quantity y) {
    return x.owner == nullptr && y.owner == nullptr ? quantity(x.number * y.number) : x * y;
  }
  constexpr void fill(int k, quantity combined, quantity each, double identity, quantity initial) {
    s_.combined[k] = combined.in(d_);
    s_.element[k] = each.in(d_);
    s_.identity[k] = identity;
    if (!r_.starts_at_zero) s_.initial[k] = initial.in(d_);
  }
};

constexpr affine_scan declare(derivation& d, const scan_decl& walk, const affine_recurrence& r) {
  return affine_declaration(d, walk, r)();
}

}  // namespace scandsl::detail
