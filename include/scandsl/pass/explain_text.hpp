#pragma once
#include <cstdio>
#include <string>

#include "scandsl/core/error.hpp"
#include "scandsl/pass/nest.hpp"

/// Phrases that the explanations of all devices' plans share.
namespace scandsl::detail {

/// As message, however long.
template <class... Parts> std::string joined(const Parts&... parts) {
  std::string text;
  const auto append = [&]<class Part>(const Part& part) {
    if constexpr (std::is_convertible_v<const Part&, std::string_view>)
      text += std::string_view(part);
    else
      text += message(part);
  };
  (append(parts), ...);
  return text;
}

inline std::string size_text(std::int64_t bytes) {
  const char* unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int scale = 0;
  for (; value >= 1024.0 && scale < 4; ++scale) value /= 1024.0;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, scale == 0 ? "%.0f %s" : "%.2f %s", value, unit[scale]);
  return buffer;
}

/// Exponentials, sines and the like that do not vary along the walked axis, nor wait for a scan's last value:
/// they are computed once, before the loop over it.
inline int hoisted_functions(const program& kernel, const walk_table& table) {
  if (table.axis < 0) return 0;
  int count = 0;
  bool waits[max_nodes] = {};
  for (int i = 0; i < kernel.nodes.count; ++i) {
    const node& n = kernel.nodes[i];
    waits[i] = n.op == opcode::scan || n.op == opcode::carry || n.op == opcode::last;
    for (const node_id o : n.operand) waits[i] = waits[i] || (o != no_node && waits[o]);
    if (is_transcendental(n) && n.axes != 0 && !waits[i] && (n.axes & axis_bit(table.axis)) == 0) ++count;
  }
  return count;
}

/// "  kernel 1: walks n, 2048 steps of 1000 lanes"
inline std::string kernel_heading_text(const program& kernel, const walk_table& table, const loop_nest& nest,
                                       int index) {
  const std::string walked = table.axis >= 0 ? std::string(kernel.axes[table.axis].view()) : "memory order";
  std::string text = joined("  kernel ", index + 1, ": walks ", walked, ", ", nest.steps(), " steps of ",
                            nest.lane_count(), nest.lane_count() == 1 ? " lane" : " lanes");
  if (const int hoisted = hoisted_functions(kernel, table); hoisted > 0)
    text += joined(", ", hoisted, hoisted == 1 ? " function" : " functions", " computed once for all steps");
  return text;
}

/// "    sweep 1: forward, the other way if reverse"
inline std::string sweep_heading_text(const program& kernel, const walk_table& table, int i) {
  const walk_stage& sweep = table.sweep[i];
  std::string text = joined("    sweep ", i + 1, ": ", sweep.reversed ? "backward" : "forward");
  if (sweep.reverse_parameter >= 0)
    text += joined(", the other way if ", kernel.parameters[sweep.reverse_parameter].id.view());
  return text;
}

inline std::string operands_text(int read, int written) {
  return joined(", ", read, read == 1 ? " operand read" : " operands read", ", ", written, " written");
}

}  // namespace scandsl::detail
