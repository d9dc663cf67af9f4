#pragma once
#include <cuda_runtime.h>

#include <optional>

#include "scandsl/exec/cuda/lookback.cuh"
#include "scandsl/exec/cuda/parts.cuh"
#include "scandsl/exec/cuda/walk.cuh"
#include "scandsl/pass/cuda_plan.hpp"

/// From a plan to a launch.
namespace scandsl::cuda_detail {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw cuda_error(message(what, " to succeed"), cudaGetErrorString(status),
                     "see the CUDA runtime's description of that error");
}

/// How much one thread of a kernel holds.
template <class K> struct tile_policy {
  using group = typename K::group;
  static constexpr bool is_typed = knows_types<K>;
  static constexpr bool several_sweeps = group::plan.sweeps > 1;
  static constexpr int smallest_element = [] {
    int smallest = static_cast<int>(sizeof(typename K::compute));
    for_each_index(std::make_integer_sequence<int, K::tensors>{}, [&]<int T>(index_constant<T>) {
      using element = typename K::template element<T>;
      if constexpr (is_walked<group, T> && !std::is_same_v<element, any_type>)
        smallest = std::min(smallest, static_cast<int>(sizeof(element)));
    });
    return smallest;
  }();
  /// Of all operands that a step reads.
  static constexpr int step_bytes = [] {
    int bytes = 0;
    for_each_index(sequence_of<walked_loads<group, all_sweeps>>{}, [&]<int I>(index_constant<I>) {
      using element = typename K::template element<node_at<group, I>.target>;
      bytes += static_cast<int>(sizeof(held_element<element, typename K::compute>));
    });
    return std::max(bytes, smallest_element);
  }();
  static constexpr int state_words =
      std::max(1, component_capacity<group>) * static_cast<int>(sizeof(typename K::compute)) / 4;
  /// Nodes evaluated at a step. A tile is unrolled: what a thread holds is bounded by the code it takes, too.
  static constexpr int work = [] {
    int most = 1;
    for (int s = 0; s < group::plan.sweeps; ++s) {
      int nodes = group::plan.sweep[s].instructions.count;
      for (int q = 0; q < s; ++q)
        if (replays<group>(s, q)) nodes += group::plan.sweep[q].instructions.count;
      for (const scan_decl& scan : group::value.scans) nodes += 4 * scan.components;
      most = std::max(most, nodes);
    }
    return most;
  }();
  static constexpr int unrolled_steps(int elements) {
    return std::max(1, cuda_strip_policy::unrolled_work / (elements * work));
  }
  /// Elements of a vector: 16 bytes; in a strip fewer, where many lanes' states would not fit in registers.
  static constexpr int width = 16 / smallest_element;
  static constexpr bool is_map = group::plan.sweeps == 1 && scan_count<group> == 0;
  static constexpr bool reduces = group::plan.sweeps == 1 && only_reduces<group, 0>;
  /// Whether angles turn along what one thread holds of a map, or reduces.
  static constexpr bool turns = (is_map && size_of_list<rotating_nodes<K, stage_kind::sweep, 0>> > 0) ||
                                (reduces && size_of_list<rotating_nodes<K, stage_kind::aggregate, 0>> > 0);
  static constexpr bool hoists = size_of_list<kept_nodes<group>> > 0 && !turns;
  static constexpr int strip_held_words = several_sweeps     ? cuda_strip_policy::held_words_of_sweeps
                                          : turns && reduces ? cuda_part_policy::held_words_of_turns
                                          : !is_map          ? cuda_strip_policy::held_words
                                          : hoists           ? cuda_strip_policy::held_words_of_hoisting_maps
                                                             : cuda_strip_policy::held_words_of_maps;
  static constexpr int strip_lanes = [] {
    int lanes = several_sweeps ? std::min(width, cuda_strip_policy::lanes_of_sweeps) : width;
    while (turns && is_typed && lanes > 2 &&
           lanes * cuda_strip_policy::steps_of_turns * step_bytes > 4 * strip_held_words)
      lanes /= 2;
    while (lanes > 1 && lanes * smallest_element > 4 &&
           (lanes * state_words > 16 || unrolled_steps(lanes) < 4))
      lanes /= 2;
    return lanes;
  }();
  static constexpr int strip_steps = static_cast<int>(std::bit_floor(static_cast<unsigned>(std::clamp(
      std::min(4 * strip_held_words / ((several_sweeps || turns ? strip_lanes : width) * step_bytes),
               unrolled_steps(strip_lanes)),
      2,
      several_sweeps       ? cuda_strip_policy::steps_of_sweeps
      : is_typed || is_map ? cuda_strip_policy::most_steps
                           : cuda_strip_policy::steps_of_other_types))));
  static constexpr int strip_threads = is_map            ? cuda_strip_policy::threads_of_maps
                                       : several_sweeps  ? cuda_strip_policy::threads_of_sweeps
                                       : state_words > 1 ? 128
                                                         : 256;
  /// Of rows that share what is computed for them; 0: they have nothing to share.
  static constexpr int repeat_vectors = [] {
    const int shared = is_typed && several_sweeps ? width * size_of_list<shared_nodes<group>> : 0;
    return shared == 0 || shared > cuda_row_policy::shared_words ? 0 : cuda_row_policy::shared_words / shared;
  }();
  static constexpr int row_held_words =
      several_sweeps ? cuda_row_policy::held_words_of_sweeps : cuda_row_policy::held_words;
  static constexpr int row_vectors = [] {
    if (!is_typed) return 1;  // rows have a warp at least, and short ones would compute what is not there
    int vectors = std::max(1, cuda_row_policy::elements / width);
    while (vectors > 1 && (vectors * width > unrolled_steps(1) || vectors * state_words > 12 ||
                           vectors * width * step_bytes > 4 * row_held_words))
      vectors /= 2;
    return vectors;
  }();
  /// Sums of what earlier kernels left, of which there is so little that one kernel for all lengths will do.
  static constexpr bool sums_scratch = [] {
    bool scratch = reduces;
    for_each_index(sequence_of<walked_loads<group, all_sweeps>>{}, [&]<int I>(index_constant<I>) {
      scratch = scratch && tensor_at<group, node_at<group, I>.target>.role == tensor_role::scratch;
    });
    return scratch;
  }();
  /// Few lanes along strips are cut into pieces; along rows they look back, with states of few words.
  static constexpr bool shares_lanes = scans_once<K> && !sums_scratch;
  static constexpr bool takes_pieces = shares_lanes && !group::only_rows;
  static constexpr bool looks_back = shares_lanes && state_words <= 8;
  /// In float64 with types that are looked up, or small: seldom run.
  static constexpr bool rolled = (!is_typed || sums_scratch) && std::is_same_v<typename K::compute, double>;
  /// Sweeps over tensors of known types.
  static constexpr bool streams = is_typed && group::plan.sweeps > 0 && !rolled;
  /// Rows of several blocks are held in registers where several sweeps need them. (Of one sweep, which reads
  /// its tiles once in any case, 0.64 of a copy for rows of two blocks; walked by one block: 0.75.)
  static constexpr bool clusters = streams && several_sweeps;
  static constexpr int cluster_vectors = [] {
    const int more = cuda_row_policy::more_in_clusters * row_vectors;
    return more * width * step_bytes > 4 * row_held_words ? row_vectors : more;
  }();
  /// Components of carries that strips leave for their gradient's kernels, or find there; 0: none.
  static constexpr int kept_carries = !streams || sums_scratch || group::only_rows ? 0
                                      : (group::is_gradient ? first_is_replayed<group> : leaves_carries<K>)
                                          ? kept_count<group, typename K::compute>
                                          : 0;
  /// Several rows share a warp in kernels of their own, where the types are known.
  static constexpr int fewest_row_threads = streams && !sums_scratch ? 1 : 32;
  /// Shared memory of a look-back along rows, for each thread: elements of the tiles that wait, and what
  /// precedes its vectors in each.
  static constexpr int lookback_row_bytes(int vectors) {
    using policy = cuda_lookback_policy;
    return vectors * ((policy::delay + 2) * width * step_bytes + (policy::delay + 1) * state_words * 4);
  }
  static constexpr int lookback_vectors = [] {
    using policy = cuda_lookback_policy;
    int vectors = 2 * row_vectors;
    while (vectors > 1 && (vectors * width * step_bytes > policy::held_bytes ||
                           lookback_row_bytes(vectors) > policy::shared_bytes / policy::threads))
      vectors /= 2;
    return vectors;
  }();
};

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
  if (reinterpret_cast<std::uintptr_t>(memory.data) % std::min<std::uintptr_t>(bytes, 16) != 0)
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
  if (!tile_policy<K>::streams || !tile_policy<K>::several_sweeps || a.along_rows || a.walk_dimensions != 1)
    return false;
  using policy = tile_policy<K>;
  const std::int64_t lanes = std::int64_t{a.lane_threads} * policy::strip_lanes;
  if (a.lane_dimensions == 0 || a.inner_extent % lanes != 0) return false;
  bool shares = true;
  for_each_index(sequence_of<walked_loads<typename K::group, all_sweeps>>{}, [&]<int I>(index_constant<I>) {
    const int t = node_at<typename K::group, I>.target;
    const tensor_argument& memory = a.tensor[t];
    if (!memory.bound) return;
    const auto size = static_cast<std::int64_t>(size_of(memory.type));
    const auto fits = [&](std::int64_t elements) { return elements * size % 16 == 0; };
    shares = shares && policy::strip_threads * std::int64_t{16} % (lanes * size * policy::strip_steps) == 0 &&
             fits(policy::strip_lanes * policy::strip_steps);
    shares = shares && memory.mode == access::vector &&
             reinterpret_cast<std::uintptr_t>(memory.data) % 16 == 0 && fits(lanes) &&
             fits(a.walk[0].stride[t]);
    for (int d = 0; d + 1 < a.lane_dimensions; ++d) shares = shares && fits(a.lane[d].stride[t]);
  });
  return shares;
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
    a.tensor[t] = {b.view.data, b.view.type, access::scattered, b.bound};
  }
  const auto check_rank = [&](std::size_t count, int most, const char* what) {
    if (count > static_cast<std::size_t>(most))
      throw shape_error(message("at most ", most, " dimensions ", what, " that do not merge"), message(count),
                        "bind views whose dimensions merge");
  };
  check_rank(plan.nest.lanes.size(), max_lane_dimensions, "across the lanes");
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
  a.shares_stages = shares_stages<K>(a);
  return a;
}

/// Whether one tile is all there is of every lane.
template <class Arrangement, class A> bool fits_one_tile(const A& a) {
  return !Arrangement::has_streams || (a.offsets == nullptr && (a.chunk_dimension >= 0 ? a.chunk : a.steps) <=
                                                                   Arrangement::tile_steps(a.lane_threads));
}

struct launch_shape {
  std::int64_t blocks, threads;
  std::size_t shared;
  int cluster = 0;        ///< its blocks; 0: there are no clusters
  bool overlaps = false;  ///< it may begin while the launch before it ends, for which it waits itself
};

template <class... A>
void launch_kernel(void (*kernel)(A...), const launch_shape& shape, cudaStream_t stream,
                   const std::type_identity_t<A>&... arguments) {
  // At every launch: it belongs to the context, of which a device may have several.
  if (shape.shared > 48 * 1024)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.shared)),
          "raising a kernel's shared memory");
  if (shape.cluster > 8)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
          "allowing large clusters");
  cudaLaunchAttribute attributes[2]{};
  unsigned count = 0;
  if (shape.cluster > 0) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = static_cast<unsigned>(shape.cluster);
    attributes[count].val.clusterDim.y = attributes[count].val.clusterDim.z = 1;
    ++count;
  }
  if (shape.overlaps) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = shape.shared;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  // Not <<<>>>, which copies the arguments once more.
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  const cudaError_t status = cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers);
  if (status != cudaSuccess) cudaGetLastError();  // told here, so not to whoever asks next
  check(status, "a kernel launch");
}

template <class K>
using strip_of = strip<K, tile_policy<K>::strip_lanes, tile_policy<K>::strip_steps,
                       tile_policy<K>::strip_threads, tile_policy<K>::rolled>;
template <class K, int RowThreads>
using row_of = row<K, tile_policy<K>::width,
                   RowThreads == whole_blocks ? tile_policy<K>::cluster_vectors : tile_policy<K>::row_vectors,
                   RowThreads, tile_policy<K>::rolled>;
template <class K, int RowThreads>
using repeated_row_of =
    row<K, tile_policy<K>::width, tile_policy<K>::repeat_vectors, RowThreads, false, true>;
/// What walk_kernel has for lanes that lie side by side.
template <class K>
using walked_strip_of = std::conditional_t<K::group::only_rows, row_of<K, whole_warps>, strip_of<K>>;

template <class K, class Arrangement> void launch_walk(typename K::arguments& a, cudaStream_t stream) {
  const std::int64_t blocks = Arrangement::blocks(a);
  if (blocks == 0) return;
  if (blocks > 0x7fffffff) throw cuda_error("at most 2^31 - 1 blocks", message(blocks), "run it in parts");
  a.restarts = a.chunk > 0 && a.chunk_dimension < 0;
  using fast = typename K::framed;
  using fast_arrangement = typename Arrangement::template of<fast>;
  using walk = runner<fast, fast_arrangement>;
  // What cannot keep its frames goes on with the robust program, whose states may be larger.
  std::size_t shared =
      std::max(walk::exchange_bytes(a.lane_threads), runner<K, Arrangement>::exchange_bytes(a.lane_threads));
  void (*kernel)(const typename K::arguments) = nullptr;
  if constexpr (!tile_policy<K>::streams) {
    kernel = walk_kernel<K, walked_strip_of<K>, row_of<K, whole_warps>>;
  } else if constexpr (tile_policy<K>::sums_scratch) {
    kernel = stream_kernel<fast, fast_arrangement>;
    shared += 2 * walk::stage_bytes;
  } else {
    a.one_tile = fits_one_tile<Arrangement>(a);
    if constexpr (Arrangement::has_streams) {
      kernel = stream_kernel<fast, fast_arrangement>;
      if (!a.one_tile) shared += 2 * walk::stage_bytes;
    }
    if constexpr (!Arrangement::streams_one_tile)
      if (a.one_tile) kernel = one_tile_kernel<fast, fast_arrangement>;
  }
  int cluster = 0;
  if constexpr (Arrangement::clustered) cluster = Arrangement::blocks_of_row(a);
  launch_kernel(kernel, {blocks, Arrangement::block_size(a), shared, cluster}, stream, a);
}

template <class K>
using piece_strip_of =
    strip<K, tile_policy<K>::strip_lanes, tile_policy<K>::strip_steps, cuda_piece_policy::threads>;
template <class K>
using lookback_row_of =
    row<K, tile_policy<K>::width, tile_policy<K>::lookback_vectors, cuda_lookback_policy::threads>;

/// The states that a look-back publishes, and their bytes: what is zero when it starts.
template <class K>
lookback_arguments make_lookback(const cuda_kernel_plan& plan, const typename K::arguments& a,
                                 std::int64_t& bytes) {
  lookback_arguments book;
  book.tiles = plan.lookback_tiles;
  book.rows = lookback_row_of<K>::blocks(a);
  const int of_tile = lookback<K, lookback_row_of<K>>::may_overflow ? 3 : 2;
  bytes = 256 + book.rows * book.tiles * of_tile * tile_policy<K>::state_words *
                    static_cast<std::int64_t>(sizeof(std::uint64_t));
  return book;
}

template <class K>
void launch_lookback(const typename K::arguments& a, lookback_arguments book, std::int64_t bytes,
                     const cuda_device& device, void* scratch, cudaStream_t stream) {
  const std::int64_t tiles = book.tiles * book.rows;
  if (tiles >= std::int64_t{1} << 31)
    throw cuda_error("at most 2^31 tiles", message(tiles), "run it in parts");
  if (tiles == 0) return;
  book.ticket = static_cast<std::uint32_t*>(scratch);
  book.words = reinterpret_cast<std::uint64_t*>(static_cast<char*>(scratch) + 256);
  check(cudaMemsetAsync(scratch, 0, static_cast<std::size_t>(bytes), stream), "clearing the workspace");
  using kernel_type = lookback<K, lookback_row_of<K>>;
  const std::int64_t blocks = std::min<std::int64_t>(tiles + 1, std::int64_t{device.multiprocessors} *
                                                                    cuda_lookback_policy::blocks_resident);
  launch_kernel(lookback_kernel<K, lookback_row_of<K>>,
                {blocks, kernel_type::all_threads, kernel_type::shared_bytes()}, stream, a, book);
}

template <class K> using piece_worker_of = piece_worker<K, piece_strip_of<K>>;
template <class K>
using part_strip_of =
    strip<K, tile_policy<K>::strip_lanes, tile_policy<K>::strip_steps, cuda_part_policy::threads>;

/// What a plan needs to know of K's kernels.
template <class K> cuda_tile_shape tile_shape() {
  using policy = tile_policy<K>;
  cuda_tile_shape shape{policy::strip_lanes,  policy::strip_steps,    policy::strip_threads,
                        policy::width,        policy::row_vectors,    policy::fewest_row_threads,
                        policy::takes_pieces, policy::looks_back,     policy::lookback_vectors,
                        policy::clusters,     policy::cluster_vectors};
  shape.strips = !K::group::only_rows;
  if constexpr (policy::repeat_vectors > 0) {
    shape.repeat_vectors = policy::repeat_vectors;
    shape.shared_of = sharing_of<typename K::group>.tensors;
  }
  if constexpr (policy::streams)
    shape.row_stage_bytes =
        2 * runner<typename K::framed, row_of<typename K::framed, whole_warps>>::stage_bytes;
  shape.parts = policy::takes_pieces && policy::reduces;
  shape.pieces = shape.pieces && !shape.parts;
  if constexpr (policy::takes_pieces)
    shape.piece_shared_bytes =
        static_cast<int>(piece_worker_of<K>::shared_bytes(cuda_piece_policy::most_lane_threads));
  if constexpr (policy::looks_back)
    shape.lookback_shared_bytes = static_cast<int>(lookback<K, lookback_row_of<K>>::shared_bytes());
  return shape;
}

template <class K>
piece_arguments make_pieces(const cuda_kernel_plan& plan, const typename K::arguments& a,
                            std::int64_t& bytes) {
  piece_arguments of;
  of.pieces = plan.pieces;
  of.length = plan.piece;
  of.lanes = a.lanes * tile_policy<K>::strip_lanes;
  of.side = plan.side > 0 ? plan.side : a.lanes;
  bytes = piece_worker_of<K>::state_bytes(of, a.lane_threads);
  return of;
}

template <class K>
void launch_pieces(const typename K::arguments& a, piece_arguments of, const cuda_device& device,
                   void* scratch, cudaStream_t stream) {
  using worker = piece_worker_of<K>;
  const std::int64_t strips = (a.lanes + a.lane_threads - 1) / a.lane_threads;
  launch_shape shape{strips * of.pieces, piece_strip_of<K>::threads, worker::shared_bytes(a.lane_threads)};
  of.states = scratch;
  of.folds = true;
  if constexpr (worker::only_folds) {
    using strip = part_strip_of<K>;
    const std::int64_t side_strips = (of.side + a.lane_threads - 1) / a.lane_threads;
    launch_kernel(part_kernel<K, strip>,
                  {a.lanes / of.side * of.pieces * side_strips, strip::threads,
                   static_cast<std::size_t>(part_worker<K, strip>::exchange_bytes(a.lane_threads))},
                  stream, a, of);
    shape.blocks = strips;  // a block joins all parts of its lanes
  } else {
    launch_kernel(piece_kernel<K, piece_strip_of<K>>, shape, stream, a, of);
  }
  of.folds = false;
  shape.overlaps = device.cluster_blocks > 1;  // from compute capability 9.0 on, as clusters
  launch_kernel(piece_kernel<K, piece_strip_of<K>>, shape, stream, a, of);
}

/// The kernels' arrangements of threads.
template <class K, class F>
auto with_arrangement(const cuda_kernel_plan& plan, const typename K::arguments& a, F&& f) {
  if constexpr (!K::group::only_rows)
    if (plan.arrangement == cuda_arrangement::strip) return f(std::type_identity<strip_of<K>>{});
  if constexpr (tile_policy<K>::repeat_vectors > 0)
    if (a.repeats > 1)
      return a.lane_threads < 32 ? f(std::type_identity<repeated_row_of<K, part_of_warp>>{})
                                 : f(std::type_identity<repeated_row_of<K, whole_warps>>{});
  if constexpr (tile_policy<K>::fewest_row_threads < 32)
    if (a.lane_threads < 32) return f(std::type_identity<row_of<K, part_of_warp>>{});
  if constexpr (tile_policy<K>::clusters)
    if (plan.clustered) return f(std::type_identity<row_of<K, whole_blocks>>{});
  return f(std::type_identity<row_of<K, whole_warps>>{});
}

/// Bytes of the carries that sweeps save, and for how many lanes; none where a lane is one tile.
template <class K> std::int64_t saved_bytes(const cuda_kernel_plan& plan, typename K::arguments& a) {
  constexpr int components = std::max(saved_count<typename K::group, typename K::compute>,
                                      saved_count<typename K::framed::group, typename K::compute>);
  if constexpr (components == 0) {
    return 0;
  } else {
    const int length = with_arrangement<K>(
        plan, a, [&]<class A>(std::type_identity<A>) { return A::tile_steps(a.lane_threads); });
    const auto tiles_of = [&](std::int64_t steps) { return (steps + length - 1) / length; };
    const bool restarts = a.chunk > 0 && a.chunk_dimension < 0;
    std::int64_t tiles = tiles_of(a.chunk_dimension >= 0 ? a.chunk : a.steps);
    if (tiles <= 1 && !restarts && a.offsets == nullptr) return 0;
    const std::int64_t more =
        a.offsets != nullptr ? a.segments : 0;  // each may end within a tile, or a chunk
    tiles = restarts ? ((a.steps + a.chunk - 1) / a.chunk + more) * tiles_of(a.chunk) : tiles + more;
    a.saved_lanes = a.lanes * (plan.arrangement == cuda_arrangement::row ? 1 : tile_policy<K>::strip_lanes);
    return tiles * components * a.saved_lanes * static_cast<std::int64_t>(sizeof(typename K::compute));
  }
}

/// A space whose lanes are numbered, where that is wanted.
template <class K> class numbered_space {
public:
  numbered_space(const program& p, const walk_table& table, const iteration_space& given, bool wanted)
      : space_(&given) {
    if constexpr (tile_policy<K>::kept_carries > 0)
      if (wanted && detail::can_number_lanes(p)) {
        copy_.emplace(given);
        lanes = detail::number_lanes(p, table, *copy_);
        space_ = &*copy_;
      }
  }
  const iteration_space& space() const { return *space_; }
  std::int64_t lanes = 0;  ///< 0: they are not numbered

private:
  std::optional<iteration_space> copy_;
  const iteration_space* space_;
};

/// One kernel program, planned, with the arguments of its launch.
template <class K> class planned_kernel {
public:
  /// Parallel: few lanes are shared by many blocks, where there will be scratch for it. With_carries: there
  /// will be memory for carries.
  planned_kernel(const program& p, const walk_table& table, const problem& bound,
                 const iteration_space& space, const cuda_device& on, bool parallel = true,
                 bool with_carries = false)
      : planned_kernel(p, table, bound, numbered_space<K>(p, table, space, with_carries), on, parallel) {}

  /// Whether its scratch is for speed only.
  bool can_do_without() const { return plan.lookback_tiles > 0 || plan.pieces > 1; }
  /// Of what its sweeps save, is kept of pieces, or a look-back publishes.
  std::int64_t scratch_bytes() const { return bytes; }
  /// Of the carries that it leaves or finds.
  std::int64_t carry_bytes() const { return bytes_of_carries; }
  /// Says where tensor t, of which that was not known, is.
  void place(int t, void* data) {
    arguments.tensor[t].data = data;
    arguments.tensor[t].mode = access_mode<K>(plan, arguments, t);
    arguments.shares_stages = shares_stages<K>(arguments);
  }

  void launch(void* scratch, void* carries, cudaStream_t stream) {
    if (bytes_of_carries > 0) arguments.carries.data = carries;
    if constexpr (policy::looks_back)
      if (plan.lookback_tiles > 0) return launch_lookback<K>(arguments, book, bytes, device, scratch, stream);
    if constexpr (policy::takes_pieces)
      if (plan.pieces > 1) return launch_pieces<K>(arguments, pieces, device, scratch, stream);
    arguments.saved = bytes > 0 ? scratch : nullptr;
    with_arrangement<K>(plan, arguments,
                        [&]<class A>(std::type_identity<A>) { launch_walk<K, A>(arguments, stream); });
  }

private:
  using policy = tile_policy<K>;

  cuda_kernel_plan plan;
  typename K::arguments arguments;
  cuda_device device;
  lookback_arguments book;
  piece_arguments pieces;
  std::int64_t bytes = 0, bytes_of_carries = 0;

  planned_kernel(const program& p, const walk_table& table, const problem& bound,
                 const numbered_space<K>& numbered, const cuda_device& on, bool parallel)
      : plan(plan_cuda_kernel(p, table, bound, numbered.space(),
                              shape_of(parallel, reads_what_others_write(p, bound)), on)),
        arguments(make_arguments<K>(plan, p, table, bound, numbered.space())), device(on) {
    if constexpr (policy::takes_pieces)
      if (plan.pieces > 1) pieces = make_pieces<K>(plan, arguments, bytes);
    if constexpr (policy::looks_back)
      if (plan.lookback_tiles > 0) book = make_lookback<K>(plan, arguments, bytes);
    if constexpr (policy::kept_carries > 0)
      if (numbered.lanes > 0) describe_carries(p, numbered.lanes);
    if constexpr (saved_count<typename K::group, typename K::compute> > 0)
      if (bytes_of_carries == 0) bytes = saved_bytes<K>(plan, arguments);
  }
  /// How the carries lie that it leaves or finds, if it does.
  void describe_carries(const program& p, std::int64_t lanes) {
    if (!keeps_carries(p, plan, tile_shape<K>(), policy::several_sweeps)) return;
    carry_arguments& carries = arguments.carries;
    plan.carry_interval = cuda_strip_policy::carry_steps;
    carries.log2_interval = std::countr_zero(static_cast<unsigned>(cuda_strip_policy::carry_steps));
    carries.lanes = lanes;
    const auto number = static_cast<std::size_t>(p.tensors.count);
    const std::size_t count = plan.nest.lanes.size();
    for (std::size_t d = 0; d < count; ++d) carries.lane_stride[d] = plan.nest.lanes[d].stride[number];
    carries.inner_stride = carries.lane_stride[count - 1];
    carries.lane_stride[count - 1] *= policy::strip_lanes;
    bytes_of_carries =
        scandsl::carry_bytes(arguments.steps, lanes, policy::kept_carries,
                             static_cast<int>(sizeof(typename scratch_type_of<typename K::compute>::type)));
  }

  static cuda_tile_shape shape_of(bool parallel, bool in_place) {
    cuda_tile_shape shape = tile_shape<K>();
    shape.lookback = shape.lookback && parallel;
    shape.pieces = shape.pieces && parallel && !in_place;
    shape.parts = shape.parts && parallel && !in_place;
    return shape;
  }
  /// Whether an output lies where an input does that pieces read when others have written it: what is read
  /// once a lane, or where lanes may have to be gone through once more, anything.
  static bool reads_what_others_write(const program& p, const problem& bound) {
    const auto lies_at = [&](int t, tensor_role role) -> const void* {
      const bound_tensor& b = bound.tensors[static_cast<std::size_t>(t)];
      return p.tensors[t].role == role && b.bound ? b.view.data : nullptr;
    };
    bool reads = false;
    if constexpr (policy::takes_pieces)
      for_each_index(std::make_integer_sequence<int, K::tensors>{}, [&]<int I>(index_constant<I>) {
        if constexpr (piece_worker_of<K>::may_overflow || !is_walked<typename K::group, I>)
          if (const void* const at = lies_at(I, tensor_role::input))
            for (int o = 0; o < p.tensors.count; ++o) reads = reads || lies_at(o, tensor_role::output) == at;
      });
    return reads;
  }
};

}  // namespace scandsl::cuda_detail
