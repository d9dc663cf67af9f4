#pragma once
#include "scandsl/pass/rewrite.hpp"

namespace scandsl {
namespace detail {

constexpr const scan_decl* newest_scan_along(const program& p, int axis) {
  for (int s = p.scans.count; s-- > 0;)
    if (p.scans[s].axis == axis) return &p.scans[s];
  return nullptr;
}

/// Whether a value follows from a scan with packed sequences, whose walk along `axis` goes through each of
/// them by itself.
constexpr bool is_of_packed_scan(const program& p, node_id value, int axis) {
  bool below[max_nodes] = {};
  below[value] = true;
  for (int i = value; i >= 0; --i) {
    if (!below[i]) continue;
    const node& n = p.nodes[i];
    if ((n.op == opcode::carry || n.op == opcode::scan) && p.scans[n.target].axis == axis &&
        p.scans[n.target].offsets >= 0)
      return true;
    for (const node_id operand : n.operand)
      if (operand != no_node) below[operand] = true;
  }
  return false;
}

/// The sum of a value along one axis as the last value of a scan, which runs the way the newest scan along
/// that axis does: the two then share a sweep. What a scan with packed sequences gives is summed by sequence,
/// for the same reason; then `left` gets the axis of the sequences, along which the sum is still to be taken.
constexpr node_id sum_along(builder& b, node_id value, int axis, axis_mask& left) {
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
    if (beside->every == no_node && beside->offsets >= 0 && is_of_packed_scan(b.result, value, axis) &&
        (s.axes & axis_bit(beside->segment_axis)) == 0) {
      s.offsets = beside->offsets;
      s.segment_axis = beside->segment_axis;
      left |= axis_bit(s.segment_axis);
    }
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
    axis_mask scanned = 0, sequences = 0;
    for (const scan_decl& s : copy.target.result.scans) scanned |= axis_bit(s.axis);
    const auto sum = [&](axis_mask axes) {
      for (int a = 0; a < copy.source.axes.count; ++a)
        if (axes & axis_bit(a)) value = detail::sum_along(copy.target, value, a, sequences);
    };
    sum(summed_axes(old) & scanned);
    sum(summed_axes(old) & ~scanned);
    sum(sequences);
    return value;
  });
}

}  // namespace scandsl
