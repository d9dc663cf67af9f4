#pragma once
#include <cuda_runtime.h>

#include "scandsl/exec/cuda/look_ahead.hpp"
#include "scandsl/exec/cuda/lookback.cuh"
#include "scandsl/exec/cuda/make_arguments.cuh"
#include "scandsl/exec/cuda/parts.cuh"

/// What each schedule of a kernel program launches, and with what scratch.
namespace scandsl::cuda_detail {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw cuda_error(message(what, " to succeed"), cudaGetErrorString(status),
                     "see the CUDA runtime's description of that error");
}

/// Whether one tile is all there is of every lane, and whether a kernel takes it for that.
template <class Arrangement, class A> bool is_one_tile(const A& a) {
  return a.offsets == nullptr && steps_of_lane(a) <= Arrangement::tile_steps(a.lane_threads);
}
template <class Arrangement, class A> bool fits_one_tile(const A& a) {
  return !Arrangement::has_streams || is_one_tile<Arrangement>(a);
}
template <class Arrangement, class A> bool runs_one_tile(const A& a) {
  return Arrangement::has_one_tile && fits_one_tile<Arrangement>(a);
}

/// The stream on which a run's kernels are launched, one after the other.
struct launch_stream {
  cudaStream_t stream = nullptr;
  bool begun = false;  ///< one has been
};

struct launch_shape {
  std::int64_t blocks, threads;
  std::size_t shared;
  int cluster = 0;  ///< its blocks; 0: there are no clusters
  /// It may begin while the run's launch before it ends, for which it waits itself. (What other runs leave it
  /// may read at once; so a run's first launch begins when all before it has ended.)
  bool overlaps = false;
};

inline void launch_kernel(const void* kernel, const launch_shape& shape, launch_stream& on,
                          void** arguments) {
  if (shape.blocks > 0x7fffffff)
    throw cuda_error("at most 2^31 - 1 blocks", message(shape.blocks), "run it in parts");
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
  if (shape.overlaps && on.begun) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = shape.shared;
  config.stream = on.stream;
  config.attrs = attributes;
  config.numAttrs = count;
  // Not <<<>>>, which copies the arguments once more.
  const cudaError_t status = cudaLaunchKernelExC(&config, kernel, arguments);
  if (status != cudaSuccess) cudaGetLastError();  // told here, so not to whoever asks next
  check(status, "a kernel launch");
  on.begun = true;
}
template <class... A>
void launch_kernel(void (*kernel)(A...), const launch_shape& shape, launch_stream& on,
                   const std::type_identity_t<A>&... arguments) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
  launch_kernel(reinterpret_cast<const void*>(kernel), shape, on, pointers);
}

template <class K>
using strip_of = strip<K, tile_policy<K>::strip_lanes, tile_policy<K>::strip_steps,
                       tile_policy<K>::strip_threads, tile_policy<K>::rolled>;
/// Of whole warps: rows of several tiles, or of one where that has no kernel of its own.
template <class K, int RowThreads, row_kind Kind = row_kind::plain>
using row_of = row<K, tile_policy<K>::width,
                   RowThreads == whole_blocks  ? tile_policy<K>::cluster_vectors
                   : RowThreads == whole_warps ? tile_policy<K>::walked_vectors
                                               : tile_policy<K>::row_vectors,
                   RowThreads, tile_policy<K>::rolled, Kind>;
/// Rows of one tile, where those are apart.
template <class K, int RowThreads, row_kind Kind>
using one_tile_row_of =
    row<K, tile_policy<K>::width, tile_policy<K>::one_tile_vectors, RowThreads, tile_policy<K>::rolled, Kind>;
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

/// From compute capability 9.0 on, as clusters.
inline bool launches_overlap(const cuda_device& device) { return device.cluster_blocks > 1; }

/// Shared memory in which a block's threads exchange states. What cannot keep its frames goes on with the
/// robust program, whose states may be larger.
template <class K, class Arrangement> std::size_t exchange_bytes_of(int lane_threads) {
  using fast = typename K::framed;
  using walk = runner<fast, typename Arrangement::template of<fast>>;
  using slow = runner<typename K::robust, typename Arrangement::template slow_of<typename K::robust>>;
  return larger(larger(walk::exchange_bytes(lane_threads), slow::exchange_bytes(lane_threads)),
                runner<K, Arrangement>::exchange_bytes(lane_threads));
}

/// May_overlap: a kernel that reads what earlier ones left may begin while the launch before it ends.
template <class K, class Arrangement>
void launch_walk(typename K::arguments& a, launch_stream& on, bool may_overlap = false) {
  const std::int64_t blocks = Arrangement::blocks(a) * (a.pieces.joins ? 1 : a.pieces.count);
  if (blocks == 0) return;
  a.restarts = a.chunk > 0 && a.chunk_dimension < 0;
  using fast = typename K::framed;
  using fast_arrangement = typename Arrangement::template of<fast>;
  using walk = runner<fast, fast_arrangement>;
  a.in_order = a.restarts || a.walk_dimensions > 1;
  if constexpr (cuts_sweeps<typename K::group>)
    a.in_order = a.in_order || (a.pieces.count > 1 && !walk::streams_pieces);
  std::size_t shared = exchange_bytes_of<K, Arrangement>(a.lane_threads);
  void (*kernel)(const typename K::arguments) = nullptr;
  static_assert(reads_scratch<K> == reads_scratch<fast> && walks_scratch<K> == walks_scratch<fast>);
  const bool overlaps = tile_policy<K>::streams && reads_scratch<K> && may_overlap;
  if constexpr (!tile_policy<K>::streams) {
    kernel = walk_kernel<K, walked_strip_of<K>, walked_row_of<K>>;
  } else if constexpr (tile_policy<K>::sums_scratch) {
    kernel = stream_kernel<fast, fast_arrangement>;
    shared += 2 * walk::stage_bytes * fast_arrangement::stages_of_block(a);
  } else {
    constexpr bool only_streams =
        tile_policy<K>::one_tile_apart && std::is_same_v<Arrangement, row_of<K, whole_warps>>;
    a.one_tile = !only_streams && runs_one_tile<Arrangement>(a);
    if constexpr (Arrangement::has_streams) {
      kernel = stream_kernel<fast, fast_arrangement>;
      if (!a.one_tile) shared += 2 * walk::stage_bytes * fast_arrangement::stages_of_block(a);
    }
    if constexpr (Arrangement::has_one_tile && !only_streams)
      if (a.one_tile) {
        if constexpr (!fast_arrangement::streams_one_tile) kernel = one_tile_kernel<fast, fast_arrangement>;
        if constexpr (looks_ahead<K, Arrangement>) describe_ahead<K, Arrangement>(a);
        if constexpr (fast_arrangement::in_stage) shared += fast_arrangement::staged_bytes(a);
      }
  }
  int cluster = 0;
  if constexpr (Arrangement::clustered) cluster = Arrangement::blocks_of_row(a);
  launch_kernel(kernel, {blocks, Arrangement::block_size(a), shared, cluster, overlaps}, on, a);
}

/// Joins what scans have made of the pieces of several sweeps (sweep_pieces.cuh): many threads for few lanes.
template <class K, class Arrangement> void launch_join(typename K::arguments a, launch_stream& on) {
  a.pieces.joins = true;
  if (!a.along_rows) a.lane_threads = 1 << (a.log2_lane_threads = smaller(a.log2_lane_threads, 1));
  launch_walk<K, Arrangement>(a, on);
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
                     const cuda_device& device, void* scratch, launch_stream& on) {
  const std::int64_t tiles = book.tiles * book.rows;
  if (tiles >= std::int64_t{1} << 31)
    throw cuda_error("at most 2^31 tiles", message(tiles), "run it in parts");
  if (tiles == 0) return;
  book.ticket = static_cast<std::uint32_t*>(scratch);
  book.words = reinterpret_cast<std::uint64_t*>(static_cast<char*>(scratch) + 256);
  check(cudaMemsetAsync(scratch, 0, static_cast<std::size_t>(bytes), on.stream), "clearing the workspace");
  using kernel_type = lookback<K, lookback_row_of<K>>;
  const std::int64_t blocks = smaller<std::int64_t>(tiles + 1, std::int64_t{device.multiprocessors} *
                                                                   cuda_lookback_policy::blocks_resident);
  launch_kernel(lookback_kernel<K, lookback_row_of<K>>,
                {blocks, kernel_type::all_threads, kernel_type::shared_bytes()}, on, a, book);
}

template <class K> using piece_worker_of = piece_worker<K, piece_strip_of<K>>;
template <class K>
using part_strip_of =
    strip<K, tile_policy<K>::strip_lanes, tile_policy<K>::strip_steps, cuda_part_policy::threads>;
template <class K>
using join_strip_of =
    strip<K, tile_policy<K>::strip_lanes, tile_policy<K>::strip_steps, cuda_part_policy::threads_that_join>;

/// What a plan needs to know of K's kernels.
template <class K> cuda_tile_shape tile_shape() {
  using policy = tile_policy<K>;
  cuda_tile_shape shape{policy::strip_lanes,  policy::strip_steps,    policy::strip_threads,
                        policy::width,        policy::row_vectors,    policy::fewest_row_threads,
                        policy::takes_pieces, policy::looks_back,     policy::lookback_vectors,
                        policy::clusters,     policy::cluster_vectors};
  shape.walked_vectors = policy::walked_vectors;
  shape.one_tile_vectors = policy::one_tile_apart ? policy::one_tile_vectors : 0;
  shape.strips = !K::group::only_rows;
  shape.rows = !K::group::only_strips;
  shape.strip_blocks = strip_of<K>::blocks_resident;
  shape.ragged_rows = ragged_rows_apart<K>;
  shape.staged_rows = policy::staged_rows;
  if constexpr (policy::repeat_vectors > 0) {
    shape.repeat_vectors = policy::repeat_vectors;
    shape.shared_of = sharing_of<typename K::group>.tensors;
  }
  if constexpr (policy::streams && !K::group::only_strips) {
    using walked = row_of<typename K::framed, whole_warps>;
    using rows = cuda_row_policy;
    shape.walked_threads = walked::threads;
    shape.walked_blocks = walked::blocks_resident;
    constexpr int held = policy::walked_vectors * policy::width * policy::step_bytes;
    shape.walked_best = walked::walks_sweeps            ? rows::best_of_walked_sweeps
                        : held <= rows::bytes_of_little ? rows::best_of_little
                                                        : rows::best_of_much;
  }
  if constexpr (cuts_sweeps<typename K::group>) {
    using pieces = cuda_sweep_piece_policy;
    constexpr bool replays = find_replays_some<typename K::group>();
    using strip = typename strip_of<K>::template slow_of<typename K::robust>;
    shape.idle_of_rows = replays ? pieces::idle_of_rolled : pieces::idle_multiprocessors;
    shape.idle_of_strips =
        replays && strip::place::rolled ? pieces::idle_of_rolled : pieces::idle_multiprocessors;
    if constexpr (policy::streams && runner<typename K::framed, strip_of<typename K::framed>>::streams_pieces)
      shape.idle_of_rows = shape.idle_of_strips = pieces::idle_of_streams;
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

/// What make_pieces says, where the parts are those of a list: they lie one behind the other, whatever
/// sequence they are of.
template <class K> piece_arguments listed_parts(const cuda_kernel_plan& plan, piece_arguments of) {
  of.parts = plan.parts;
  of.pieces = plan.parts.count;
  of.lanes = of.side * tile_policy<K>::strip_lanes;
  return of;
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
  if (plan.parts.count > 0)  // take_parts may still choose parts of one length
    bytes = larger(bytes, piece_worker_of<K>::state_bytes(listed_parts<K>(plan, of), a.lane_threads));
  return of;
}

template <class K>
void launch_pieces(const typename K::arguments& a, piece_arguments of, const cuda_device& device,
                   void* scratch, launch_stream& on) {
  const std::int64_t strips = (a.lanes + a.lane_threads - 1) / a.lane_threads;
  launch_shape shape{strips * of.pieces, piece_strip_of<K>::threads,
                     piece_worker_of<K>::shared_bytes(a.lane_threads)};
  of.states = scratch;
  of.folds = true;
  launch_kernel(piece_kernel<K, piece_strip_of<K>>, shape, on, a, of);
  of.folds = false;
  shape.overlaps = launches_overlap(device);
  launch_kernel(piece_kernel<K, piece_strip_of<K>>, shape, on, a, of);
}

/// Reduces parts, and has blocks join them, each all parts of its lanes, where no later kernel does.
template <class K>
void launch_parts(const cuda_kernel_plan& plan, typename K::arguments a, piece_arguments of,
                  const cuda_device& device, void* scratch, launch_stream& on) {
  using reducing = part_strip_of<K>;
  using joining = join_strip_of<K>;
  const std::int64_t all_sequences = a.lanes / of.side;
  const auto strips = [](std::int64_t units, int lane_threads) {
    return (units + lane_threads - 1) / lane_threads;
  };
  std::int64_t parts = all_sequences * of.pieces, sequences = 1, units = a.lanes;  // of blocks that join
  if (plan.parts.count > 0) {
    of = listed_parts<K>(plan, of);
    parts = of.pieces;
    sequences = all_sequences;
    units = of.side;
  }
  of.states = scratch;
  of.folds = true;
  launch_kernel(part_kernel<K, reducing>,
                {parts * strips(of.side, a.lane_threads), reducing::threads,
                 static_cast<std::size_t>(part_worker<K, reducing>::exchange_bytes(a.lane_threads))},
                on, a, of);
  if (plan.leaves_parts) return;
  of.folds = false;
  // Of few lanes a block has fewer, and so more threads for the parts of each.
  while (a.lane_threads > 1 && sequences * strips(units, a.lane_threads / 2) <= device.multiprocessors) {
    a.lane_threads /= 2;
    --a.log2_lane_threads;
  }
  launch_kernel(piece_kernel<K, joining>,
                {sequences * strips(units, a.lane_threads), joining::threads,
                 piece_worker<K, joining>::shared_bytes(a.lane_threads), 0, launches_overlap(device)},
                on, a, of);
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
    if constexpr (ragged_rows_apart<K>)
      if (a.ragged) {
        if constexpr (tile_policy<K>::clusters)
          if (plan.clustered) return f(std::type_identity<ragged_row_of<K, whole_blocks>>{});
        using walked = ragged_row_of<K, whole_warps>;
        using one_tile = one_tile_row_of<K, any_threads, row_kind::ragged>;
        return plan.one_tile || fits_one_tile<walked>(a) ? f(std::type_identity<one_tile>{})
                                                         : f(std::type_identity<walked>{});
      }
    if constexpr (tile_policy<K>::repeat_vectors > 0)
      if (a.repeats > 1)
        return a.lane_threads < 32 ? f(std::type_identity<repeated_row_of<K, part_of_warp>>{})
                                   : f(std::type_identity<repeated_row_of<K, whole_warps>>{});
    if constexpr (tile_policy<K>::one_tile_apart)
      if (plan.one_tile) return f(std::type_identity<one_tile_row_of<K, whole_warps, row_kind::one_tile>>{});
    if constexpr (tile_policy<K>::fewest_row_threads < 32) {
      // Rows of a warp are not staged (1024 classes of cross entropy: .67 of a copy, staged .64). And where
      // rows of one tile are apart, no other kernel takes short ones.
      using part = row_of<K, part_of_warp>;
      constexpr bool takes_warps = tile_policy<K>::staged_rows || tile_policy<K>::one_tile_apart;
      if (a.lane_threads < 32 || (takes_warps && a.lane_threads == 32 && is_one_tile<part>(a)))
        return f(std::type_identity<part>{});
    }
    if constexpr (tile_policy<K>::clusters)
      if (plan.clustered) return f(std::type_identity<row_of<K, whole_blocks>>{});
    return f(std::type_identity<row_of<K, whole_warps>>{});
  }
}

}  // namespace scandsl::cuda_detail
