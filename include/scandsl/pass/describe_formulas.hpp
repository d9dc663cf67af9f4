#pragma once
#include <algorithm>
#include <vector>

#include "scandsl/pass/simplify.hpp"

namespace scandsl::detail {

/// A program as mathematics: the combine of every scan is written out at (carry, element), which makes it a
/// recurrence, and only the components that something reads are there. Nodes share program's form;
/// opcode::scan stands for a component by its name only where its recurrence has no value of its own.
class formulas {
public:
  /// A derivative that a user gave for `value` with respect to `argument`.
  struct rule {
    node_id value, argument, partial;
    bool operator==(const rule&) const = default;
  };
  struct component {
    int scan = 0, index = 0;
    node_id step = no_node;     ///< the value after the current position
    node_id initial = no_node;  ///< no_node: the identity
  };

  const program& source;
  std::vector<component> components;  ///< those that are read, by scan, then by index
  std::vector<rule> rules;
  std::vector<node_id> every;    ///< by scan
  std::vector<node_id> results;  ///< by store

  explicit formulas(const program& p)
      : source(p), every(static_cast<std::size_t>(p.scans.count), no_node),
        copied_(static_cast<std::size_t>(p.nodes.count), no_node),
        instances_(static_cast<std::size_t>(p.scans.count), copied_) {
    for (const store_decl& store : p.stores) results.push_back(formula(store.value));
    std::sort(components.begin(), components.end(), [](const component& a, const component& b) {
      return a.scan != b.scan ? a.scan < b.scan : a.index < b.index;
    });
    count_uses();
  }

  const node& at(node_id id) const { return nodes_[static_cast<std::size_t>(id)]; }
  int count() const { return static_cast<int>(nodes_.size()); }
  /// How many formulas, definitions and outputs read the value.
  int uses(node_id id) const { return uses_[static_cast<std::size_t>(id)]; }

  /// The component whose recurrence the node is; nullptr for other nodes.
  const component* component_of(node_id step) const {
    if (at(step).op != opcode::apply) return nullptr;
    for (const component& c : components)
      if (c.step == step) return &c;
    return nullptr;
  }
  bool has_rule(node_id id) const {
    return std::any_of(rules.begin(), rules.end(), [id](const rule& r) { return r.value == id; });
  }

  // What algebra asks of a graph.
  node_id constant(double value, value_kind kind = value_kind::real) {
    node n;
    n.value = value;
    n.kind = kind;
    return add(n);
  }
  node_id apply(int function, node_id x, node_id y = no_node, node_id z = no_node) {
    if (function == primitive::index<primitive::attach_derivative_op>) return attach(x, y, z);
    node n;
    n.op = opcode::apply;
    n.function = static_cast<std::uint8_t>(function);
    const node_id operands[3] = {x, y, z};
    for (int i = 0; i < 3; ++i) {
      n.operand[i] = operands[i];
      if (operands[i] != no_node) n.axes |= at(operands[i]).axes;
    }
    n.kind = primitive::result_kind(function, at(operands[primitive::signature_of(function).arity - 1]).kind);
    return add(n);
  }

private:
  std::vector<node> nodes_;
  std::vector<int> uses_;
  std::vector<node_id> copied_;                  // by node of the program
  std::vector<std::vector<node_id>> instances_;  // by scan, then by node of the program

  node_id add(const node& n) {
    const auto found = std::find(nodes_.begin(), nodes_.end(), n);
    if (found != nodes_.end()) return static_cast<node_id>(found - nodes_.begin());
    nodes_.push_back(n);
    return static_cast<node_id>(nodes_.size() - 1);
  }

  /// A value with a rule is the value itself, and the rule stands beside it. Where that value is a plain
  /// operand, or has another rule already, a new node keeps the two apart.
  node_id attach(node_id value, node_id argument, node_id partial) {
    if (is_apply<primitive::stop_gradient_op>(at(value))) {
      value = at(value).operand[0];
      const rule same{value, argument, partial};
      const bool known = std::find(rules.begin(), rules.end(), same) != rules.end();
      if (!known && (at(value).op != opcode::apply || has_rule(value))) {
        node alias = at(value);
        alias.op = opcode::apply;
        alias.function = static_cast<std::uint8_t>(primitive::index<primitive::attach_derivative_op>);
        alias.target = alias.component = 0;
        alias.operand[0] = value;
        alias.operand[1] = alias.operand[2] = no_node;
        alias.value = static_cast<double>(rules.size());  // never equal to another
        value = add(alias);
      }
    }
    const rule given{value, argument, partial};
    if (std::find(rules.begin(), rules.end(), given) == rules.end()) rules.push_back(given);
    return value;
  }

  /// The formula of a node outside the scans' combines.
  node_id formula(node_id id) {
    if (id == no_node) return no_node;
    const std::size_t slot = static_cast<std::size_t>(id);
    if (copied_[slot] == no_node) {
      node n = source.nodes[id];
      node_id operands[3] = {};
      for (int i = 0; i < 3; ++i) operands[i] = formula(n.operand[i]);
      if (n.op == opcode::sum || n.op == opcode::gather)
        for (int i = 0; i < 3; ++i) n.operand[i] = operands[i];
      copied_[slot] = n.op == opcode::apply ? apply(n.function, operands[0], operands[1], operands[2])
                      : is_scan_value(n)    ? scan_value(n)
                                            : add(n);
    }
    return copied_[slot];
  }

  node_id scan_value(const node& n) {
    const node_id step = need(n.target, n.component);
    if (n.op != opcode::scan || step == no_node || at(step).op != opcode::apply) return add(n);
    const component* owner = component_of(step);
    return owner->scan == n.target && owner->index == n.component ? step : add(n);
  }

  /// Enters a component among those that are read and gives its step: no_node while that is being made.
  node_id need(int scan, int index) {
    for (const component& c : components)
      if (c.scan == scan && c.index == index) return c.step;
    const scan_decl& s = source.scans[scan];
    const std::size_t slot = components.size();
    components.push_back({scan, index, no_node, no_node});
    const node_id initial = formula(s.initial[index]);
    const node_id step = instance(scan, s.combined[index]);
    components[slot].initial = initial;
    components[slot].step = step;
    every[static_cast<std::size_t>(scan)] = formula(s.every);
    return step;
  }

  /// A node of a scan's combine, with the carry as the left state and the element as the right one.
  node_id instance(int scan, node_id id) {
    if (id == no_node) return no_node;
    const node n = source.nodes[id];
    if (n.op == opcode::right) return formula(source.scans[scan].element[n.target]);
    if (n.op != opcode::left && n.op != opcode::apply) return formula(id);
    if (n.op == opcode::left) {
      need(scan, n.target);
      node carry;
      carry.op = opcode::carry;
      carry.target = static_cast<std::int16_t>(scan);
      carry.component = static_cast<std::int8_t>(n.target);
      carry.axes = source.scans[scan].axes;
      return add(carry);
    }
    std::vector<node_id>& made = instances_[static_cast<std::size_t>(scan)];
    const std::size_t slot = static_cast<std::size_t>(id);
    if (made[slot] == no_node) {
      node_id operands[3] = {};
      for (int i = 0; i < 3; ++i) operands[i] = instance(scan, n.operand[i]);
      made[slot] = algebra<formulas>{*this}.apply(n.function, operands[0], operands[1], operands[2]);
    }
    return made[slot];
  }

  void count_uses() {
    uses_.assign(nodes_.size(), 0);
    for (const component& c : components) {
      use(c.step);
      use(c.initial);
    }
    for (const node_id id : every) use(id);
    for (const node_id id : results) use(id);
  }
  void use(node_id id) {
    if (id == no_node || ++uses_[static_cast<std::size_t>(id)] > 1) return;
    for (const node_id operand : at(id).operand) use(operand);
    for (const rule& r : rules) {
      if (r.value != id) continue;
      use(r.argument);
      use(r.partial);
    }
  }
};

}  // namespace scandsl::detail
