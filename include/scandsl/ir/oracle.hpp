#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "scandsl/core/error.hpp"
#include "scandsl/ir/oracle_primitive.hpp"
#include "scandsl/ir/program.hpp"

/// The meaning of a program, in float64 and position by position: what executors are compared with. Slow and
/// obvious on purpose; it shares no formula with the executors.
namespace scandsl {

/// A dense tensor, row-major in the declared order of its axes. Offsets of packed sequences are values too.
struct oracle_tensor {
  std::vector<double> values;
  std::vector<std::int64_t> extents;
};

namespace detail {

/// A position on every axis of a program; axes that a value lacks are ignored when it is read.
using oracle_position = std::array<std::int64_t, static_cast<std::size_t>(max_axes)>;

class oracle_run {
public:
  using tensors = std::map<std::string, oracle_tensor>;
  using scalars = std::map<std::string, double>;
  using sizes = std::map<std::string, std::int64_t>;

  oracle_run(const program& p, const tensors& inputs, const scalars& numbers, const sizes& extents)
      : program_(p), inputs_(inputs), numbers_(numbers) {
    check_names();
    find_extents(extents);
    for (const tensor_decl& declared : p.tensors)
      if (declared.role == tensor_role::offsets) check_offsets(declared);
  }

  tensors operator()() {
    values_.resize(slot(program_.nodes.count));
    scans_.resize(slot(program_.scans.count));
    find_combine_nodes();
    for (int i = 0; i < program_.nodes.count; ++i)
      if (!inside_combine_[slot(i)]) evaluate(i);
    tensors outputs;
    for (const store_decl& store : program_.stores) write(store, outputs);
    return outputs;
  }

private:
  using values = std::vector<double>;
  using state = std::array<double, static_cast<std::size_t>(max_components)>;  ///< of a scan, at one place
  static constexpr std::size_t slot(std::int64_t i) { return static_cast<std::size_t>(i); }

  /// Every component of one scan: before and after each position, and after the last one.
  struct scan_values {
    bool known = false;
    std::vector<values> carry, scan, last;
  };

  // ---- what the caller gave

  static std::string text(const name& id) { return std::string(id.view()); }
  /// The name of that text; the empty one, which nothing has, where it is too long.
  static name short_name(const std::string& given) {
    return given.size() < name_capacity ? make_name(given) : name{};
  }
  std::string shown(int axis) const { return text(program_.axes[axis]); }
  /// What a tensor is bound to; null if it is not.
  const oracle_tensor* given(const tensor_decl& declared) const {
    const auto found = inputs_.find(text(declared.id));
    return found == inputs_.end() ? nullptr : &found->second;
  }
  bool bound(const tensor_decl& declared) const { return given(declared) != nullptr; }

  void check_names() const {
    const auto unknown = [](const std::string& given) {
      throw argument_error("names that the program reads", message("\"", given, "\""), "check the spelling");
    };
    for (const auto& [given, unused] : inputs_) {
      const int t = program_.find_tensor(short_name(given));
      if (t < 0 || program_.tensors[t].role == tensor_role::output) unknown(given);
    }
    for (const auto& [given, unused] : numbers_)
      if (program_.find_parameter(short_name(given)) < 0) unknown(given);
    for (const tensor_decl& declared : program_.tensors)
      if (declared.role == tensor_role::input && !declared.optional && !bound(declared))
        throw argument_error(message("the input \"", declared.id.view(), "\""), "none",
                             "give every required input");
  }

  void agree(int axis, std::int64_t extent, const std::string& source) {
    std::int64_t& known = extents_[slot(axis)];
    if (extent < 0 || (known >= 0 && known != extent))
      throw shape_error(known < 0 ? "an extent of at least 0"
                                  : message("extent ", known, " on axis ", shown(axis)),
                        message(extent, " from ", source), "give tensors whose axes agree");
    known = extent;
  }

  void find_extents(const sizes& given) {
    extents_.fill(-1);
    for (int a = 0; a < program_.axes.count; ++a)
      if (program_.parts[a] > 0) agree(a, program_.parts[a], "the expressions stacked along it");
    for (const auto& [axis, extent] : given) {
      const int found = program_.find_axis(short_name(axis));
      if (found < 0)
        throw argument_error("the program's axes", message("\"", axis, "\""), "give extents of axes it has");
      agree(found, extent, "the extents");
    }
    for (const tensor_decl& declared : program_.tensors) {
      if (declared.role == tensor_role::offsets && !bound(declared))
        agree(declared.axes[0], 1, "unbound offsets");
      if (declared.role == tensor_role::output || !bound(declared)) continue;
      const oracle_tensor& got = inputs_.at(text(declared.id));
      const std::int64_t size =
          std::accumulate(got.extents.begin(), got.extents.end(), std::int64_t{1}, std::multiplies<>());
      if (got.extents.size() != slot(declared.axes.count) || got.values.size() != slot(size))
        throw shape_error(message("rank ", declared.axes.count, " for \"", declared.id.view(), "\""),
                          message("rank ", got.extents.size(), " and ", got.values.size(), " values"),
                          "give one extent for each axis and as many values as their product");
      const std::int64_t boundaries = declared.role == tensor_role::offsets ? 1 : 0;
      for (int i = 0; i < declared.axes.count; ++i)
        agree(declared.axes[i], got.extents[slot(i)] - boundaries, text(declared.id));
    }
  }

  std::int64_t extent(int axis) const {
    const std::int64_t known = extents_[slot(axis)];
    if (known < 0)
      throw shape_error(message("an extent of axis ", shown(axis)), "none",
                        "bind a tensor that has it, or give it in extents");
    return known;
  }

  void check_offsets(const tensor_decl& declared) const {
    if (!bound(declared)) return;
    const values& at = inputs_.at(text(declared.id)).values;
    for (const scan_decl& s : program_.scans)
      if (s.offsets >= 0 && program_.tensors[s.offsets].id == declared.id &&
          (at.front() != 0 || at.back() != static_cast<double>(extent(s.axis)) ||
           !std::is_sorted(at.begin(), at.end())))
        throw argument_error(
            message("offsets \"", declared.id.view(), "\" from 0 to ", extent(s.axis), ", not decreasing"),
            "others", "give the boundaries of the packed sequences");
  }

  // ---- dense values over the axes of a node

  static bool has(axis_mask axes, int axis) { return (axes & axis_bit(axis)) != 0; }

  /// Row-major, the program's last axis fastest.
  std::size_t offset(axis_mask axes, const oracle_position& at) const {
    std::int64_t result = 0;
    for (int a = 0; a < program_.axes.count; ++a)
      if (has(axes, a)) result = result * extent(a) + at[slot(a)];
    return slot(result);
  }

  std::size_t count(axis_mask axes) const {
    std::int64_t result = 1;
    for (int a = 0; a < program_.axes.count; ++a)
      if (has(axes, a)) result *= extent(a);
    return slot(result);
  }

  /// Calls f at every position of `axes`, the other coordinates being 0, in the order of offset().
  template <class F> void for_each_position(axis_mask axes, F f) const {
    for (std::size_t i = 0, n = count(axes); i < n; ++i) {
      oracle_position at{};
      auto rest = static_cast<std::int64_t>(i);
      for (int a = program_.axes.count; a-- > 0;)
        if (has(axes, a)) {
          at[slot(a)] = rest % extent(a);
          rest /= extent(a);
        }
      f(at);
    }
  }

  double value(node_id id, const oracle_position& at) const {
    return values_[slot(id)][offset(program_.nodes[id].axes, at)];
  }

  // ---- nodes

  void evaluate(int id) {
    const node& n = program_.nodes[id];
    values& result = values_[slot(id)];
    result.reserve(count(n.axes));
    const auto component = slot(n.component);
    switch (n.op) {
    case opcode::constant: result = {n.value}; return;
    case opcode::parameter: result = {number(program_.parameters[n.target])}; return;
    case opcode::load: read(n, result); return;
    case opcode::apply:
      for_each_position(n.axes, [&](const auto& at) {
        result.push_back(applied(n, [&](node_id operand) { return value(operand, at); }));
      });
      return;
    case opcode::index:
      for_each_position(n.axes,
                        [&](const auto& at) { result.push_back(static_cast<double>(at[slot(n.target)])); });
      return;
    case opcode::extent: result = {static_cast<double>(extent(n.target))}; return;
    case opcode::gather: gather(n, result); return;
    case opcode::carry: result = scanned(n.target).carry[component]; return;
    case opcode::scan: result = scanned(n.target).scan[component]; return;
    case opcode::last: result = scanned(n.target).last[component]; return;
    case opcode::sum:
      result.assign(count(n.axes), 0.0);
      for_each_position(n.axes | summed_axes(n),
                        [&](const auto& at) { result[offset(n.axes, at)] += value(n.operand[0], at); });
      return;
    case opcode::left:
    case opcode::right: break;
    }
    throw error("oracle: a state of a combine stands outside of it");
  }

  template <class Operand> static double applied(const node& n, Operand operand) {
    double x[3] = {};
    for (int i = 0; i < 3; ++i)
      if (n.operand[i] != no_node) x[i] = operand(n.operand[i]);
    return oracle_primitive(n.function, x[0], x[1], x[2]);
  }

  double number(const parameter_decl& declared) const {
    if (const auto found = numbers_.find(text(declared.id)); found != numbers_.end()) return found->second;
    if (!declared.optional)
      throw argument_error(message("the scalar \"", declared.id.view(), "\""), "none",
                           "give every required scalar");
    return declared.fallback;
  }

  void read(const node& n, values& result) const {
    const tensor_decl& declared = program_.tensors[n.target];
    const oracle_tensor* const input = given(declared);
    for_each_position(n.axes, [&](const auto& at) {
      result.push_back(input ? input->values[declared_offset(declared, at)] : declared.fallback);
    });
  }

  void gather(const node& n, values& result) const {
    const tensor_decl& declared = program_.tensors[n.target];
    const oracle_tensor* const input = given(declared);
    for_each_position(n.axes, [&](const auto& at) {
      result.push_back(input ? gathered(n, declared, *input, at) : declared.fallback);
    });
  }

  /// A tensor's element at computed positions; 0 outside.
  double gathered(const node& n, const tensor_decl& declared, const oracle_tensor& input,
                  oracle_position at) const {
    const oracle_position here = at;
    for (int i = 0, from = 0; i < declared.axes.count; ++i) {
      if ((n.function >> i & 1U) == 0) continue;
      const double position = value(n.operand[from++], here);
      if (position < 0 || position >= static_cast<double>(extent(declared.axes[i]))) return 0.0;
      at[slot(declared.axes[i])] = static_cast<std::int64_t>(position);
    }
    return input.values[declared_offset(declared, at)];
  }

  std::size_t declared_offset(const tensor_decl& declared, const oracle_position& at) const {
    std::int64_t result = 0;
    for (const std::int16_t axis : declared.axes) result = result * extent(axis) + at[slot(axis)];
    return slot(result);
  }

  void write(const store_decl& store, tensors& outputs) const {
    const tensor_decl& declared = program_.tensors[store.tensor];
    oracle_tensor& output = outputs[text(declared.id)];
    for (const std::int16_t axis : declared.axes) output.extents.push_back(extent(axis));
    output.values.resize(count(declared.mask()));
    for_each_position(declared.mask(), [&](const auto& at) {
      output.values[declared_offset(declared, at)] = value(store.value, at);
    });
  }

  // ---- scans

  /// The nodes that depend on the states of a combine: they have a value inside it only.
  void find_combine_nodes() {
    inside_combine_.assign(values_.size(), false);
    for (int i = 0; i < program_.nodes.count; ++i) {
      const node& n = program_.nodes[i];
      inside_combine_[slot(i)] = n.op == opcode::left || n.op == opcode::right;
      for (const node_id operand : n.operand)
        if (operand != no_node && inside_combine_[slot(operand)]) inside_combine_[slot(i)] = true;
    }
  }

  /// The nodes of a scan's combine, operands first.
  std::vector<int> combine_nodes(const scan_decl& s) const {
    std::vector<bool> needed(values_.size(), false);
    for (int k = 0; k < s.components; ++k) needed[slot(s.combined[k])] = true;
    std::vector<int> nodes;
    for (int i = program_.nodes.count; i-- > 0;) {
      if (!needed[slot(i)] || !inside_combine_[slot(i)]) continue;
      nodes.insert(nodes.begin(), i);
      for (const node_id operand : program_.nodes[i].operand)
        if (operand != no_node) needed[slot(operand)] = true;
    }
    return nodes;
  }

  /// `inside` has a place for every node.
  state combined(const scan_decl& s, const std::vector<int>& nodes, const state& left, const state& right,
                 values& inside) const {
    const auto read = [&](node_id id) {
      return inside_combine_[slot(id)] ? inside[slot(id)] : value(id, {});
    };
    for (const int id : nodes) {
      const node& n = program_.nodes[id];
      const auto component = slot(n.target);
      inside[slot(id)] = n.op == opcode::left    ? left[component]
                         : n.op == opcode::right ? right[component]
                                                 : applied(n, read);
    }
    state result{};
    for (int k = 0; k < s.components; ++k) result[slot(k)] = read(s.combined[k]);
    return result;
  }

  /// The state at one place: a node for each component, or the identity.
  state state_of(const scan_decl& s, const node_id (&nodes)[max_components],
                 const oracle_position& at) const {
    state result{};
    for (int k = 0; k < s.components; ++k)
      result[slot(k)] = nodes[k] == no_node ? s.identity[k] : value(nodes[k], at);
    return result;
  }

  /// The boundaries of the packed sequences of a scan; those of one sequence when its offsets are not bound.
  std::vector<std::int64_t> boundaries(const scan_decl& s) const {
    if (s.offsets < 0 || !bound(program_.tensors[s.offsets])) return {0, extent(s.axis)};
    const values& given = inputs_.at(text(program_.tensors[s.offsets].id)).values;
    return {given.begin(), given.end()};
  }

  /// The restart interval, 0 for none.
  std::int64_t interval(const scan_decl& s) const {
    const double every = s.every == no_node ? 0 : value(s.every, {});
    return every >= 1 && every <= static_cast<double>(extent(s.axis)) ? static_cast<std::int64_t>(every) : 0;
  }

  bool backward(const scan_decl& s) const {
    return s.reversed != (s.reverse_parameter >= 0 && number(program_.parameters[s.reverse_parameter]) != 0);
  }

  const scan_values& scanned(int index) {
    const scan_decl& s = program_.scans[index];
    scan_values& result = scans_[slot(index)];
    if (result.known) return result;
    const axis_mask segment = s.segment_axis < 0 ? 0 : axis_bit(s.segment_axis);
    if ((s.axes & segment) != 0) throw error("oracle: the elements of a packed scan vary along its segments");
    const axis_mask columns = s.axes & ~axis_bit(s.axis);
    const auto components = slot(s.components);
    result.carry.assign(components, values(count(s.axes)));
    result.scan = result.carry;
    result.last.assign(components, values(count(columns | segment)));
    const std::vector<int> combine = combine_nodes(s);
    for_each_position(columns | segment, [&](const oracle_position& at) { walk(s, combine, at, result); });
    result.known = true;
    return result;
  }

  /// One segment of one column, position by position.
  void walk(const scan_decl& s, const std::vector<int>& combine, oracle_position at,
            scan_values& result) const {
    const axis_mask segment_bit = s.segment_axis < 0 ? 0 : axis_bit(s.segment_axis);
    const std::vector<std::int64_t> bounds = boundaries(s);
    const std::size_t segment = s.segment_axis < 0 ? 0 : slot(at[slot(s.segment_axis)]);
    const std::int64_t begin = bounds[segment], end = bounds[segment + 1], every = interval(s);
    const bool from_the_end = backward(s);
    const state start = state_of(s, s.initial, at);
    const auto put = [&](std::vector<values>& to, axis_mask axes, const state& here) {
      const std::size_t place = offset(axes, at);
      for (std::size_t k = 0; k < to.size(); ++k) to[k][place] = here[k];
    };
    values inside(values_.size());
    state sum = start;
    for (std::int64_t step = 0; step < end - begin; ++step) {
      const std::int64_t local = from_the_end ? end - begin - 1 - step : step;
      at[slot(s.axis)] = begin + local;
      // Stretches are counted from the segment's position 0 also when they are walked from their end.
      if (every != 0 && (from_the_end ? local + 1 : local) % every == 0) sum = start;
      put(result.carry, s.axes, sum);
      sum = combined(s, combine, sum, state_of(s, s.element, at), inside);
      put(result.scan, s.axes, sum);
    }
    put(result.last, (s.axes & ~axis_bit(s.axis)) | segment_bit, sum);
  }

  const program& program_;
  const tensors& inputs_;
  const scalars& numbers_;
  std::array<std::int64_t, static_cast<std::size_t>(max_axes)> extents_{};
  std::vector<values> values_;  ///< of every node outside a combine
  std::vector<bool> inside_combine_;
  std::vector<scan_values> scans_;
};

}  // namespace detail

/// Every output of p, in float64.
///   inputs   tensors and offsets by name; optional ones may be left out (their fallback; one segment)
///   scalars  run-time numbers by name; optional ones may be left out (their fallback)
///   extents  of axes by name, where no bound tensor has the axis
/// Throws argument_error when a required input is missing, a name is not the program's, or offsets do not
/// cover their axis; shape_error when extents disagree.
inline std::map<std::string, oracle_tensor> oracle(const program& p,
                                                   const std::map<std::string, oracle_tensor>& inputs,
                                                   const std::map<std::string, double>& scalars = {},
                                                   const std::map<std::string, std::int64_t>& extents = {}) {
  return detail::oracle_run(p, inputs, scalars, extents)();
}

}  // namespace scandsl
