#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "scandsl/core/view.hpp"
#include "scandsl/ir/program.hpp"

namespace scandsl {

/// One tensor of a program as bound: memory, element type, and for each of its axes (in the order of
/// tensor_decl) the dimensions that axis covers.
struct bound_tensor {
  bool bound = false;
  erased_view view;
};

/// A program's operands at run time: what `run` binds and `plan` plans for.
struct problem {
  std::vector<bound_tensor> tensors;                ///< by program::tensors
  std::array<double, max_parameters> parameters{};  ///< by program::parameters
};

/// A problem with the optional scalars at their fallbacks and nothing else bound.
inline problem unbound_problem(const program& p) {
  problem result;
  result.tensors.resize(static_cast<std::size_t>(p.tensors.count));
  for (int i = 0; i < p.parameters.count; ++i)
    result.parameters[static_cast<std::size_t>(i)] = p.parameters[i].fallback;
  return result;
}

/// One dimension of the iteration space: part of one axis, with its stride in every tensor (0 where it has
/// none).
struct dimension {
  int axis = -1;
  std::int64_t extent = 1;
  std::array<std::int64_t, max_tensors> stride{};
};

/// The iteration space of a problem: each axis as a list of dimensions, outermost first, common to all
/// tensors.
struct iteration_space {
  std::array<std::vector<dimension>, max_axes> axis;
  std::array<std::int64_t, max_axes> extent{};
  std::array<bool, max_axes> is_bound{};  ///< whether a tensor has the axis; else its extent is 1

  std::vector<dimension> dimensions(axis_mask axes) const {
    std::vector<dimension> all;
    for (int a = 0; a < max_axes; ++a)
      if (axes >> a & 1U)
        all.insert(all.end(), axis[static_cast<std::size_t>(a)].begin(),
                   axis[static_cast<std::size_t>(a)].end());
    return all;
  }
};

namespace detail {

constexpr std::string_view text(const name& n) { return n.view(); }

/// Splits two lists of dimensions until their extents agree; false where they cannot.
inline bool common_refinement(std::vector<std::int64_t>& left, std::vector<std::int64_t>& right,
                              std::vector<std::int64_t>& common) {
  common.clear();
  while (true) {
    while (!left.empty() && left.back() == 1) left.pop_back();
    while (!right.empty() && right.back() == 1) right.pop_back();
    if (left.empty() || right.empty()) break;
    std::int64_t& l = left.back();
    std::int64_t& r = right.back();
    const std::int64_t shared = l < r ? l : r;
    if (l % shared != 0 || r % shared != 0) return false;
    common.insert(common.begin(), shared);
    l /= shared;
    r /= shared;
  }
  return left.empty() && right.empty();
}

/// Whether a list of dimensions already is cut into these extents.
inline bool is_cut(const dims& list, const std::vector<std::int64_t>& extents) {
  if (list.size() != static_cast<int>(extents.size())) return false;
  auto extent = extents.begin();
  for (const dim& d : list)
    if (d.extent != *extent++ || d.extent == 1) return false;
  return true;
}

/// `list`, cut into dimensions of the given extents (whose product is the list's count).
inline std::vector<dim> refine(const dims& list, const std::vector<std::int64_t>& extents) {
  std::vector<dim> result;
  int from = list.size() - 1;
  std::int64_t left = from >= 0 ? list[from].extent : 1, stride = from >= 0 ? list[from].stride : 0;
  for (int i = static_cast<int>(extents.size()) - 1; i >= 0; --i) {
    while (left == 1 && from > 0) {
      --from;
      left = list[from].extent;
      stride = list[from].stride;
    }
    const std::int64_t extent = extents[static_cast<std::size_t>(i)];
    result.insert(result.begin(), {extent, stride});
    left /= extent;
    stride *= extent;
  }
  return result;
}

inline std::vector<std::int64_t> read_offsets(const erased_view& view) {
  const std::int64_t count = view.axis[0].count();
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = 0, rest = i;
    for (int d = view.axis[0].size() - 1; d >= 0; --d) {
      offset += rest % view.axis[0][d].extent * view.axis[0][d].stride;
      rest /= view.axis[0][d].extent;
    }
    values.push_back(view.type == dtype::int32 ? static_cast<const std::int32_t*>(view.data)[offset]
                                               : static_cast<const std::int64_t*>(view.data)[offset]);
  }
  return values;
}

inline std::vector<std::int64_t> extents_of(const dims& list) {
  std::vector<std::int64_t> extents;
  extents.reserve(static_cast<std::size_t>(list.size()));
  for (const dim& d : list) extents.push_back(d.extent);
  return extents;
}

}  // namespace detail

/// Brings the axes of all bound tensors to common dimensions. Throws shape_error where two tensors disagree
/// on an axis, naming both.
inline iteration_space make_iteration_space(const program& p, const problem& bound) {
  iteration_space space;
  std::vector<std::int64_t> common;
  for (int a = 0; a < p.axes.count; ++a) {
    common.clear();
    int first = -1;
    std::int64_t extent = 1;
    const auto each_list = [&](auto&& visit) {
      for (int t = 0; t < p.tensors.count; ++t) {
        const bound_tensor& b = bound.tensors[static_cast<std::size_t>(t)];
        if (!b.bound || p.tensors[t].role == tensor_role::offsets) continue;
        for (int i = 0; i < p.tensors[t].axes.count; ++i)
          if (p.tensors[t].axes[i] == a && p.tensors[t].walks(i)) visit(t, b.view.axis[i]);
      }
    };
    for (int t = 0; t < p.tensors.count; ++t)  // offsets: one more than there are segments
      if (bound.tensors[static_cast<std::size_t>(t)].bound && p.tensors[t].role == tensor_role::offsets &&
          p.tensors[t].axes[0] == a) {
        first = t;
        extent = bound.tensors[static_cast<std::size_t>(t)].view.axis[0].count() - 1;
        common = {extent};
      }
    each_list([&](int t, const dims& list) {
      if (first >= 0 && list.count() != extent)
        throw shape_error(message("extent ", extent, " of axis ", detail::text(p.axes[a]), ", as ",
                                  detail::text(p.tensors[first].id), " has it"),
                          message("extent ", list.count(), " in ", detail::text(p.tensors[t].id)),
                          "bind views that agree on every axis");
      if (first < 0) {
        for (const dim& d : list) common.push_back(d.extent);
        first = t;
        extent = list.count();
      } else if (extent > 0 && !detail::is_cut(list, common)) {
        std::vector<std::int64_t> mine = detail::extents_of(list), refined;
        if (!detail::common_refinement(common, mine, refined))
          throw shape_error(message("dimensions of axis ", detail::text(p.axes[a]),
                                    " that nest with those of ", detail::text(p.tensors[first].id)),
                            message("a different split in ", detail::text(p.tensors[t].id)),
                            "give the axis the same list of dimensions everywhere");
        common = refined;
      }
    });
    space.extent[static_cast<std::size_t>(a)] = extent;
    space.is_bound[static_cast<std::size_t>(a)] = first >= 0;
    if (extent == 0) common = {0};
    std::vector<dimension>& target = space.axis[static_cast<std::size_t>(a)];
    target.reserve(common.size());
    for (const std::int64_t e : common) target.push_back({a, e, {}});
    if (extent > 0)
      each_list([&](int t, const dims& list) {
        if (detail::is_cut(list, common)) {
          for (int i = 0; i < list.size(); ++i)
            target[static_cast<std::size_t>(i)].stride[static_cast<std::size_t>(t)] = list[i].stride;
          return;
        }
        const std::vector<dim> refined = detail::refine(list, common);
        for (std::size_t i = 0; i < refined.size(); ++i)
          target[i].stride[static_cast<std::size_t>(t)] = refined[i].stride;
      });
  }
  return space;
}

}  // namespace scandsl
