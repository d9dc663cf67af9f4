#pragma once
#include <string>
#include <vector>

#include "scandsl/pass/describe_notation.hpp"
#include "scandsl/pass/schedule.hpp"

/// A program and its schedule node by node, as the documentation shows them.
namespace docs_test {

using namespace scandsl;

inline std::string shown(const name& id) { return std::string(id.view()); }
inline std::string shown(node_id id) { return std::to_string(id); }

/// The names of axes, those of the first output in its order.
inline std::string axes_of(const program& p, axis_mask axes) {
  std::string text;
  const auto append = [&](int a) {
    if (axes & axis_bit(a)) text += (text.empty() ? "" : ",") + shown(p.axes[a]);
    axes &= ~axis_bit(a);
  };
  for (const std::int16_t a : p.tensors[p.stores[0].tensor].axes) append(a);
  for (int a = 0; a < p.axes.count; ++a) append(a);
  return text;
}

/// "multiply 3 4": what a node is, with the numbers of its operands.
inline std::string operation(const program& p, const node& n) {
  static const std::vector<std::string> functions = []<class... P>(std::type_identity<std::tuple<P...>>) {
    return std::vector<std::string>{std::string(P::name)...};
  }(std::type_identity<primitive::primitive_list>{});
  const auto of_scan = [&](const char* what) {
    return std::string(what) + " of scan " + std::to_string(n.target) + ", component " +
           std::to_string(n.component);
  };
  switch (n.op) {
  case opcode::constant: return "constant " + detail::printed(n.value);
  case opcode::parameter: return "parameter " + shown(p.parameters[n.target].id);
  case opcode::load: return "load " + shown(p.tensors[n.target].id);
  case opcode::left: return "left " + std::to_string(n.target);
  case opcode::right: return "right " + std::to_string(n.target);
  case opcode::carry: return of_scan("carry");
  case opcode::scan: return of_scan("value");
  case opcode::last: return of_scan("last");
  case opcode::sum: return "sum " + shown(n.operand[0]) + " along " + axes_of(p, summed_axes(n));
  case opcode::index: return "index " + shown(p.axes[n.target]);
  case opcode::extent: return "extent " + shown(p.axes[n.target]);
  case opcode::gather:
  case opcode::apply: break;
  }
  std::string text =
      n.op == opcode::gather ? "gather " + shown(p.tensors[n.target].id) : functions[n.function];
  for (const node_id operand : n.operand)
    if (operand != no_node) text += " " + shown(operand);
  return text;
}

inline std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

inline std::string line_of(const program& p, int id) {
  const std::string number = std::to_string(id);
  return std::string(number.size() < 2 ? " " : "") + number + "  " + operation(p, p.nodes[id]);
}

template <class Shown> std::string listed(const scan_decl& s, Shown component) {
  std::string text;
  for (int k = 0; k < s.components; ++k) text += (k > 0 ? ", " : "") + component(k);
  return text;
}

/// Nodes with their axes, then scans, then outputs.
inline std::string table_of(const program& p) {
  std::string text;
  for (int i = 0; i < p.nodes.count; ++i) {
    const std::string axes = axes_of(p, p.nodes[i].axes);
    text += (axes.empty() ? line_of(p, i) : padded(line_of(p, i), 34) + axes) + "\n";
  }
  for (int i = 0; i < p.scans.count; ++i) {
    const scan_decl& s = p.scans[i];
    text += "scan " + std::to_string(i) + " along " + shown(p.axes[s.axis]) +
            (s.reversed ? ", backward" : ", forward");
    text += ": element " + listed(s, [&](int k) { return shown(s.element[k]); });
    text += "; combined " + listed(s, [&](int k) { return shown(s.combined[k]); });
    text += "; identity " + listed(s, [&](int k) { return detail::printed(s.identity[k]); }) + "\n";
  }
  for (const store_decl& store : p.stores)
    text += "output " + shown(p.tensors[store.tensor].id) + " = " + shown(store.value) + "\n";
  return text;
}

inline std::string stage_text(const program& p, const stage_schedule& at) {
  std::string text;
  for (const std::int16_t each : at.instructions) {
    if (each < 0) {
      text += "  advance scan " + std::to_string(-1 - each) + "\n";
      continue;
    }
    const source from = at.from[each];
    bool kept = false;
    for (const node_id id : at.keeps) kept = kept || id == each;
    const char* remark = from == source::kept || from == source::scratch ? "computed before"
                         : kept                                          ? "kept for later stages"
                                                                         : "";
    text += "  " + (*remark != 0 ? padded(line_of(p, each), 34) + remark : line_of(p, each)) + "\n";
  }
  for (const std::int16_t each : at.stores)
    text +=
        "  store " + shown(p.tensors[p.stores[each].tensor].id) + " = " + shown(p.stores[each].value) + "\n";
  return text;
}

/// The stages of one kernel program, in the order in which a lane goes through them.
inline std::string schedule_text(const program& p, const schedule& s) {
  std::string text;
  for (int i = 0; i <= s.sweeps; ++i) {
    text += "boundary " + std::to_string(i) + "\n" + stage_text(p, s.boundary[i]);
    for (int scan = 0; scan < p.scans.count; ++scan)
      if (i < s.sweeps && s.sweep_of_scan[scan] == i) text += "  start scan " + std::to_string(scan) + "\n";
    if (i < s.sweeps)
      text += "sweep " + std::to_string(i) + " along " + shown(p.axes[s.axis]) +
              (s.sweep[i].reversed ? ", backward\n" : ", forward\n") + stage_text(p, s.sweep[i]);
  }
  return text;
}

}  // namespace docs_test
