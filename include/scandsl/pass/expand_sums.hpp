#pragma once
#include "scandsl/pass/rewrite.hpp"

namespace scandsl {
namespace detail {

constexpr const scan_decl* newest_scan_along(const program& p, int axis) {
  for (int s = p.scans.count; s-- > 0;)
    if (p.scans[s].axis == axis) return &p.scans[s];
  return nullptr;
}

/// The sum of a value along one axis as the last value of a scan, which runs the way the newest scan along
/// that axis does: the two then share a sweep.
constexpr node_id sum_along(builder& b, node_id value, int axis) {
  scan_decl s;
  s.axis = static_cast<std::int16_t>(axis);
  s.components = 1;
  s.initial[0] = no_node;
  s.element[0] = value;
  s.combined[0] = b.apply(primitive::index<primitive::add_op>, b.placeholder(opcode::left, 0),
                          b.placeholder(opcode::right, 0));
  s.axes = b.result.nodes[value].axes | axis_bit(axis);
  if (const scan_decl* beside = newest_scan_along(b.result, axis)) {
    s.reversed = beside->reversed;
    s.reverse_parameter = beside->reverse_parameter;
  }
  return b.scan_value(opcode::last, b.scan(s), 0);
}

}  // namespace detail

/// Writes every sum along axes as scans, one an axis, for executors that know no sums. Axes that are scanned
/// anyway come first: such a sum joins the walk of that scan, and only its result goes on to the next axis.
constexpr program expand_sums(const program& p) {
  return rewrite(p, [](rewriting& copy, const node& old) {
    if (old.op != opcode::sum) return copy.copy(old);
    node_id value = copy.at(old.operand[0]);
    axis_mask scanned = 0;
    for (const scan_decl& s : copy.target.result.scans) scanned |= axis_bit(s.axis);
    const axis_mask order[2] = {summed_axes(old) & scanned, summed_axes(old) & ~scanned};
    for (const axis_mask axes : order)
      for (int a = 0; a < copy.source.axes.count; ++a)
        if (axes & axis_bit(a)) value = detail::sum_along(copy.target, value, a);
    return value;
  });
}

}  // namespace scandsl
