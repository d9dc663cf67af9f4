#pragma once
#include "scandsl/exec/cuda/tile_policy.cuh"

/// From a plan to what a kernel is told.
namespace scandsl::cuda_detail {

template <int Tensors> void copy_dimension(const dimension& from, strided_dimension<Tensors>& to) {
  to.extent = from.extent;
  if (from.extent < (std::int64_t{1} << 31)) to.by = small_divisor::of(from.extent);
  for (int t = 0; t < Tensors; ++t) to.stride[t] = from.stride[static_cast<std::size_t>(t)];
}

/// The access of tensor t where vectors of `width` elements lie along a dimension with stride `along`.
template <class K, class A> access access_mode(const A& a, int t, std::int64_t along, int width, bool row) {
  if (a.walk_dimensions != 1) return access::scattered;
  if (along == 0) return access::same;
  if (along != 1) return access::scattered;
  const tensor_argument& memory = a.tensor[t];
  const std::uintptr_t bytes = size_of(memory.type) * static_cast<std::uintptr_t>(width);
  if (reinterpret_cast<std::uintptr_t>(memory.data) % smaller<std::uintptr_t>(bytes, 16) != 0)
    return access::scattered;
  for (int d = 0; d < a.lane_dimensions; ++d)
    if (a.lane[d].stride[t] % width != 0) return access::scattered;
  for (int d = 0; d < a.walk_dimensions && !row; ++d)
    if (a.walk[d].stride[t] % width != 0) return access::scattered;
  return access::vector;
}
template <class K, class A> access access_mode(const cuda_kernel_plan& plan, const A& a, int t) {
  using policy = tile_policy<K>;
  return plan.arrangement == cuda_arrangement::row
             ? access_mode<K>(a, t, a.walk[0].stride[t], policy::width, true)
             : access_mode<K>(a, t, a.inner_stride[t], policy::strip_lanes, false);
}

/// Whether a strip's threads may bring what its sweeps read of a tile together: each row 16 bytes at a time.
template <class K, class A> bool shares_stages(const A& a) {
  using policy = tile_policy<K>;
  if (!policy::streams || !shares_tiles<typename K::group> || a.along_rows || a.walk_dimensions != 1)
    return false;
  const std::int64_t lanes = std::int64_t{a.lane_threads} * policy::strip_lanes;
  if (a.lane_dimensions == 0 || a.inner_extent % lanes != 0) return false;
  bool shares = true, has_use = false;  // of threads' own accesses some are of less than 16 bytes
  for_each_index(sequence_of<walked_loads<typename K::group, all_sweeps>>{}, [&]<int I>(index_constant<I>) {
    const int t = node_at<typename K::group, I>.target;
    const tensor_argument& memory = a.tensor[t];
    // Of what is not bound threads have shares, too, which nobody brings.
    shares = shares && lanes * static_cast<int>(sizeof(typename K::template element<t>)) % 16 == 0;
    if (!memory.bound) return;
    const auto size = static_cast<std::int64_t>(size_of(memory.type));
    const auto fits = [&](std::int64_t elements) { return elements * size % 16 == 0; };
    has_use = has_use || policy::strip_lanes * size < 16;
    shares = shares && policy::strip_threads * std::int64_t{16} % (lanes * size * policy::strip_steps) == 0 &&
             fits(policy::strip_lanes * policy::strip_steps);
    shares = shares && memory.mode == access::vector &&
             reinterpret_cast<std::uintptr_t>(memory.data) % 16 == 0 && fits(lanes) &&
             fits(a.walk[0].stride[t]);
    for (int d = 0; d + 1 < a.lane_dimensions; ++d) shares = shares && fits(a.lane[d].stride[t]);
  });
  return shares && has_use;
}
/// Sees to it that they do, where they may.
template <class K, class A> void share_stages(A& a) {
  using policy = tile_policy<K>;
  a.shares_stages = shares_stages<K>(a);
  if (!a.shares_stages) return;
  for (int t = 0; t < K::tensors; ++t) {
    const auto size = static_cast<std::int64_t>(size_of(a.tensor[t].type));
    const std::int64_t row = larger<std::int64_t>(a.lane_threads * (policy::strip_lanes * size) / 16, 1),
                       step = (a.reversed[0] ? -1 : 1) * a.walk[0].stride[t] * size;
    a.row_apart[t] = policy::strip_threads / row * step;
    a.tile_apart[t] = policy::strip_threads / a.lane_threads * policy::strip_steps * step;
  }
}

/// Whether all that the sweeps read of rows is there, and a vector of each is one access.
template <class K, class A> bool reads_vectors(const A& a) {
  bool reads = tile_policy<K>::streams && a.along_rows;
  for_each_index(sequence_of<walked_loads<typename K::group, all_sweeps>>{}, [&]<int I>(index_constant<I>) {
    const tensor_argument& memory = a.tensor[node_at<typename K::group, I>.target];
    reads = reads && memory.bound && memory.mode == access::vector;
  });
  return reads;
}
/// What of several operands together is known of their modes.
template <class K, class A> void describe_reads(A& a) {
  share_stages<K>(a);
  a.reads_vectors = reads_vectors<K>(a);
}

/// The axes along which positions are computed, and the values of tables.
template <class Check, class A>
void describe_computed_axes(const program& p, const problem& bound, const Check& check_rank, A& a) {
  int next = 0;
  for (int t = 0; t < p.tensors.count; ++t) {
    const tensor_decl& declared = p.tensors[t];
    const bound_tensor& b = bound.tensors[static_cast<std::size_t>(t)];
    for (int i = 0; i < declared.axes.count; ++i) {
      if (declared.place[i] != tensor_decl::computed) continue;
      const int slot = next++;
      if (!b.bound) continue;
      computed_axis& axis = a.computed[slot];
      axis.positions = b.view.axis[i].count();
      const std::vector<dim> merged = detail::coalesce({b.view.axis[i].begin(), b.view.axis[i].end()});
      check_rank(merged.size(), max_computed_dimensions,
                 "of an axis with computed positions that do not merge");
      for (const dim& d : merged) {
        axis.extent[axis.dimensions] = d.extent;
        axis.stride[axis.dimensions++] = d.stride;
      }
      if (declared.role != tensor_role::table) continue;
      for (std::int64_t at = 0; at < axis.positions; ++at) {
        const std::int64_t offset = offset_at(b.view.axis[i], at);
        a.table[slot][at] = b.view.type == dtype::int32
                                ? static_cast<const std::int32_t*>(b.view.data)[offset]
                                : static_cast<const std::int64_t*>(b.view.data)[offset];
      }
    }
  }
}

constexpr bool divides_integers(const program& p) {
  for (const node& n : p.nodes)
    if (is_apply<primitive::floor_divide_op>(n) || is_apply<primitive::modulo_op>(n)) return true;
  return false;
}

/// What integers are divided by, where that is known now.
template <class A> void describe_divisors(const program& p, A& a) {
  const auto describe = [&](std::int64_t divisor, small_divisor& by) {
    if (divisor < 0 || divisor >= (std::int64_t{1} << 31))
      a.divides = false;
    else
      by = small_divisor::of(divisor);
  };
  int slot_of[max_tensors] = {};
  for (int t = 0, next = 0; t < p.tensors.count; ++t) {
    slot_of[t] = next;
    for (int i = 0; i < p.tensors[t].axes.count; ++i)
      if (p.tensors[t].place[i] == tensor_decl::computed) ++next;
  }
  for (const node& n : p.nodes) {
    if (!is_apply<primitive::floor_divide_op>(n) && !is_apply<primitive::modulo_op>(n)) continue;
    const node& divisor = p.nodes[n.operand[1]];
    if (divisor.op == opcode::parameter)
      describe(static_cast<std::int64_t>(bits_as_integer(a.parameters[divisor.target])),
               a.by_parameter[divisor.target]);
    if (divisor.op != opcode::gather || p.tensors[divisor.target].role != tensor_role::table) continue;
    const int slot = slot_of[divisor.target];
    for (std::int64_t at = 0; at < a.computed[slot].positions; ++at)
      describe(a.table[slot][at], a.by_element[slot][at]);
  }
}

/// Translates a plan.
template <class K>
typename K::arguments make_arguments(const cuda_kernel_plan& plan, const program& p, const walk_table& table,
                                     const problem& bound, const iteration_space& space) {
  using C = typename K::compute;
  constexpr int tensors = K::tensors;
  typename K::arguments a;
  for (int t = 0; t < tensors; ++t) {
    const bound_tensor& b = bound.tensors[static_cast<std::size_t>(t)];
    a.tensor[t] = {b.view.data, b.view.type, access::scattered, b.bound,
                   b.bound ? reach_of(b.view).second + 1 : 0};
  }
  const auto check_rank = [&](std::size_t count, int most, const char* what) {
    if (count > static_cast<std::size_t>(most))
      throw shape_error(message("at most ", most, " dimensions ", what, " that do not merge"), message(count),
                        "bind views whose dimensions merge");
  };
  check_rank(plan.nest.lanes.size(), max_lane_dimensions, "across the lanes");
  a.ragged = plan.ragged;
  a.repeats = plan.repeats;
  if (plan.repeats > 1) copy_dimension(plan.repeated, a.repeated);
  check_rank(plan.nest.walk.size(), max_walk_dimensions, "of the walked axis");
  for (const dimension& d : plan.nest.lanes) copy_dimension(d, a.lane[a.lane_dimensions++]);
  for (const dimension& d : plan.nest.walk) copy_dimension(d, a.walk[a.walk_dimensions++]);
  if (a.walk_dimensions == 0) a.walk_dimensions = 1;  // one step
  a.steps = plan.nest.steps();
  if (plan.arrangement == cuda_arrangement::strip) {
    const int strip_lanes = tile_policy<K>::strip_lanes;
    strided_dimension<tensors>& inner = a.lane[a.lane_dimensions - 1];
    a.inner_extent = inner.extent;
    for (int t = 0; t < tensors; ++t) {
      a.inner_stride[t] = inner.stride[t];
      inner.stride[t] *= strip_lanes;
    }
    inner.extent = (inner.extent + strip_lanes - 1) / strip_lanes;
    if (inner.extent < (std::int64_t{1} << 31)) inner.by = small_divisor::of(inner.extent);
  }
  for (int d = 0; d < a.lane_dimensions; ++d) a.lanes *= a.lane[d].extent;
  a.chunk_dimension = plan.chunk_dimension;
  a.chunk = plan.chunk;
  a.small = a.lanes < (std::int64_t{1} << 31);
  a.along_rows = plan.arrangement == cuda_arrangement::row;
  a.one_dimension = a.lane_dimensions <= 1 && plan.chunk_dimension < 0;
  a.lane_threads = plan.lane_threads;
  while ((1 << a.log2_lane_threads) < plan.lane_threads) ++a.log2_lane_threads;
  while (a.lane_threads << a.log2_rows < cuda_row_policy::fewest_threads) ++a.log2_rows;
  for (int i = 0; i < table.sweeps; ++i) {
    const walk_stage& stage = table.sweep[i];
    const bool flipped = stage.reverse_parameter >= 0 &&
                         bound.parameters[static_cast<std::size_t>(stage.reverse_parameter)] != 0.0;
    a.reversed[i] = stage.reversed != flipped;
  }
  a.last_wanted = false;
  for (int i = 0; i < p.stores.count; ++i)
    a.last_wanted =
        a.last_wanted || (stored_once<typename K::group>(i) && a.tensor[p.stores[i].tensor].bound);
  for (int i = 0; i < p.parameters.count; ++i)
    a.parameters[i] = as_parameter<C>(p.parameters[i], bound.parameters[static_cast<std::size_t>(i)]);
  describe_computed_axes(p, bound, check_rank, a);
  a.divides = true;
  if constexpr (divides_integers(K::group::value)) describe_divisors(p, a);
  if (table.segment_axis >= 0) {
    const std::vector<dimension> segments =
        detail::merged(space.axis[static_cast<std::size_t>(table.segment_axis)]);
    check_rank(segments.size(), max_segment_dimensions, "of the sequences");
    for (const dimension& d : segments) copy_dimension(d, a.segment[a.segment_dimensions++]);
  }
  if (plan.packed) {
    const erased_view& view = bound.tensors[static_cast<std::size_t>(p.scans[0].offsets)].view;
    a.segments = plan.segments;
    a.offsets = view.data;
    a.wide_offsets = view.type == dtype::int64;
    a.offsets_stride = view.axis[0].empty() ? 0 : view.axis[0][view.axis[0].size() - 1].stride;
  }
  for (int t = 0; t < tensors; ++t) a.tensor[t].mode = access_mode<K>(plan, a, t);
  describe_reads<K>(a);
  return a;
}

}  // namespace scandsl::cuda_detail
