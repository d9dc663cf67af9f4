#pragma once
#include <limits>

#include "scandsl/core/overlap.hpp"
#include "scandsl/pass/in_place.hpp"
#include "scandsl/pass/kernel_problem.hpp"

namespace scandsl {
namespace detail {

inline void check_types(const program& p, const problem& bound) {
  for (int t = 0; t < p.tensors.count; ++t) {
    const bound_tensor& b = bound.tensors[static_cast<std::size_t>(t)];
    const tensor_decl& declared = p.tensors[t];
    const auto id = [&] { return text(declared.id); };
    if (declared.role == tensor_role::scratch) continue;
    if (!b.bound) {
      if (!declared.optional) throw argument_error(message("a view for ", id()), "none", "bind it");
      continue;
    }
    if (b.view.rank != declared.axes.count)
      throw shape_error(message("rank ", declared.axes.count, " for ", id()), message("rank ", b.view.rank),
                        "bind one dimension, or one list of dimensions, per axis");
    if (holds_integers(declared) == is_floating(b.view.type))
      throw dtype_error(holds_integers(declared)
                            ? message("int32 or int64 for ",
                                      declared.role == tensor_role::offsets ? "the offsets " : "", id())
                            : message("float32, float64, bfloat16 or float16 for ", id()),
                        name_of(b.view.type), "convert it first");
    if (declared.role == tensor_role::output && !b.view.writable)
      throw argument_error(message("writable memory for the output ", id()), "a view of const",
                           "bind memory that may be written");
    std::int64_t count = 1;
    for (int i = 0; i < b.view.rank; ++i) count *= b.view.axis[i].count();
    if (declared.role == tensor_role::offsets && count < 1)
      throw shape_error(message("at least one offset in ", id()), "none",
                        "give S + 1 offsets for S sequences; without sequences, leave the tensor unbound");
    if (b.view.data == nullptr && count > 0)
      throw argument_error(message("memory for ", id()), "a null pointer", "bind allocated memory");
  }
}

inline void check_overlaps(const program& p, const problem& bound, const in_place_pairs& in_place) {
  for (int t = 0; t < p.tensors.count; ++t) {
    const bound_tensor& out = bound.tensors[static_cast<std::size_t>(t)];
    if (!out.bound || p.tensors[t].role != tensor_role::output) continue;
    const footprint mine = footprint_of(out.view);
    if (self_overlaps(mine))
      throw overlap_error(message("distinct memory for each element of the output ", text(p.tensors[t].id)),
                          "a view whose elements share memory", "write to a dense tensor, then expand it");
    for (int u = 0; u < p.tensors.count; ++u) {
      const bound_tensor& other = bound.tensors[static_cast<std::size_t>(u)];
      if (u == t || !other.bound || (p.tensors[u].role == tensor_role::output && u < t)) continue;
      if (!might_overlap(out.view, other.view)) continue;
      const footprint theirs = footprint_of(other.view);
      const bool same_place = in_place.allows(t, u) && p.tensors[u].axes == p.tensors[t].axes &&
                              out.view.type == other.view.type && identical(mine, theirs);
      if (!same_place && overlaps(mine, theirs))
        throw overlap_error(
            message("the output ", text(p.tensors[t].id), " apart from ", text(p.tensors[u].id)),
            "views that share memory",
            in_place.allows(t, u) ? "bind other memory, or the very same view to work in place"
                                  : "bind other memory");
    }
  }
}

inline void check_offsets(const program& p, const problem& bound, const iteration_space& space,
                          bool on_host) {
  for (const scan_decl& scan : p.scans) {
    if (scan.offsets < 0) continue;
    if (!bound.tensors[static_cast<std::size_t>(scan.offsets)].bound) {
      if (space.extent[static_cast<std::size_t>(scan.segment_axis)] != 1)
        throw shape_error(message("extent 1 of axis ", text(p.axes[scan.segment_axis]), ", for ",
                                  text(p.tensors[scan.offsets].id), " is not bound"),
                          message("extent ", space.extent[static_cast<std::size_t>(scan.segment_axis)]),
                          "bind the offsets of the packed sequences, or states of one");
      continue;
    }
    if (!on_host) continue;
    const std::string_view id = text(p.tensors[scan.offsets].id), along = text(p.axes[scan.axis]);
    const std::vector<std::int64_t> values =
        read_offsets(bound.tensors[static_cast<std::size_t>(scan.offsets)].view);
    if (values.empty() || values.front() != 0)
      throw argument_error(message(id, " starting at 0"),
                           values.empty() ? message("no offsets") : message(values.front()),
                           message("give S + 1 offsets for S sequences, from 0 to the extent of ", along));
    const std::int64_t extent = space.extent[static_cast<std::size_t>(scan.axis)];
    if (values.back() != extent)
      throw argument_error(message(id, " ending at ", extent, ", the extent of ", along),
                           message(values.back()), "the sequences fill the axis");
    for (std::size_t i = 1; i < values.size(); ++i)
      if (values[i] < values[i - 1])
        throw argument_error(message(id, " that does not decrease"),
                             message(values[i - 1], " then ", values[i]),
                             "sort the boundaries; an empty sequence repeats one");
  }
}

/// Stacks have as many positions as expressions; a table is short; positions fit the integers they are
/// counted in.
inline void check_positions(const program& p, const problem& bound, const iteration_space& space) {
  const bool in_double = computes_in_double(p, bound);
  for (int a = 0; a < p.axes.count; ++a) {
    const std::int64_t extent = space.extent[static_cast<std::size_t>(a)];
    if (p.parts[a] > 0 && extent != p.parts[a] && space.is_bound[static_cast<std::size_t>(a)])
      throw shape_error(message("extent ", p.parts[a], " of axis ", text(p.axes[a]),
                                ", along which so many values are stacked"),
                        message("extent ", extent), "bind tensors with that extent");
    if (in_double || extent <= std::numeric_limits<std::int32_t>::max()) continue;
    bool counted = false;
    for (const node& n : p.nodes) counted = counted || (n.op == opcode::index && n.target == a);
    for (const node& n : p.nodes)
      for (int i = 0; n.op == opcode::gather && i < p.tensors[n.target].axes.count; ++i)
        counted = counted || ((n.function >> i & 1U) != 0 && p.tensors[n.target].axes[i] == a);
    if (counted)
      throw shape_error(message("at most 2^31 - 1 positions of axis ", text(p.axes[a]),
                                ", for they are counted in 32 bits"),
                        message("extent ", extent), "bind float64 operands, or cut the axis in two");
  }
  for (int t = 0; t < p.tensors.count; ++t)
    if (p.tensors[t].role == tensor_role::table && bound.tensors[static_cast<std::size_t>(t)].bound &&
        bound.tensors[static_cast<std::size_t>(t)].view.axis[0].count() > max_table)
      throw shape_error(message("at most ", max_table, " integers in the table ", text(p.tensors[t].id)),
                        message(bound.tensors[static_cast<std::size_t>(t)].view.axis[0].count()),
                        "bind an integer_tensor instead");
}

}  // namespace detail

/// Throws what a run of `p` on `bound` would meet: shape_error, dtype_error, argument_error, overlap_error.
/// Nothing has been written then. `in_place`: where an output may be bound to the very view of an input.
/// `on_host`: the operands can be read.
inline iteration_space validate(const program& p, const problem& bound, const in_place_pairs& in_place,
                                bool on_host = true) {
  detail::check_types(p, bound);
  iteration_space space = make_iteration_space(p, bound);
  detail::check_offsets(p, bound, space, on_host);
  detail::check_positions(p, bound, space);
  detail::check_overlaps(p, bound, in_place);
  return space;
}

}  // namespace scandsl
