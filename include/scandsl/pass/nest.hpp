#pragma once
#include <cstdlib>
#include <utility>

#include "scandsl/pass/problem.hpp"
#include "scandsl/pass/schedule.hpp"

namespace scandsl {

/// The loops of one kernel program over one region of its iteration space: the walked dimensions and the
/// lanes' (both outermost first, neighbours merged where every tensor allows).
struct loop_nest {
  std::vector<dimension> walk, lanes;
  std::array<std::int64_t, max_tensors> origin{};  ///< of the region in each tensor, in elements

  static std::int64_t count(const std::vector<dimension>& dimensions) {
    std::int64_t all = 1;
    for (const dimension& d : dimensions) all *= d.extent;
    return all;
  }
  std::int64_t steps() const { return count(walk); }
  std::int64_t lane_count() const { return count(lanes); }
  /// How many steps lie on one stride from `position` on.
  std::int64_t run_from(std::int64_t position) const {
    if (walk.empty()) return 1;
    return walk.back().extent - position % walk.back().extent;
  }
  /// ... and up to `position` (exclusive), going back.
  std::int64_t run_to(std::int64_t position) const {
    if (walk.empty()) return 1;
    return (position - 1) % walk.back().extent + 1;
  }
  static std::int64_t offset(const std::vector<dimension>& dimensions, std::int64_t position, int tensor) {
    std::int64_t sum = 0;
    for (std::size_t i = dimensions.size(); i-- > 0;) {
      sum += position % dimensions[i].extent * dimensions[i].stride[static_cast<std::size_t>(tensor)];
      position /= dimensions[i].extent;
    }
    return sum;
  }
};

namespace detail {

inline bool mergeable(const dimension& outer, const dimension& inner) {
  for (std::size_t t = 0; t < outer.stride.size(); ++t)
    if (outer.stride[t] != inner.stride[t] * inner.extent) return false;
  return true;
}

inline std::vector<dimension> merged(const std::vector<dimension>& dimensions) {
  std::vector<dimension> result;
  for (const dimension& inner : dimensions) {
    if (inner.extent == 1) continue;
    if (!result.empty() && mergeable(result.back(), inner)) {
      const std::int64_t extent = result.back().extent * inner.extent;
      result.back() = inner;
      result.back().extent = extent;
    } else {
      result.push_back(inner);
    }
  }
  return result;
}

/// Whether `a` belongs outside `b`: by the first tensor in which both move and differ; outputs decide first.
inline bool belongs_outside(const program& p, const dimension& a, const dimension& b) {
  for (const bool outputs : {true, false})
    for (int t = 0; t < p.tensors.count; ++t) {
      if ((p.tensors[t].role == tensor_role::output) != outputs) continue;
      const std::int64_t sa = std::abs(a.stride[static_cast<std::size_t>(t)]),
                         sb = std::abs(b.stride[static_cast<std::size_t>(t)]);
      if (sa != 0 && sb != 0 && sa != sb) return sa > sb;
    }
  return false;
}

inline void order_by_stride(const program& p, std::vector<dimension>& dimensions) {
  for (std::size_t i = 1; i < dimensions.size(); ++i)
    for (std::size_t j = i; j > 0 && belongs_outside(p, dimensions[j], dimensions[j - 1]); --j)
      std::swap(dimensions[j], dimensions[j - 1]);
}

}  // namespace detail

namespace detail {

/// Numbers the lanes of a kernel program in a free column of strides, `number_of_lanes`: by the names of
/// their axes, whatever the operands' strides, so that another program with the same axes numbers them alike.
/// Gives how many there are.
inline std::int64_t number_lanes(const program& p, const walk_table& table, iteration_space& space) {
  const axis_mask lanes = table.space & ~(table.axis >= 0 ? axis_bit(table.axis) : 0);
  std::vector<int> axes;
  for (int a = 0; a < p.axes.count; ++a)
    if (lanes >> a & 1U) {
      std::size_t at = axes.size();
      while (at > 0 && p.axes[a].view() < p.axes[axes[at - 1]].view()) --at;
      axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(at), a);
    }
  std::int64_t stride = 1;
  for (std::size_t i = axes.size(); i-- > 0;) {
    std::vector<dimension>& dimensions = space.axis[static_cast<std::size_t>(axes[i])];
    for (std::size_t d = dimensions.size(); d-- > 0;) {
      dimensions[d].stride[static_cast<std::size_t>(p.tensors.count)] = stride;
      stride *= dimensions[d].extent;
    }
  }
  return stride;
}
inline bool can_number_lanes(const program& p) { return p.tensors.count < max_tensors; }

}  // namespace detail

/// The nest of the whole space.
inline loop_nest make_nest(const program& p, const walk_table& table, const iteration_space& space) {
  loop_nest nest;
  const axis_mask walked = table.axis >= 0 ? axis_bit(table.axis) : 0;
  nest.walk = detail::merged(space.dimensions(walked));
  std::vector<dimension> lanes = space.dimensions(table.space & ~walked);
  detail::order_by_stride(p, lanes);
  nest.lanes = detail::merged(lanes);
  return nest;
}

/// A region cut along one dimension into blocks of `block` positions: `whole` has the blocks as an outer
/// dimension and the positions in a block as an inner one, `rest` (empty where the division is exact) the
/// last, short block.
struct cut_dimension {
  dimension outer, inner, rest;
};
inline cut_dimension cut(const dimension& d, std::int64_t block) {
  cut_dimension result{d, d, d};
  result.outer.extent = d.extent / block;
  for (std::int64_t& stride : result.outer.stride) stride *= block;
  result.inner.extent = block;
  result.rest.extent = d.extent % block;
  return result;
}
/// Moves a nest's origin to `position` along `d`.
inline void advance_origin(loop_nest& nest, const dimension& d, std::int64_t position) {
  for (std::size_t t = 0; t < nest.origin.size(); ++t) nest.origin[t] += position * d.stride[t];
}

/// Chunks that restart independently become lanes: the walk is then one chunk long. A short last chunk is a
/// nest of its own.
inline std::vector<loop_nest> fold_chunks(const program& p, const loop_nest& nest, std::int64_t chunk) {
  const cut_dimension parts = cut(nest.walk.front(), chunk);
  std::vector<loop_nest> result(1, nest);
  result[0].walk = {parts.inner};
  result[0].lanes.push_back(parts.outer);
  detail::order_by_stride(p, result[0].lanes);
  result[0].lanes = detail::merged(result[0].lanes);
  if (parts.rest.extent > 0) {
    result.push_back(nest);
    result[1].walk = {parts.rest};
    advance_origin(result[1], parts.inner, parts.outer.extent * chunk);
  }
  return result;
}

/// Without scans any dimension may be walked: the next to innermost one, or blocks of a single one.
inline std::vector<loop_nest> choose_walk(const loop_nest& nest, std::int64_t block) {
  std::vector<loop_nest> result(1, nest);
  if (nest.lanes.empty()) return result;
  std::vector<dimension>& lanes = result[0].lanes;
  if (lanes.back().extent >= 2 * block) {
    const dimension whole = lanes.back();
    const cut_dimension parts = cut(whole, block);
    result[0].walk = {parts.outer};
    lanes.back() = parts.inner;
    if (parts.rest.extent > 0) {
      result.push_back(nest);
      result[1].lanes.back() = parts.rest;
      advance_origin(result[1], parts.inner, parts.outer.extent * block);
    }
  } else if (lanes.size() >= 2) {
    result[0].walk = {lanes[lanes.size() - 2]};
    lanes.erase(lanes.end() - 2);
  }
  return result;
}

}  // namespace scandsl
