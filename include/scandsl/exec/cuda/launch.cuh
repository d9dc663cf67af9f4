#pragma once
#include <cuda_runtime.h>

#include <optional>

#include "scandsl/exec/cuda/lookback.cuh"
#include "scandsl/exec/cuda/make_arguments.cuh"
#include "scandsl/exec/cuda/parts.cuh"

/// From a plan to a launch.
namespace scandsl::cuda_detail {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw cuda_error(message(what, " to succeed"), cudaGetErrorString(status),
                     "see the CUDA runtime's description of that error");
}

/// Whether one tile is all there is of every lane, and whether a kernel takes it for that.
template <class Arrangement, class A> bool fits_one_tile(const A& a) {
  return !Arrangement::has_streams ||
         (a.offsets == nullptr && steps_of_lane(a) <= Arrangement::tile_steps(a.lane_threads));
}
template <class Arrangement, class A> bool runs_one_tile(const A& a) {
  return Arrangement::has_one_tile && fits_one_tile<Arrangement>(a);
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
template <class K, int RowThreads, row_kind Kind = row_kind::plain>
using row_of = row<K, tile_policy<K>::width,
                   RowThreads == whole_blocks ? tile_policy<K>::cluster_vectors : tile_policy<K>::row_vectors,
                   RowThreads, tile_policy<K>::rolled, Kind>;
template <class K, int RowThreads>
using repeated_row_of =
    row<K, tile_policy<K>::width, tile_policy<K>::repeat_vectors, RowThreads, false, row_kind::repeats>;
template <class K, int RowThreads>
using staged_row_of = row<K, tile_policy<K>::width, 1, RowThreads, false, row_kind::staged>;
template <class K, int RowThreads> using ragged_row_of = row_of<K, RowThreads, row_kind::ragged>;
/// What walk_kernel has for lanes that lie side by side, and for rows.
template <class K>
using walked_strip_of = std::conditional_t<K::group::only_rows, row_of<K, whole_warps>, strip_of<K>>;
template <class K>
using walked_row_of = std::conditional_t<K::group::only_strips, strip_of<K>, row_of<K, whole_warps>>;

template <class K, class Arrangement> void launch_walk(typename K::arguments& a, cudaStream_t stream) {
  const std::int64_t blocks = Arrangement::blocks(a) * a.pieces.count;
  if (blocks == 0) return;
  if (blocks > 0x7fffffff) throw cuda_error("at most 2^31 - 1 blocks", message(blocks), "run it in parts");
  a.restarts = a.chunk > 0 && a.chunk_dimension < 0;
  a.in_order = a.restarts || a.walk_dimensions > 1 || a.pieces.count > 1;
  using fast = typename K::framed;
  using fast_arrangement = typename Arrangement::template of<fast>;
  using walk = runner<fast, fast_arrangement>;
  // What cannot keep its frames goes on with the robust program, whose states may be larger.
  std::size_t shared =
      std::max(walk::exchange_bytes(a.lane_threads), runner<K, Arrangement>::exchange_bytes(a.lane_threads));
  void (*kernel)(const typename K::arguments) = nullptr;
  if constexpr (!tile_policy<K>::streams) {
    kernel = walk_kernel<K, walked_strip_of<K>, walked_row_of<K>>;
  } else if constexpr (tile_policy<K>::sums_scratch) {
    kernel = stream_kernel<fast, fast_arrangement>;
    shared += 2 * walk::stage_bytes;
  } else {
    a.one_tile = runs_one_tile<Arrangement>(a);
    if constexpr (Arrangement::has_streams) {
      kernel = stream_kernel<fast, fast_arrangement>;
      if (!a.one_tile) shared += 2 * walk::stage_bytes;
    }
    if constexpr (Arrangement::has_one_tile && !Arrangement::streams_one_tile)
      if (a.one_tile) {
        kernel = one_tile_kernel<fast, fast_arrangement>;
        if constexpr (fast_arrangement::in_stage) shared += fast_arrangement::staged_bytes(a);
      }
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
  shape.rows = !K::group::only_strips;
  shape.ragged_rows = policy::ragged_rows;
  shape.staged_rows = policy::staged_rows;
  if constexpr (policy::repeat_vectors > 0) {
    shape.repeat_vectors = policy::repeat_vectors;
    shape.shared_of = sharing_of<typename K::group>.tensors;
  }
  if constexpr (policy::streams && !K::group::only_strips)
    shape.row_stage_bytes =
        2 * runner<typename K::framed, row_of<typename K::framed, whole_warps>>::stage_bytes;
  if constexpr (cuts_sweeps<typename K::group>) {
    using pieces = cuda_sweep_piece_policy;
    constexpr bool replays = find_replays_some<typename K::group>();
    using strip = typename strip_of<K>::template slow_of<typename K::robust>;
    shape.idle_of_rows = replays ? pieces::idle_of_rolled : pieces::idle_multiprocessors;
    shape.idle_of_strips =
        replays && strip::place::rolled ? pieces::idle_of_rolled : pieces::idle_multiprocessors;
  }
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
  if constexpr (K::group::only_strips) {
    return f(std::type_identity<strip_of<K>>{});
  } else {
    if constexpr (!K::group::only_rows)
      if (plan.arrangement == cuda_arrangement::strip) return f(std::type_identity<strip_of<K>>{});
    if constexpr (tile_policy<K>::staged_rows)
      if (plan.staged)
        return plan.clustered ? f(std::type_identity<staged_row_of<K, whole_blocks>>{})
                              : f(std::type_identity<staged_row_of<K, whole_warps>>{});
    if constexpr (tile_policy<K>::ragged_rows)
      if (a.ragged) {
        if constexpr (tile_policy<K>::clusters)
          if (plan.clustered) return f(std::type_identity<ragged_row_of<K, whole_blocks>>{});
        using walked = ragged_row_of<K, whole_warps>;
        return fits_one_tile<walked>(a) ? f(std::type_identity<ragged_row_of<K, any_threads>>{})
                                        : f(std::type_identity<walked>{});
      }
    if constexpr (tile_policy<K>::repeat_vectors > 0)
      if (a.repeats > 1)
        return a.lane_threads < 32 ? f(std::type_identity<repeated_row_of<K, part_of_warp>>{})
                                   : f(std::type_identity<repeated_row_of<K, whole_warps>>{});
    if constexpr (tile_policy<K>::fewest_row_threads < 32) {
      // Rows of a warp are not staged (1024 classes of cross entropy: .67 of a copy, staged .64).
      if (a.lane_threads < 32 ||
          (tile_policy<K>::staged_rows && a.lane_threads == 32 && fits_one_tile<row_of<K, whole_warps>>(a)))
        return f(std::type_identity<row_of<K, part_of_warp>>{});
    }
    if constexpr (tile_policy<K>::clusters)
      if (plan.clustered) return f(std::type_identity<row_of<K, whole_blocks>>{});
    return f(std::type_identity<row_of<K, whole_warps>>{});
  }
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

/// The pieces of lanes of several sweeps, and the bytes of what scans make of them.
template <class K>
sweep_pieces cut_sweeps(const cuda_kernel_plan& plan, const typename K::arguments& a, std::int64_t& bytes) {
  using group = typename K::group;
  const bool row = plan.arrangement == cuda_arrangement::row;
  const int length = with_arrangement<K>(
      plan, a, [&]<class A>(std::type_identity<A>) { return A::tile_steps(a.lane_threads); });
  sweep_pieces cut{static_cast<int>(plan.pieces), 0, plan.piece / length,
                   a.lanes * (row ? 1 : tile_policy<K>::strip_lanes), nullptr};
  bytes = sweep_count<group> * component_capacity<group> * cut.count * cut.lanes *
          static_cast<std::int64_t>(sizeof(typename scratch_type_of<typename K::compute>::type));
  return cut;
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
    arguments.saved = bytes > bytes_of_pieces ? scratch : nullptr;
    arguments.pieces.states = static_cast<char*>(scratch) + (bytes - bytes_of_pieces);
    with_arrangement<K>(plan, arguments, [&]<class A>(std::type_identity<A>) {
      const int launches =
          plan.pieces > 1 ? launch_of_fold<typename K::group>(sweep_count<typename K::group>) + 1 : 1;
      for (arguments.pieces.launch = 0; arguments.pieces.launch < launches; ++arguments.pieces.launch)
        launch_walk<K, A>(arguments, stream);
    });
  }

private:
  using policy = tile_policy<K>;

  cuda_kernel_plan plan;
  typename K::arguments arguments;
  cuda_device device;
  lookback_arguments book;
  piece_arguments pieces;
  std::int64_t bytes = 0, bytes_of_carries = 0, bytes_of_pieces = 0;  ///< of pieces of several sweeps

  planned_kernel(const program& p, const walk_table& table, const problem& bound,
                 const numbered_space<K>& numbered, const cuda_device& on, bool parallel)
      : plan(plan_for(p, table, bound, numbered, shape_of(parallel, reads_what_others_write(p, bound)), on)),
        arguments(make_arguments<K>(plan, p, table, bound, numbered.space())), device(on) {
    if constexpr (policy::takes_pieces)
      if (plan.pieces > 1) pieces = make_pieces<K>(plan, arguments, bytes);
    if constexpr (policy::looks_back)
      if (plan.lookback_tiles > 0) book = make_lookback<K>(plan, arguments, bytes);
    if constexpr (policy::kept_carries > 0)
      if (numbered.lanes > 0) describe_carries(p, numbered.lanes);
    if constexpr (saved_count<typename K::group, typename K::compute> > 0)
      if (bytes_of_carries == 0) bytes = (saved_bytes<K>(plan, arguments) + 15) / 16 * 16;
    if constexpr (cuts_sweeps<typename K::group>)
      if (plan.pieces > 1) {
        arguments.pieces = cut_sweeps<K>(plan, arguments, bytes_of_pieces);
        bytes += bytes_of_pieces;
      }
  }
  /// Carries that the scan left are worth more than pieces: where it left any, lanes are many, or short.
  static cuda_kernel_plan plan_for(const program& p, const walk_table& table, const problem& bound,
                                   const numbered_space<K>& numbered, cuda_tile_shape shape,
                                   const cuda_device& on) {
    if constexpr (policy::kept_carries > 0 && policy::several_sweeps)
      if (numbered.lanes > 0) {
        cuda_tile_shape whole = shape;
        whole.idle_of_rows = whole.idle_of_strips = 0;
        const cuda_kernel_plan walk = plan_cuda_kernel(p, table, bound, numbered.space(), whole, on);
        if (keeps_carries(p, walk, whole, true)) return walk;
      }
    return plan_cuda_kernel(p, table, bound, numbered.space(), shape, on);
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
    if (!parallel || in_place) shape.idle_of_rows = shape.idle_of_strips = 0;
    return shape;
  }
  /// Whether an output lies where an input does that pieces read when others have written it: what is read
  /// once a lane, or where lanes may have to be gone through once more, as by several sweeps, anything.
  static bool reads_what_others_write(const program& p, const problem& bound) {
    const auto lies_at = [&](int t, tensor_role role) -> const void* {
      const bound_tensor& b = bound.tensors[static_cast<std::size_t>(t)];
      return p.tensors[t].role == role && b.bound ? b.view.data : nullptr;
    };
    bool reads = false;
    if constexpr (cuts_sweeps<typename K::group>)
      for (int t = 0; t < p.tensors.count; ++t)
        if (const void* const at = lies_at(t, tensor_role::input))
          for (int o = 0; o < p.tensors.count; ++o) reads = reads || lies_at(o, tensor_role::output) == at;
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
