#pragma once
#include "scandsl/pass/scan_adjoint.hpp"

namespace scandsl {

/// Names of operands that a derivative is taken with respect to.
using operand_names = fixed_list<name, max_tensors + max_parameters>;

namespace detail {

/// The sum of the cotangents that reach a node, kept apart by the axes that are still to be summed over: an
/// operand that lacks axes of a result takes the sum along them.
struct cotangent_sums {
  struct part {
    node_id of = no_node;
    axis_mask along = 0;
    quantity value;
  };
  fixed_list<part, 2 * max_nodes> parts;

  constexpr void add(node_id of, axis_mask along, quantity value) {
    if (value.is_zero()) return;
    for (part& each : parts)
      if (each.of == of && each.along == along) {
        each.value = each.value + value;
        return;
      }
    parts.push_back({of, along, value});
  }
};

/// Reverse mode. Nodes are visited from the outputs to the inputs; a scan when all that reads it is done.
class reverse_mode {
public:
  constexpr reverse_mode(const program& source, const operand_names& wanted, bool keeps_values)
      : f_(source), d_(source), wanted_(wanted), keeps_values_(keeps_values),
        depends_(source, [this](const node& n) { return is_variable(n); }) {
    d_.target.result.id = derived_title('d', source.id);
    for (quantity& q : cotangent_) q = number(0.0);
    rename_outputs();
  }

  constexpr program operator()() {
    for (const store_decl& store : f_.stores) {
      const quantity given(d_, d_.target.load(d_.target.result.tensors[store.tensor]));
      pass(f_.tensors[store.tensor].mask(), store.value, given);
    }
    for (int i = f_.nodes.count; i-- > 0;) visit(static_cast<node_id>(i));
    store_gradients();
    if (keeps_values_) store_values();
    return prune(d_.target.result);
  }

private:
  const program& f_;
  derivation d_;
  const operand_names& wanted_;
  bool keeps_values_;
  dependence depends_;
  cotangent_sums pending_;
  quantity cotangent_[max_nodes] = {};

  constexpr quantity number(double value) { return {d_, d_.target.constant(value)}; }

  // ---- operands

  constexpr bool is_wanted(const name& id) const {
    for (const name& each : wanted_)
      if (each == id) return true;
    return wanted_.count == 0;
  }
  constexpr bool is_variable(const node& n) const {
    if (n.op == opcode::parameter) return is_wanted(f_.parameters[n.target].id);
    return f_.tensors[n.target].role == tensor_role::input && is_wanted(f_.tensors[n.target].id);
  }

  /// The cotangent of an output is an input.
  constexpr void rename_outputs() {
    program& p = d_.target.result;
    for (tensor_decl& t : p.tensors)
      if (t.role == tensor_role::output) t.id = name{};
    for (int i = 0; i < f_.tensors.count; ++i) {
      if (f_.tensors[i].role != tensor_role::output) continue;
      tensor_decl& t = p.tensors[i];
      t.id = derived_name(p, 'd', f_.tensors[i].id);
      t.role = tensor_role::input;
      t.optional = t.optional || f_.stores.count > 1;
      t.fallback = 0.0;
    }
  }

  constexpr void store_gradients() {
    int gradients = 0;
    for (const tensor_decl& t : f_.tensors) gradients += has_gradient(t) ? 1 : 0;
    node_id of_parameter[max_parameters] = {};
    for (int i = 0; i < f_.parameters.count; ++i) {
      of_parameter[i] = cotangent_of_parameter(i).in(d_);
      if (stores_parameter(i, of_parameter[i])) ++gradients;
    }
    for (int i = 0; i < f_.tensors.count; ++i)
      if (has_gradient(f_.tensors[i])) {
        tensor_decl gradient_of = f_.tensors[i];
        gradient_of.optional = gradient_of.optional || gradients > 1;
        store(gradient_of, cotangent_of_tensor(i));
      }
    for (int i = 0; i < f_.parameters.count; ++i)
      if (stores_parameter(i, of_parameter[i]))
        store({f_.parameters[i].id, {}, tensor_role::output, f_.parameters[i].optional || gradients > 1, 0.0},
              {d_, of_parameter[i]});
  }
  /// The outputs of the source, beside its gradients.
  constexpr void store_values() {
    program& p = d_.target.result;
    for (const store_decl& each : f_.stores)
      p.stores.push_back(
          {static_cast<std::int16_t>(p.tensors.push_back(f_.tensors[each.tensor])), each.value});
  }
  constexpr bool has_gradient(const tensor_decl& t) const {
    return t.role == tensor_role::input && t.kind == value_kind::real && is_wanted(t.id);
  }
  /// A scalar that only flags or restart intervals read has a gradient if it is asked for by name (it is 0).
  constexpr bool stores_parameter(int index, node_id value) const {
    return f_.parameters[index].kind == value_kind::real && is_wanted(f_.parameters[index].id) &&
           (wanted_.count > 0 || !d_.is_zero(value));
  }
  constexpr void store(tensor_decl declared, quantity value) {
    program& p = d_.target.result;
    declared.id = derived_name(p, 'd', declared.id);
    declared.role = tensor_role::output;
    declared.fallback = 0.0;
    p.stores.push_back({static_cast<std::int16_t>(p.tensors.push_back(declared)), value.in(d_)});
  }
  constexpr quantity cotangent_of_parameter(int index) {
    for (int i = 0; i < f_.nodes.count; ++i)
      if (f_.nodes[i].op == opcode::parameter && f_.nodes[i].target == index) return cotangent_[i];
    return number(0.0);
  }
  /// A tensor may be read at its axes' positions, and at computed ones.
  constexpr quantity cotangent_of_tensor(int index) {
    quantity total = number(0.0);
    for (int i = 0; i < f_.nodes.count; ++i) {
      const node n = f_.nodes[i];
      if (n.target != index) continue;
      if (n.op == opcode::load) total = total + cotangent_[i];
      if (n.op == opcode::gather) total = total + scattered(n, cotangent_[i]);
    }
    return total;
  }
  /// A gather is the sum over the tensor's axis v of the elements where v is the computed position. So an
  /// element's cotangent is the sum of those of all places that read it, in the order of their axes. (What
  /// the positions do not vary along has been summed over before.)
  constexpr quantity scattered(const node& n, quantity cotangent) {
    if (cotangent.is_zero()) return cotangent;
    const tensor_decl& t = f_.tensors[n.target];
    node_id here = no_node;
    axis_mask along = n.axes;
    for (int i = 0, from = 0; i < t.axes.count; ++i) {
      if ((n.function >> i & 1U) == 0) {
        along &= ~axis_bit(t.axes[i]);
        continue;
      }
      const node_id there = d_.target.index(t.axes[i]);
      const node_id same = d_.apply(primitive::index<primitive::equal_op>, there, n.operand[from++]);
      here = here == no_node ? same : d_.apply(primitive::index<primitive::and_op>, here, same);
    }
    const quantity read = select(quantity(d_, here), cotangent, number(0.0));
    return {d_, d_.sum(read.in(d_), along)};
  }

  // ---- cotangents

  /// `value`, over `axes`, is a part of the cotangent of a node.
  constexpr void pass(axis_mask axes, node_id to, quantity value) {
    if (to != no_node && depends_.varied[to]) pending_.add(to, axes & ~f_.nodes[to].axes, value);
  }

  /// The sum of all parts, each along the axes that the node lacks.
  constexpr quantity collected(node_id id) {
    quantity sum = number(0.0);
    for (const cotangent_sums::part& each : pending_.parts)
      if (each.of == id) sum = sum + quantity(d_, d_.sum(each.value.in(d_), each.along));
    return sum;
  }

  constexpr void visit(node_id id) {
    const node n = f_.nodes[id];
    if (!depends_.varied[id] || depends_.inside_combine(id)) return;
    cotangent_[id] = collected(id);
    if (is_scan_value(n)) {
      if (is_first_value(id)) visit_scan(n.target);
    } else if (n.op == opcode::sum) {
      pass(n.axes | summed_axes(n), n.operand[0], cotangent_[id]);
    } else if (n.op == opcode::apply && !cotangent_[id].is_zero()) {
      const operand_quantities passed = pull_back(
          d_, n, cotangent_[id], {d_, id}, [this](node_id operand) { return quantity(d_, operand); },
          [this](node_id operand) { return depends_.varied[operand]; });
      for (std::size_t o = 0; o < passed.size(); ++o) pass(n.axes, n.operand[o], passed[o]);
    }
  }
  constexpr void visit_scan(int scan) {
    scan_adjoint adjoint(d_, f_, depends_, scan,
                         [this](axis_mask axes, node_id to, quantity value) { pass(axes, to, value); });
    for (int i = 0; i < f_.nodes.count; ++i)
      if (is_scan_value(f_.nodes[i]) && f_.nodes[i].target == scan) adjoint.add(f_.nodes[i], cotangent_[i]);
    adjoint();
  }
  /// Whether no value of the same scan comes before this one: then whatever reads the scan is visited.
  constexpr bool is_first_value(node_id id) const {
    for (int i = 0; i < id; ++i)
      if (is_scan_value(f_.nodes[i]) && f_.nodes[i].target == f_.nodes[id].target && depends_.varied[i])
        return false;
    return true;
  }
};

constexpr program gradient_of(const program& p, const operand_names& wanted, bool keeps_values = false) {
  for (const name& each : wanted) {
    const int tensor = p.find_tensor(each);
    if (p.find_parameter(each) < 0 && (tensor < 0 || p.tensors[tensor].role != tensor_role::input))
      throw "scandsl: gradient: the program has no input and no scalar of that name";
  }
  const program source = simplify(p);
  program result = reverse_mode(source, wanted, keeps_values)();
  result.is_gradient = true;
  return result;
}

}  // namespace detail

/// The gradient of a program: the derivative of <dy, y>, summed over its outputs y, by its operands.
///   inputs   what the derivative needs of p's, and for an output y its cotangent dy, of y's axes: optional
///            (0) where y is, or where there are several
///   outputs  for every input x (initial states are inputs, integers are none) its gradient dx, of x's axes;
///   for every
///            scalar t that values depend on dt, without axes. Optional where x is, or where there are
///            several
/// A name that is taken gets another d in front. All of it stays a program: gradient(gradient(p)) is the
/// second order. Throws (in a constant expression: does not compile) where the result exceeds the capacities
/// of ir/program.hpp, or a name 23 characters.
///
/// Reverse mode: Griewank and Walther, "Evaluating Derivatives", 2008, chapter 3. The adjoint of a scan is a
/// scan: docs/gradients.md.
constexpr program gradient(const program& p) { return detail::gradient_of(p, {}); }

/// The same with respect to some operands: gradient(p, x, decay). Throws where p has no such input or scalar.
template <class... Operand>
  requires(sizeof...(Operand) > 0 && ((is_tensor<Operand> || is_scalar<Operand>) && ...))
constexpr program gradient(const program& p, Operand...) {
  operand_names wanted;
  (wanted.push_back(Operand::id), ...);
  return detail::gradient_of(p, wanted);
}

/// The program and its gradient with respect to some operands in one: what both need is computed once. Its
/// outputs are those of p and those of gradient(p, operands...).
template <class... Operand>
  requires(sizeof...(Operand) > 0 && ((is_tensor<Operand> || is_scalar<Operand>) && ...))
constexpr program value_and_gradient(const program& p, Operand...) {
  operand_names wanted;
  (wanted.push_back(Operand::id), ...);
  return detail::gradient_of(p, wanted, true);
}

}  // namespace scandsl
