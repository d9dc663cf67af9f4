#pragma once
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/jvp.hpp"
#include "support/generate.hpp"

/// Derivatives against what they mean, with the interpreter in float64.
namespace derivative {

using namespace scandsl;
using generate::random_case;
using tensors = std::map<std::string, oracle_tensor>;

/// What a program takes of a case: a derivative may have lost operands that it does not need.
inline random_case restricted_to(const program& p, random_case c) {
  std::erase_if(c.inputs, [&](const auto& each) {
    const int found = p.find_tensor(make_name(each.first));
    return found < 0 || p.tensors[found].role == tensor_role::output;
  });
  std::erase_if(c.scalars, [&](const auto& each) { return p.find_parameter(make_name(each.first)) < 0; });
  std::erase_if(c.extents, [&](const auto& each) { return p.find_axis(make_name(each.first)) < 0; });
  return c;
}
inline tensors outputs_of(const program& p, const random_case& c) { return restricted_to(p, c).expected(p); }

inline double normal(std::mt19937& random) { return std::normal_distribution<double>()(random); }

/// Random tensors of the shapes of others, under their names with a prefix.
inline tensors random_like(const tensors& others, const std::string& prefix, std::mt19937& random) {
  tensors result;
  for (const auto& [id, values] : others) {
    oracle_tensor& made = result[prefix + id] = values;
    for (double& each : made.values) each = normal(random);
  }
  return result;
}

/// Moves every input off the grid of make_case, so that no two values that are compared are equal.
inline void spread(const program& p, random_case& c, std::mt19937& random) {
  for (auto& [id, values] : c.inputs)
    if (const tensor_decl& declared = p.tensors[p.find_tensor(make_name(id))];
        declared.role == tensor_role::input && !holds_integers(declared))
      for (double& each : values.values) each += 1e-3 * normal(random);
}

/// A sum and the sum of the sizes of its terms.
struct total {
  double value = 0.0, size = 0.0;
  void add(double term) {
    value += term;
    size += std::fabs(term);
  }
};
/// What y lacks counts as 0.
inline total product(const tensors& x, const tensors& y) {
  total result;
  for (const auto& [id, values] : x)
    for (std::size_t i = 0; y.count(id) > 0 && i < values.values.size(); ++i)
      result.add(values.values[i] * y.at(id).values[i]);
  return result;
}
/// The difference relative to the terms that were summed.
inline double mismatch(const total& x, const total& y) {
  const double size = x.size + y.size;
  return size == 0.0 ? 0.0 : std::fabs(x.value - y.value) / size;
}

/// Whether a scalar is a value somewhere, not only a flag, a condition or a restart interval.
inline bool is_value(const program& p, int parameter) {
  const auto reads = [&](node_id id) {
    return id != no_node && p.nodes[id].op == opcode::parameter && p.nodes[id].target == parameter;
  };
  bool found = false;
  for (const node& n : p.nodes)
    for (std::size_t i = 0; i < 3; ++i)
      found = found || ((n.op == opcode::apply || n.op == opcode::sum) && n.kind == value_kind::real &&
                        reads(n.operand[i]) && !(i == 0 && is_apply<primitive::select_op>(n)));
  for (const scan_decl& s : p.scans)
    for (int k = 0; k < s.components; ++k) found = found || reads(s.element[k]) || reads(s.initial[k]);
  for (const store_decl& each : p.stores) found = found || reads(each.value);
  return found && p.parameters[parameter].kind == value_kind::real;
}

/// The outputs of the gradient program for cotangents of the outputs, under the names of the operands. Throws
/// where a floating-point tensor that p reads has none. (A scalar on which no value depends may have none.)
inline tensors gradients(const program& p, const program& dp, random_case c, const tensors& cotangents) {
  for (const auto& [id, values] : cotangents) c.inputs["d" + id] = values;
  tensors result;
  const tensors got = outputs_of(dp, c);
  for (const tensor_decl& t : p.tensors)
    if (const auto found = got.find("d" + std::string(t.id.view())); found != got.end())
      result[std::string(t.id.view())] = found->second;
  for (const parameter_decl& s : p.parameters)
    if (const auto found = got.find("d" + std::string(s.id.view())); found != got.end())
      result[std::string(s.id.view())] = found->second;
  for (const tensor_decl& t : simplify(p).tensors)
    if (t.role == tensor_role::input && t.kind == value_kind::real &&
        result.count(std::string(t.id.view())) == 0)
      throw std::logic_error("no gradient of " + std::string(t.id.view()));
  return result;
}

/// What the case binds and a value may depend on: floating-point tensors, and scalars that are values.
inline tensors movable(const program& p, const random_case& c) {
  tensors result;
  for (const auto& [id, values] : c.inputs)
    if (const tensor_decl& t = p.tensors[p.find_tensor(make_name(id))];
        t.role == tensor_role::input && t.kind == value_kind::real)
      result[id] = values;
  for (const auto& [id, value] : c.scalars)
    if (is_value(p, p.find_parameter(make_name(id)))) result[id] = {{value}, {}};
  return result;
}
inline tensors joined(tensors one, const tensors& other) {
  one.insert(other.begin(), other.end());
  return one;
}

/// Tangents for the operands of which there are gradients and which the case binds.
inline tensors random_tangents(const tensors& gradients, const random_case& c, std::mt19937& random) {
  tensors known;
  for (const auto& [id, values] : gradients)
    if (c.inputs.count(id) + c.scalars.count(id) > 0) known[id] = values;
  return random_like(known, "", random);
}

/// <J v, w> = <v, J^T w> for random v and w.
inline double adjoint_mismatch(const program& p, const program& dp, const program& tp, const random_case& c,
                               std::mt19937& random) {
  const tensors w = random_like(outputs_of(p, c), "", random);
  const tensors gradient_values = gradients(p, dp, c, w), v = random_tangents(gradient_values, c, random);
  random_case forward = c;
  for (const auto& [id, values] : v) {
    if (c.scalars.count(id) != 0)
      forward.scalars["t" + id] = values.values[0];
    else
      forward.inputs["t" + id] = values;
  }
  // What v leaves out has tangent 0.
  for (const tensor_decl& t : tp.tensors) {
    const std::string id(t.id.view());
    if (t.role != tensor_role::input || t.optional || forward.inputs.count(id) != 0) continue;
    const oracle_tensor& like = c.inputs.at(id.substr(1));
    forward.inputs[id] = {std::vector<double>(like.values.size(), 0.0), like.extents};
  }
  tensors tangents;
  for (const auto& [id, values] : outputs_of(tp, forward)) tangents[id.substr(1)] = values;
  return mismatch(product(w, tangents), product(v, gradient_values));
}

/// The gradient against central differences along a random direction, relative to the sizes of what is added
/// up. Operands that have no gradient move, too: it would have to be 0.
inline double difference_mismatch(const program& p, const program& dp, const random_case& c,
                                  std::mt19937& random, double step = 1e-6) {
  const tensors w = random_like(outputs_of(p, c), "", random);
  const tensors gradient_values = gradients(p, dp, c, w);
  const tensors v = random_tangents(joined(gradient_values, movable(p, c)), c, random);
  total forward, backward;
  for (const double sign : {1.0, -1.0}) {
    random_case moved = c;
    for (const auto& [id, values] : v) {
      if (c.scalars.count(id) != 0) {
        moved.scalars[id] += sign * step * values.values[0];
        continue;
      }
      for (std::size_t i = 0; i < values.values.size(); ++i)
        moved.inputs[id].values[i] += sign * step * values.values[i];
    }
    (sign > 0 ? forward : backward) = product(w, outputs_of(p, moved));
  }
  const total exact = product(v, gradient_values);
  const double size = exact.size + forward.size;
  const double difference = std::fabs((forward.value - backward.value) / (2 * step) - exact.value);
  return size == 0.0 ? difference : difference / size;
}

/// Whether differences see what the derivative sees: stop_gradient hides something from it, unless a rule
/// stands in for what is hidden.
inline bool is_differentiable(const program& p) {
  for (int i = 0; i < p.nodes.count; ++i) {
    if (!is_apply<primitive::stop_gradient_op>(p.nodes[i])) continue;
    bool has_rule = false;
    for (const node& user : p.nodes)
      has_rule = has_rule || (is_apply<primitive::attach_derivative_op>(user) && user.operand[0] == i);
    if (!has_rule) return false;
  }
  return true;
}

}  // namespace derivative
