#pragma once
#include "scandsl/pass/affine.hpp"

namespace scandsl {
namespace detail {

/// Forward mode. Nodes are visited from the inputs to the outputs; the tangent of a scan is an affine scan
/// beside it.
class forward_mode {
public:
  constexpr explicit forward_mode(const program& source)
      : f_(source), d_(source), depends_(source, [this](const node& n) {
          return n.op == opcode::parameter || f_.tensors[n.target].role == tensor_role::input;
        }) {
    d_.target.result.id = derived_title('t', source.id);
    d_.target.result.is_gradient = false;
    for (quantity& q : tangent_) q = number(0.0);
    for (affine_scan& scan : tangent_scan_) scan.scan = -1;
    find_components();
    declare_operands();
  }

  constexpr program operator()() {
    for (int i = 0; i < f_.nodes.count; ++i)
      if (depends_.varied[i] && !depends_.inside_combine(static_cast<node_id>(i)))
        tangent_[i] = tangent_of(static_cast<node_id>(i));
    for (const store_decl& store : f_.stores)
      d_.target.result.stores.push_back({store.tensor, tangent_[store.value].in(d_)});
    return prune(d_.target.result);
  }

private:
  const program& f_;
  derivation d_;
  dependence depends_;
  quantity tangent_[max_nodes] = {};
  component_mask read_[max_scans] = {};  ///< by scan: the components whose tangents are needed
  node_id parameter_tangent_[max_parameters] = {};
  std::int16_t tensor_tangent_[max_tensors] = {};
  affine_scan tangent_scan_[max_scans] = {};
  int row_[max_scans][max_components] = {};

  static constexpr std::size_t slot(int i) { return static_cast<std::size_t>(i); }
  constexpr quantity number(double value) { return {d_, d_.target.constant(value)}; }

  constexpr void find_components() {
    for (const node& n : f_.nodes)
      if (is_scan_value(n)) read_[n.target] |= component_bit(n.component);
    for (int s = 0; s < f_.scans.count; ++s)
      read_[s] = depends_.with_carries(f_.scans[s], read_[s]) & depends_.varied_components[s];
  }

  static constexpr bool has_tangent(const tensor_decl& t) {
    return t.role == tensor_role::input && t.kind == value_kind::real;
  }

  /// An input or scalar of its own for the tangent of each; the outputs become tangents of outputs.
  constexpr void declare_operands() {
    program& p = d_.target.result;
    int operands = f_.parameters.count;
    for (const tensor_decl& t : f_.tensors) operands += has_tangent(t) ? 1 : 0;
    for (int i = 0; i < f_.tensors.count; ++i) {
      tensor_decl declared = f_.tensors[i];
      if (declared.role != tensor_role::output && !has_tangent(declared)) continue;
      declared.id = derived_name(p, 't', declared.id);
      if (declared.role == tensor_role::output) {
        p.tensors[i].id = declared.id;
        continue;
      }
      declared.optional = declared.optional || operands > 1;
      declared.fallback = 0.0;
      tensor_tangent_[i] = static_cast<std::int16_t>(p.tensors.push_back(declared));
    }
    for (int i = 0; i < f_.parameters.count; ++i)
      if (f_.parameters[i].kind == value_kind::real)
        parameter_tangent_[i] = d_.target.parameter({derived_name(p, 't', f_.parameters[i].id), true, 0.0});
  }

  constexpr quantity tangent_of(node_id id) {
    const node n = f_.nodes[id];
    if (n.op == opcode::load)
      return {d_, d_.target.load(d_.target.result.tensors[tensor_tangent_[n.target]])};
    if (n.op == opcode::gather)
      return {d_, d_.target.gather(tensor_tangent_[n.target], n.function, n.operand)};
    if (n.op == opcode::parameter) return {d_, parameter_tangent_[n.target]};
    if (is_scan_value(n)) return scan_tangent(n);
    if (n.op == opcode::sum) return {d_, d_.sum(tangent_[n.operand[0]].in(d_), summed_axes(n))};
    // The pullback of 1 is the derivative by each operand.
    const operand_quantities partial = pull_back(
        d_, n, number(1.0), {d_, id}, [this](node_id operand) { return quantity(d_, operand); },
        [this](node_id operand) { return depends_.varied[operand]; });
    quantity sum = number(0.0);
    for (std::size_t o = 0; o < partial.size(); ++o)
      if (!partial[o].is_zero()) sum = sum + partial[o] * tangent_[n.operand[o]];
    return sum;
  }

  constexpr quantity scan_tangent(const node& n) {
    const int s = n.target;
    if (tangent_scan_[s].scan < 0) declare_tangent(s);
    return {d_, d_.target.scan_value(n.op, tangent_scan_[s].scan,
                                     tangent_scan_[s].component[row_[s][n.component]])};
  }
  /// tangent_t = carry_t tangent_{t-1} + element_t (tangent of x_t), from the tangent of the initial state.
  constexpr void declare_tangent(int s) {
    const scan_decl old = f_.scans[s];
    const step_derivative step = step_differentiation(d_, depends_, s).rows(read_[s]);
    affine_recurrence r;
    int component[max_components] = {};
    for (int k = 0; k < old.components; ++k) {
      if (!has(read_[s], k)) continue;
      component[r.size] = k;
      row_[s][k] = r.size++;
    }
    for (int row = 0; row < r.size; ++row) {
      const int i = component[row];
      for (int column = 0; column < r.size; ++column)
        r.matrix[slot(row)][slot(column)] = step.carry[slot(i)][slot(component[column])];
      quantity offset = number(0.0);
      for (int j = 0; j < old.components; ++j)
        offset = offset + step.element[slot(i)][slot(j)] * tangent_[old.element[j]];
      r.offset[slot(row)] = offset;
      r.initial[slot(row)] = number(0.0);
      if (old.initial[i] == no_node) continue;
      r.initial[slot(row)] = step.start[slot(i)] * tangent_[old.initial[i]];
      if (!r.initial[slot(row)].is_zero()) r.starts_at_zero = false;
    }
    scan_decl walk = old;
    walk.log_sum = false;
    tangent_scan_[s] = declare(d_, walk, r);
  }
};

}  // namespace detail

/// The derivative of a program along a direction (Jacobian-vector product, forward mode).
///   inputs   what the derivative needs of p's, and for every input x a tangent tx of its axes, for every
///            scalar t a scalar tt; optional (0) where x is, or where there are several
///   outputs  for every output y its tangent ty
/// A name that is taken gets another t in front. Throws as gradient does.
///
/// Griewank and Walther, "Evaluating Derivatives", 2008, chapter 3.
constexpr program jvp(const program& p) {
  const program source = simplify(p);
  return detail::forward_mode(source)();
}

}  // namespace scandsl
