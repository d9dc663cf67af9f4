#pragma once
#include <algorithm>

#include "scandsl/core/error.hpp"
#include "scandsl/pass/describe_formulas.hpp"
#include "scandsl/pass/describe_notation.hpp"

namespace scandsl::detail {

/// Writes a program in a notation N: a line for every recurrence, then the outputs, each after the named
/// values that it reads.
template <class N> class program_writer {
public:
  explicit program_writer(const program& p)
      : program_(p), formulas_(p), names_(static_cast<std::size_t>(formulas_.count())),
        written_(formulas_.components.size(), false) {
    order_axes();
    name_scans();
    value_base_ = fresh_name({"v", "t", "value"});
  }

  std::string write() {
    for (const formulas::component& c : formulas_.components) write_recurrence(c);
    for (int i = 0; i < program_.stores.count; ++i)
      write_output(program_.stores[i], formulas_.results[static_cast<std::size_t>(i)]);
    write_fallbacks();
    return N::document(program_.id.view(), lines_);
  }

private:
  using component = formulas::component;

  const program& program_;
  formulas formulas_;
  std::vector<std::string> names_;  // by formula: how it is referred to; empty: written out in its place
  std::vector<bool> written_;       // by component: whether its line is there
  std::vector<int> axis_order_;
  std::vector<std::string> scan_names_;
  std::vector<std::string> taken_;
  std::string value_base_;
  int values_ = 0;
  std::vector<line> lines_;

  // ---- names

  /// Axes in the order of the outputs, those with many axes first, then in that of the inputs.
  void order_axes() {
    const auto append = [this](int a) {
      if (std::find(axis_order_.begin(), axis_order_.end(), a) == axis_order_.end()) axis_order_.push_back(a);
    };
    for (int rank = max_tensor_rank; rank > 0; --rank)
      for (const store_decl& store : program_.stores)
        if (program_.tensors[store.tensor].axes.count == rank)
          for (const std::int16_t a : program_.tensors[store.tensor].axes) append(a);
    for (const tensor_decl& t : program_.tensors)
      for (const std::int16_t a : t.axes) append(a);
    for (int a = 0; a < program_.axes.count; ++a) append(a);
  }

  /// The first base that no name of the program has, alone or with digits after it.
  std::string fresh_name(std::vector<std::string> bases) {
    if (taken_.empty()) {
      for (const name& a : program_.axes) taken_.emplace_back(a.view());
      for (const tensor_decl& t : program_.tensors) taken_.emplace_back(t.id.view());
      for (const parameter_decl& p : program_.parameters) taken_.emplace_back(p.id.view());
    }
    const auto is_free = [this](const std::string& base) {
      return std::none_of(taken_.begin(), taken_.end(), [&](const std::string& used) {
        return used.substr(0, base.size()) == base &&
               used.find_first_not_of("0123456789", base.size()) == std::string::npos;
      });
    };
    auto found = std::find_if(bases.begin(), bases.end(), is_free);
    if (found == bases.end()) {
      found = bases.end() - 1;
      while (!is_free(*found)) *found += "_";
    }
    taken_.push_back(*found);
    return *found;
  }

  /// s for a scan from the front and r for one from the back, as the adjoint is called.
  void name_scans() {
    for (int s = 0; s < program_.scans.count; ++s) {
      const bool reversed = program_.scans[s].reversed;
      scan_names_.push_back(reversed ? fresh_name({"r", "q", "p", "u", "w", "back"})
                                     : fresh_name({"s", "h", "c", "m", "z", "state"}));
    }
  }

  std::string axis_name(int axis) const { return N::name(program_.axes[axis].view()); }
  std::string tensor_reference(const tensor_decl& t) const {
    std::vector<std::string> indices;
    for (int i = 0; i < t.axes.count; ++i)
      indices.push_back(t.place[i] > 0 ? std::to_string(t.place[i] - 1) : axis_name(t.axes[i]));
    return N::indexed(N::name(t.id.view()), indices);
  }
  /// The same at computed positions.
  std::string element_reference(const node& n) const {
    const tensor_decl& t = program_.tensors[n.target];
    std::vector<std::string> indices;
    for (int i = 0, from = 0; i < t.axes.count; ++i)
      indices.push_back(n.function >> i & 1U ? expression(n.operand[from++]).text : axis_name(t.axes[i]));
    return N::indexed(N::name(t.id.view()), indices);
  }
  std::vector<std::string> axis_names(axis_mask axes) const {
    std::vector<std::string> found;
    for (const int a : axis_order_)
      if (axes & axis_bit(a)) found.push_back(axis_name(a));
    return found;
  }
  std::string value_reference(const std::string& base, int number, axis_mask axes) const {
    return N::indexed(N::numbered(N::name(base), number), axis_names(axes));
  }

  /// A component before, after or (opcode::last) after all positions.
  std::string state_reference(opcode which, int scan, int index) const {
    const scan_decl& s = program_.scans[scan];
    std::vector<std::string> indices;
    for (const int a : axis_order_) {
      if ((s.axes & axis_bit(a)) == 0) continue;
      std::string position = axis_name(a);
      if (a == s.axis && which == opcode::carry) position += s.reversed ? "+1" : "-1";
      if (a == s.axis && which == opcode::last) position = final_position(s);
      indices.push_back(position);
    }
    const auto same_scan = [scan](const component& c) { return c.scan == scan; };
    const auto live = std::count_if(formulas_.components.begin(), formulas_.components.end(), same_scan);
    const std::string base = N::name(scan_names_[static_cast<std::size_t>(scan)]);
    return N::indexed(live > 1 ? N::numbered(base, index + 1) : base, indices);
  }
  std::string final_position(const scan_decl& s) const {
    const char* which = s.reverse_parameter >= 0 ? "final " : s.reversed ? "first " : "last ";
    std::string position = N::words(which) + axis_name(s.axis);
    if (s.segment_axis >= 0) position += N::words(" of ") + axis_name(s.segment_axis);
    return position;
  }

  // ---- expressions

  /// The value under its name where it has one.
  piece expression(node_id id) const {
    const std::string& name = names_[static_cast<std::size_t>(id)];
    if (!name.empty()) return {name};
    if (const component* c = formulas_.component_of(id))
      return {state_reference(opcode::scan, c->scan, c->index)};
    return written_out(id);
  }

  piece written_out(node_id id) const {
    const node& n = formulas_.at(id);
    switch (n.op) {
    case opcode::constant: return N::number(n.value);
    case opcode::parameter: return {N::name(program_.parameters[n.target].id.view())};
    case opcode::load: {
      const tensor_decl& t = program_.tensors[n.target];
      return {t.role == tensor_role::positions ? axis_name(t.axes[0]) : tensor_reference(t)};
    }
    case opcode::carry:
    case opcode::scan:
    case opcode::last: return {state_reference(n.op, n.target, n.component)};
    case opcode::apply: return application(n);
    case opcode::sum: return N::sum(axis_names(summed_axes(n)), expression(n.operand[0]));
    case opcode::index: return {axis_name(n.target)};
    case opcode::extent: return N::extent(axis_name(n.target));
    case opcode::gather: return {element_reference(n)};
    case opcode::left:
    case opcode::right: break;
    }
    throw error("scandsl: describe: a scan's combine is used outside the scan");
  }

  piece application(const node& n) const {
    if (is_apply<primitive::attach_derivative_op>(n) || is_apply<primitive::to_real_op>(n))
      return expression(n.operand[0]);
    if (is_flag(n)) return expression(formulas_.at(n.operand[0]).operand[0]);
    if (is_apply<primitive::not_op>(n)) {
      const node& inner = formulas_.at(n.operand[0]);
      if (is_apply<primitive::equal_op>(inner))
        return N::unequal(expression(inner.operand[0]), expression(inner.operand[1]));
    }
    std::vector<piece> operands;
    for (const node_id operand : n.operand)
      if (operand != no_node) operands.push_back(expression(operand));
    if (is_apply<primitive::select_op>(n)) {
      const node& condition = formulas_.at(n.operand[0]);
      if (is_zero_test(condition))  // read as a flag
        return N::choice(expression(condition.operand[0]), operands[2], operands[1]);
      return N::choice(operands[0], operands[1], operands[2]);
    }
    return N::apply(n.function, operands);
  }

  /// scalar == 0, for a condition.
  bool is_zero_test(const node& n) const {
    if (!is_apply<primitive::equal_op>(n)) return false;
    const node &x = formulas_.at(n.operand[0]), &y = formulas_.at(n.operand[1]);
    return x.op == opcode::parameter && y.op == opcode::constant && y.value == 0;
  }
  /// scalar != 0, which reads as the scalar's name.
  bool is_flag(const node& n) const {
    return is_apply<primitive::not_op>(n) && is_zero_test(formulas_.at(n.operand[0]));
  }
  /// Too short for a name of its own.
  bool is_trivial(node_id id) const {
    const node& n = formulas_.at(id);
    if (n.op == opcode::sum || n.op == opcode::gather) return false;
    if (n.op != opcode::apply || is_flag(n) || is_zero_test(n)) return true;
    return is_apply<primitive::neg_op>(n) && is_trivial(n.operand[0]);
  }

  // ---- lines

  /// Writes the lines that must stand before a formula that reads this value.
  void prepare(node_id id) {
    if (id == no_node || !names_[static_cast<std::size_t>(id)].empty()) return;
    if (const component* c = formulas_.component_of(id)) return write_recurrence(*c);
    if (is_apply<primitive::to_real_op>(formulas_.at(id))) return prepare(formulas_.at(id).operand[0]);
    prepare_operands(id);
    const bool shared = formulas_.uses(id) > 1 && !is_trivial(id);
    if (!shared && !formulas_.has_rule(id)) return;
    line l{value_reference(value_base_, ++values_, formulas_.at(id).axes), written_out(id).text, {}};
    names_[static_cast<std::size_t>(id)] = l.left;
    lines_.push_back(l);
    write_rules(id, l.left);
  }
  void prepare_operands(node_id id) {
    if (is_apply<primitive::not_op>(formulas_.at(id)) && !is_trivial(id)) {
      const node_id inner = formulas_.at(id).operand[0];  // x != y is written as one
      if (is_apply<primitive::equal_op>(formulas_.at(inner))) return prepare_operands(inner);
    }
    if (is_trivial(id)) return;
    for (const node_id operand : formulas_.at(id).operand) prepare(operand);
  }

  void write_rules(node_id id, const std::string& name) {
    for (const formulas::rule& r : formulas_.rules) {
      if (r.value != id) continue;
      prepare(r.argument);
      prepare(r.partial);
      lines_.push_back(
          {N::derivative(name, expression(r.argument)), expression(r.partial).text, {N::words("as given")}});
    }
  }

  void write_recurrence(const component& c) {
    const std::size_t slot = static_cast<std::size_t>(&c - formulas_.components.data());
    if (written_[slot]) return;
    written_[slot] = true;
    const bool owns = formulas_.component_of(c.step) == &c;
    prepare(c.initial);
    prepare(formulas_.every[static_cast<std::size_t>(c.scan)]);
    if (owns)
      prepare_operands(c.step);
    else
      prepare(c.step);
    const std::string left = state_reference(opcode::scan, c.scan, c.index);
    lines_.push_back({left, (owns ? written_out(c.step) : expression(c.step)).text, walk_remarks(c)});
    if (owns) write_rules(c.step, left);
  }

  std::vector<std::string> walk_remarks(const component& c) const {
    const scan_decl& s = program_.scans[c.scan];
    const piece start = c.initial == no_node ? N::number(s.identity[c.index]) : expression(c.initial);
    std::vector<std::string> remarks{N::words("starting from ") + start.text};
    if (s.every != no_node)
      remarks.push_back(N::words("restarting every ") +
                        expression(formulas_.every[static_cast<std::size_t>(c.scan)]).text);
    if (s.offsets >= 0) {
      const tensor_decl& offsets = program_.tensors[s.offsets];
      remarks.push_back(N::words("restarting at ") + tensor_reference(offsets) +
                        (offsets.optional ? N::words(" if bound") : ""));
    }
    if (s.reverse_parameter >= 0) {
      const std::string axis = axis_name(s.axis);
      const std::string before = axis + "-1", after = axis + "+1";
      remarks.push_back(N::words("with ") + (s.reversed ? before : after) + N::words(" for ") +
                        (s.reversed ? after : before) + N::words(" if ") +
                        N::name(program_.parameters[s.reverse_parameter].id.view()));
    }
    return remarks;
  }

  /// An output names its value for the lines after it, where the two vary along the same axes.
  void write_output(const store_decl& store, node_id value) {
    const tensor_decl& t = program_.tensors[store.tensor];
    const std::string left = tensor_reference(t);
    const node& n = formulas_.at(value);
    std::string& name = names_[static_cast<std::size_t>(value)];
    const bool fresh = n.op == opcode::apply && name.empty() && formulas_.component_of(value) == nullptr;
    const bool names = fresh && t.mask() == n.axes;
    if (names)
      prepare_operands(value);
    else
      prepare(value);
    line l{left, (names ? written_out(value) : expression(value)).text, {}};
    if (t.optional) l.remarks.push_back(N::words("written if bound"));
    lines_.push_back(l);
    if (!names) return;
    name = left;
    write_rules(value, left);
  }

  void write_fallbacks() {
    const auto write = [this](const std::string& operand, double fallback) {
      lines_.push_back({operand, N::number(fallback).text + N::words(" unless bound"), {}});
    };
    for (const tensor_decl& t : program_.tensors)
      if (t.optional && t.role == tensor_role::input) write(tensor_reference(t), t.fallback);
    for (const parameter_decl& p : program_.parameters)
      if (p.optional) write(N::name(p.id.view()), p.fallback);
  }
};

}  // namespace scandsl::detail
