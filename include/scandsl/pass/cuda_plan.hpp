#pragma once
#include <algorithm>
#include <bit>
#include <limits>

#include "scandsl/pass/kernel_problem.hpp"
#include "scandsl/pass/nest.hpp"
#include "scandsl/pass/part_list.hpp"
#include "scandsl/pass/prepare.hpp"
#include "scandsl/pass/reduction.hpp"

/// How a program runs on a CUDA device for given shapes: plain functions of the program, the problem and the
/// device, without CUDA.
namespace scandsl {

/// Sizes of the strip arrangement (exec/cuda/strip.cuh). Measured on an H200.
struct cuda_strip_policy {
  /// Threads that a multiprocessor holds: enough bytes on their way to hide the latency, at 128 registers a
  /// thread; at 168 where a lane's states are several words.
  static constexpr int resident_threads = 512, resident_threads_of_large_states = 384;
  /// Registers that one thread's part of a tile may take, in 32-bit words of stored elements.
  static constexpr int held_words = 32;
  static constexpr int most_steps = 8;
  /// Of scans of one sweep: half as many lanes, and twice as many steps, as accesses of 16 bytes would have,
  /// for what joins threads, and what is once a lane, then weighs half. (H200, [12, 8192, 2048] bfloat16, 4 x
  /// 16 and 8 x 8: log-sums 0.89 and 0.85 of a copy, decayed sums 0.97 and 0.91, lanes of 64 steps 0.91 and
  /// 0.69; in pieces, where threads join once, [1, 1M, 64] 0.58 and 0.55.)
  static constexpr int bytes_of_scans = 8, steps_of_scans = 16;
  /// Of scans with types that are looked up: half as much code to compile. What it costs them is not
  /// measured.
  static constexpr int steps_of_other_types = 4;
  /// Nodes that one thread's unrolled tile may evaluate: beyond, compilers take minutes and registers spill.
  static constexpr int unrolled_work = 1536;
  /// Bytes side by side: pieces of a row under 128 bytes cost bandwidth.
  static constexpr int fewest_bytes = 128;
  static constexpr int most_lane_threads = 256;
  /// So many blocks a multiprocessor are enough for reductions' strips to be as wide as a block. (Of scans
  /// they would be walked in several tiles where one has all: chunks of 128 steps 0.92 of a copy in place of
  /// 0.97.)
  static constexpr int blocks_of_lone_threads = 16;
  /// Components of states that a thread reads at once when threads join: those of four warps.
  static constexpr int joined_states = 32;
  /// Of programs of several sweeps: few lanes and many steps a thread, for each sweep joins the threads once
  /// more. (4 x 8 and 2 x 16 of 128 threads: 0.39 and 0.45 of a copy for the gradient of logcumsumexp.)
  static constexpr int lanes_of_sweeps = 2, steps_of_sweeps = 16;
  static constexpr int threads_of_sweeps = 128, resident_threads_of_sweeps = 384, held_words_of_sweeps = 48;
  /// Where angles turn: fewer lanes rather than fewer steps, for what begins a turn is done once for all
  /// steps.
  static constexpr int steps_of_turns = 8;
  /// Carries are kept of every so many steps: a float32 number is 3 % of as many elements of 16 bits.
  static constexpr int carry_steps = 64;
  /// Of programs without scans: what a thread computes once for all of its steps weighs as much as they do.
  static constexpr int threads_of_maps = 128, held_words_of_maps = 64;
  /// What is computed once for all steps waits in registers, too: the gradient of an encoding on a grid 0.76
  /// of a copy with 64 words, 0.86 with 32.
  static constexpr int held_words_of_hoisting_maps = 32;
  /// ... and of longer tiles more is missing where a few steps are all there are: grids of twelve sequences
  /// 0.90 of a copy with eight steps, 0.94 with four, their gradients with two 0.89 and with four 0.92.
  static constexpr int steps_of_hoisting_maps = 4;
  /// ... so they are not cut into more blocks a multiprocessor than this.
  static constexpr int blocks_of_maps = 32;
};

/// Sizes of the row arrangement (exec/cuda/row.cuh).
struct cuda_row_policy {
  /// The most, and the fewest, threads of a block.
  static constexpr int threads = 256, fewest_threads = 64;
  static constexpr int blocks_resident = 2;
  /// Of blocks with one tile, where a thread holds no more of it than so many bytes: what counts are the
  /// bytes on their way, and registers spill with more than that.
  static constexpr int blocks_resident_of_one_tile = 3, held_bytes_of_three = 64;
  /// Of tiles that wait in shared memory: registers then hold a vector, so that there are more blocks, of
  /// which some load and some compute.
  static constexpr int blocks_resident_of_stages = 4;
  /// Vectors of a thread that a row has more threads for, or a cluster more blocks, as long as it can.
  static constexpr int staged_vectors = 16;
  /// Of a block's shared memory, for what threads exchange.
  static constexpr int bytes_beside_stages = 4096;
  /// Steps a thread holds: what it does once (finding its row) then weighs little. Fewer where states are
  /// large, or where what is held would take more registers than this.
  static constexpr int elements = 32;
  static constexpr int held_words = 32;
  /// Of programs of several sweeps, whose operands are held while all of them run: half as many elements are
  /// a fifth slower, for all that is done once a thread.
  static constexpr int held_words_of_sweeps = 48;
  /// ... and where a row is one tile: what is once a thread, and what joins threads, weighs half. (H200, rows
  /// of 2048, 4096 and 8192: log-sums 1.01, 0.98 and 0.96 of a copy, and 0.98, 0.96 and 0.91 with half as
  /// much; gradient of one decay for all 0.85, 0.84 and 0.84, and 0.71, 0.70 and 0.65.) It is unrolled twice
  /// as far.
  static constexpr int unrolled_work_of_one_tile = 2 * cuda_strip_policy::unrolled_work;
  static constexpr int held_words_of_one_tile = 64;
  /// Of rows of several tiles with fewer threads than a block, where there are so many rounds of blocks: what
  /// the barriers of more than a warp cost (log-sums, rows of 16384: 0.78 of a copy with 256 threads, 0.91
  /// with 32), and each further time as many threads as are resident (decayed sums, of which 192 are in place
  /// of 512: 0.84 and 1).
  static constexpr double cost_of_barriers = 1.08, cost_of_lack = 0.11;
  static constexpr int rounds_of_blocks = 2;
  /// Of a cluster, so that a row of so many tiles is held in registers and read once. 16 is what an H200
  /// takes.
  static constexpr int most_blocks = 16;
  /// Rows that share sines and the like: at most so many, where others fill the device, with what is shared
  /// in so many registers. A thread has one row on its way while it computes another, in few registers:
  /// softmax over features, forward and backward, 0.67 and 0.79 of a copy with two blocks, 0.73 and 0.83 with
  /// three, 0.81 and 0.82 with four.
  static constexpr int most_repeats = 16, shared_words = 16, blocks_resident_of_repeats = 4,
                       held_bytes_of_four = 48;
  /// In clusters a thread holds so many times as much, for they wait for each other.
  static constexpr int more_in_clusters = 2;
};

/// What a walk of rows that clusters hold, too, costs more than the clusters do, in tiles of a block where
/// each multiprocessor has several: at the start, once a row, and for each tile as long as multiprocessors
/// have one block at most. And what each block of a cluster costs beyond its tile, for each other one from
/// the fifth on. (H200, gradients of log-sums in bfloat16, 16 to 2112 rows of 12288 to 131072 steps: us of a
/// walk 8 + t max(3.8, 2.8 r) + 1.3 r with t tiles of 8192 steps and r rows a multiprocessor, of clusters of
/// c blocks 7 + 2.75 c r for 2 and 4 blocks, 3.0 and 3.6 for 8 and 16 in place of 2.75.)
struct cuda_cluster_policy {
  static constexpr double start_of_walk = 0.4, row_of_walk = 0.47, tile_of_lone_block = 1.36;
  static constexpr double other_block = 0.027;
  static constexpr int blocks_for_nothing = 4;
};

/// What blocks of one tile have the L2 cache fetch for later ones, which then wait for less. Measured on an
/// H200.
struct cuda_ahead_policy {
  /// So many bytes further on: as much as memory delivers while a request is on its way. (The gradient of a
  /// log-sum, rows of 2048 bfloat16 numbers: 0.313 ms without, 0.314, 0.299, 0.293, 0.293 and 0.371 with 256
  /// KB, 2, 4, 8 and 17 MB; rows of 512: 0.0807 without, 0.0807, 0.0797, 0.0780 and 0.0783.)
  static constexpr std::int64_t bytes = std::int64_t{4} << 20;
  /// Where a multiprocessor's threads hold more than this at once, enough is on its way: gradients of decayed
  /// sums, one decay for all, rows of 1024, with 64 KB, 0.177 ms to 0.166, of 2048, with 128 KB, 0.308 to
  /// 0.329; a decay for each element, with 96 KB, 0.485 to 0.487 and 0.243 to 0.246.
  static constexpr int most_held_bytes = 80 * 1024;
};

/// How few lanes are cut into pieces (exec/cuda/pieces.cuh). Measured on an H200.
struct cuda_piece_policy {
  /// Of a block, of which a multiprocessor has one: threads do not wait for each other, and the fewer blocks
  /// there are, the fewer pieces each has to add up.
  static constexpr int threads = 512;
  /// Side by side at most: shared memory has room for the states of so many threads' lanes.
  static constexpr int most_lane_threads = 16;
  /// Tiles of a thread in shared memory: one that it computes, and those that are on their way.
  static constexpr int stages = 2;
  /// Lanes are cut where a walk would have no more blocks a multiprocessor than this: what is read twice
  /// weighs more than multiprocessors without work.
  static constexpr int blocks_of_a_walk = 1;
  /// Rounds of blocks at most, where that many share them more evenly.
  static constexpr int rounds = 4;
};

/// How walks of few blocks along strips get more of them: each has fewer lanes side by side, and so more
/// steps in a tile. Measured on an H200, with logcumsumexp and decayed_sum in bfloat16, forward and backward.
struct cuda_narrow_policy {
  /// Bytes side by side: so many as long as there are no more blocks than multiprocessors hold ([4, 4096,
  /// 2048] forward 75 us with 128 bytes, 52 with 64, and 71 with 32, whose blocks were more; [5, 4096, 1024]
  /// 50 and 45), and fewer as long as no multiprocessor has more than one ([1, 4096, 1000] 76, 43, 26 and 19
  /// us with 128, 64, 32 and 16; with two blocks [2, 2048, 1024] 15 us with 32, 18 with 16).
  static constexpr int bytes_of_residents = 32, bytes_of_few = 16;
  /// What a tile costs, beside one of 64 bytes: accesses of fewer bring what nobody asked for.
  static constexpr double tile_of(int bytes) { return bytes >= 64 ? 1 : bytes >= 32 ? 1.15 : 1.5; }
  /// What pieces cost, in such tiles: their launches; and as much as is in a tile, where there is one of them
  /// for each multiprocessor.
  struct cost_of_pieces {
    double start, a_tile;
  };
  static constexpr cost_of_pieces of_one_sweep{7, 0.75}, of_several_sweeps{16, 0.8};
};

/// How few lanes of several sweeps are cut into pieces (exec/cuda/sweep_pieces.cuh).
struct cuda_sweep_piece_policy {
  /// Lanes are cut where a walk would keep no more than one multiprocessor of so many busy, for each piece is
  /// gone through twice. What is compiled for the rare case (measured on an H100: gradient of a log-sum, 8
  /// rows: as fast; of 1024 lanes side by side 2.5 ms, 1.8 in pieces; softmax of 16 rows 1.4 and 0.85); that
  /// in rolled loops; and kernels for the usual case (on an H200, 16 blocks: 3.9 ms, 0.5 in pieces).
  static constexpr int idle_multiprocessors = 4, idle_of_rolled = 16, idle_of_streams = 2;
  /// Blocks of a multiprocessor, of rows and of strips.
  static constexpr int blocks_resident_of_rows = 2,
                       blocks_resident_of_strips = cuda_strip_policy::resident_threads_of_sweeps /
                                                   cuda_strip_policy::threads_of_sweeps;
  /// Of a row, for several launches take as long as a few tiles. Not measured.
  static constexpr int fewest_tiles_of_rows = 16;
};

/// How reductions of lanes that lie side by side are cut into parts (exec/cuda/parts.cuh). Measured on an
/// H200.
struct cuda_part_policy {
  static constexpr int threads = 256, blocks_resident = 2;
  /// Of a block that joins the parts of its lanes. (Softmax over the sequence, backward: 0.688 ms, 0.696 with
  /// 512.)
  static constexpr int threads_that_join = 128;
  /// Bytes side by side, where lanes are that many.
  static constexpr int bytes = 256;
  /// Tiles of a thread in a part, at most, and how many tiles what a block does once takes as long as.
  /// (Theta's gradient with silu, [12, 8192, 12, 128]: 0.380, 0.363, 0.350, 0.344 and 0.358 ms with 2, 4, 8,
  /// 12 and 16 tiles; behind a softmax over the sequence once takes as long as a tile.)
  static constexpr int most_tiles = 24;
  static constexpr double tiles_of_once = 0.5;
  /// Where blocks have several parts each, how much is left when parts of half the length begin: so much of
  /// what the longer ones would be if every block had one more. (The same gradient, from 20, 24 and 32 tiles
  /// on: 0.308, 0.307 and 0.310 ms, with silu 0.326, 0.325 and 0.328; from 32 on with 0.4 and 0.8 in place of
  /// 0.6: 0.327 and 0.330.)
  static constexpr double left_for_shorter = 0.6;
  /// Of lanes of fewer than twice so many tiles, where there are twice as many waves of blocks, a block takes
  /// all.
  static constexpr int most_tiles_walked = 4;
  /// Of a lane at most, which are then added up by one block; with shorter ones towards the end up to twice
  /// as many.
  static constexpr int most_parts = 512;
  /// What a thread holds where angles turn, in 32-bit words.
  static constexpr int held_words_of_turns = 48;
};

/// Sizes of the look-back (exec/cuda/lookback.cuh).
struct cuda_lookback_policy {
  static constexpr int threads = 256, blocks_resident = 2;
  /// Of the block that adds up what the others publish.
  static constexpr int scanner_warps = 8;
  /// Tiles that a block folds before it finishes one.
  static constexpr int delay = 3;
  /// What a thread holds of a tile, in bytes of all operands: several tiles wait in shared memory.
  static constexpr int held_bytes = 64;
  /// Shared memory of one block.
  static constexpr int shared_bytes = 112 * 1024;
  /// What it costs before its first tile, clearing its memory included, more than a walk does; and what it
  /// takes for what is a tile of a walk. In tiles of a walk by a block that has a multiprocessor for itself.
  /// (H200, bfloat16, log-sums of 1 to 200 rows of 1 to 16 tiles, us: 1.37 for each tile of a walk, from 4.6
  /// on, and 1.52 times as many where 200 rows share 132 multiprocessors; a look-back 0.0152 for each, from
  /// 11.5 on. That would be 1.46 in place of 1.2; but longer rows, and float32, look back faster.)
  static constexpr double tiles_of_start = 5, tiles_of_tile = 1.2;
};

struct cuda_device {
  int multiprocessors = 132;
  int cluster_blocks = 16;        ///< blocks of a cluster at most; 1: there are no clusters
  int shared_bytes = 227 * 1024;  ///< that a block may have
  /// What a look-back costs before its first tile.
  double tiles_of_lookback_start = cuda_lookback_policy::tiles_of_start;
};

enum class cuda_arrangement {
  strip,  ///< neighbouring threads take neighbouring lanes
  row,    ///< neighbouring threads take neighbouring steps
};

/// What a kernel was compiled for, as far as a plan needs to know.
struct cuda_tile_shape {
  int strip_lanes = 8, strip_steps = 8;  ///< a thread of a strip
  int strip_threads = 256;
  int row_steps = 8, row_vectors = 2;  ///< a thread of a row
  int fewest_row_threads = 1;
  bool pieces = false;    ///< lanes of strips may be cut into pieces
  bool lookback = false;  ///< there is a look-back kernel for rows; a thread's part of its tile:
  int lookback_vectors = 4;
  bool clusters = false;  ///< there is a kernel for rows of several blocks; a thread's part:
  int cluster_vectors = 4;
  int piece_shared_bytes = 0, lookback_shared_bytes = 0;  ///< of a block at most
  int row_stage_bytes = 0;                                ///< of a block that walks rows of several tiles
  int one_tile_vectors = 0;     ///< a thread of a row that is one tile, where that is more
  bool strips = true;           ///< there are kernels for strips; else everything goes along rows
  bool rows = true;             ///< there are kernels for rows; else everything goes along strips
  bool ragged_rows = false;     ///< there are some for rows that end within vectors,
  bool staged_rows = false;     ///< and some that hold a row of any length in shared memory
  int repeat_vectors = 0;       ///< a thread of rows that share what is computed for them; 0: there are none
  std::uint32_t shared_of = 0;  ///< tensors, as bits, of which that is computed
  bool parts = false;           ///< pieces are reduced each by itself, and then joined
  /// Lanes of several sweeps may be cut into pieces, where one multiprocessor of so many is busy; 0: they may
  /// not.
  int idle_of_rows = 0, idle_of_strips = 0;
  int strip_blocks = 1;  ///< blocks of strips that a multiprocessor holds
};

struct cuda_kernel_plan {
  cuda_arrangement arrangement = cuda_arrangement::strip;
  loop_nest nest;
  int chunk_dimension = -1;   ///< in nest.lanes: numbers the chunks that became lanes
  std::int64_t chunk = 0;     ///< their length, or the restart interval inside the walk
  std::int64_t pieces = 1;    ///< into which each lane is cut,
  std::int64_t piece = 0;     ///< and their length
  std::int64_t side = 0;      ///< units of lanes side by side, of which one piece comes after the other
  part_list parts;            ///< of a reduction, if there are parts of several lengths, in place of pieces
  bool leaves_parts = false;  ///< to a later kernel, which adds them up (pass/summed_parts.hpp)
  std::int64_t segments = 1;
  bool packed = false;
  int lane_threads = 1;
  bool holds_more = false;          ///< a row is one tile of threads that hold shape.one_tile_vectors of it
  std::int64_t carry_interval = 0;  ///< carries are left, or found, before every so many steps; 0: none are
  bool clustered = false;           ///< the blocks of a cluster hold a row
  bool ragged = false;              ///< rows end within vectors
  bool staged = false;              ///< a row waits in shared memory
  int repeats = 1;                  ///< rows that a thread takes one after the other, along `repeated`, which
  dimension repeated;               ///< share what does not vary there
  std::int64_t lookback_tiles = 0;  ///< more than 0: a look-back, with so many tiles of each lane
};

namespace detail {

inline int power_of_two_above(std::int64_t value, int most) {
  return static_cast<int>(std::min<std::uint64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(value, 1, most))),
      static_cast<std::uint64_t>(most)));
}

/// Tensors that the sweeps read or write at every step, weighted by their element sizes, whose elements lie
/// side by side along `d`.
inline std::int64_t bytes_along(const program& p, const walk_table& table, const problem& bound,
                                const dimension& d) {
  std::int64_t bytes = 0;
  const auto add = [&](int tensor) {
    if (p.tensors[tensor].role == tensor_role::positions) return;
    if (table.axis >= 0 && (p.tensors[tensor].mask() & axis_bit(table.axis)) == 0) return;  // once a lane
    const bound_tensor& b = bound.tensors[static_cast<std::size_t>(tensor)];
    if (b.bound && std::abs(d.stride[static_cast<std::size_t>(tensor)]) == 1)
      bytes += static_cast<std::int64_t>(size_of(b.view.type));
  };
  for (int i = 0; i < table.sweeps; ++i) {
    for (const stream_read& read : table.sweep[i].reads)
      if (read.from == source::memory) add(read.tensor);
    for (const std::int16_t store : table.sweep[i].stores) add(p.stores[store].tensor);
  }
  return bytes;
}

/// Without scans any dimension may be walked: the innermost one, along which memory is read in vectors.
inline void walk_innermost(const walk_table& table, loop_nest& nest) {
  if (table.axis >= 0 || nest.lanes.empty()) return;
  nest.walk = {nest.lanes.back()};
  nest.lanes.pop_back();
}

/// The dimension of stretches of `length` steps of the walk, and before which dimension of the lanes it
/// stands.
struct stretch_dimension {
  dimension outer;
  std::size_t at = 0;
};
inline stretch_dimension stretches_of(const program& p, const cuda_kernel_plan& plan, std::int64_t length) {
  stretch_dimension result{plan.nest.walk.front()};
  auto& [outer, at] = result;
  outer.extent = (outer.extent + length - 1) / length;
  for (std::int64_t& stride : outer.stride) stride *= length;
  const std::vector<dimension>& lanes = plan.nest.lanes;
  while (at < lanes.size() && !belongs_outside(p, outer, lanes[at])) ++at;
  // The innermost lane dimension, the one whose lanes lie side by side, stays innermost.
  if (plan.arrangement == cuda_arrangement::strip && at == lanes.size() && at > 0) --at;
  return result;
}
/// Makes stretches of `length` steps lanes of their own.
inline void fold(const program& p, cuda_kernel_plan& plan, std::int64_t length) {
  const auto [outer, at] = stretches_of(p, plan, length);
  plan.nest.lanes.insert(plan.nest.lanes.begin() + static_cast<std::ptrdiff_t>(at), outer);
  plan.chunk_dimension = static_cast<int>(at);
  plan.chunk = length;
}

}  // namespace detail

namespace detail {

/// Has each thread take several rows, where rows are many: those along a dimension in which nothing varies
/// that they share sines and the like of.
inline void repeat_rows(cuda_kernel_plan& plan, const cuda_tile_shape& shape, const cuda_device& device,
                        std::int64_t length) {
  using policy = cuda_row_policy;
  const std::int64_t a_thread = shape.row_steps * shape.repeat_vectors;
  if (length > policy::threads * a_thread) return;
  std::vector<dimension>& lanes = plan.nest.lanes;
  const int threads = power_of_two_above((length + a_thread - 1) / a_thread, policy::threads);
  const std::int64_t in_place = std::int64_t{std::max(device.multiprocessors, 1)} *
                                policy::blocks_resident_of_repeats * (policy::threads / threads);
  const std::int64_t most = std::min<std::int64_t>(policy::most_repeats, plan.nest.lane_count() / in_place);
  std::size_t best = 0;
  for (std::size_t d = 0; d < lanes.size(); ++d) {
    bool shares = true;
    for (std::size_t t = 0; t < lanes[d].stride.size() && t < 32; ++t)
      shares = shares && ((shape.shared_of >> t & 1U) == 0 || lanes[d].stride[t] == 0);
    for (int rows = static_cast<int>(most); shares && rows > plan.repeats; --rows)
      if (lanes[d].extent % rows == 0) plan.repeats = rows, best = d;  // all of a thread's rows exist
  }
  if (plan.repeats == 1) return;
  plan.lane_threads = threads;
  const cut_dimension parts = cut(lanes[best], plan.repeats);
  plan.repeated = parts.inner;
  lanes[best] = parts.outer;
  lanes = merged(lanes);
}

/// Whether lanes may be taken apart: a single sweep, whose scans do not wait for each other.
inline bool takes_lanes_apart(const walk_table& table, const cuda_kernel_plan& plan) {
  return table.sweeps == 1 && table.sweep[0].has_scans && table.rounds[0] == 1 &&
         plan.nest.walk.size() == 1 && !plan.packed && (plan.chunk == 0 || plan.chunk_dimension >= 0);
}

/// Steps of a block's tile along rows, and how many of them a row has.
inline std::int64_t steps_of_rows(const cuda_tile_shape& shape) {
  return std::int64_t{cuda_row_policy::threads} * shape.row_steps * shape.row_vectors;
}
inline std::int64_t tiles_of_rows(const cuda_tile_shape& shape, std::int64_t length) {
  return (length + steps_of_rows(shape) - 1) / steps_of_rows(shape);
}

/// Turns a walk of few blocks along rows of many tiles into a look-back, where that takes less time.
inline void consider_lookback(const walk_table& table, cuda_kernel_plan& plan, const cuda_tile_shape& shape,
                              const cuda_device& device, std::int64_t blocks, std::int64_t length) {
  using policy = cuda_lookback_policy;
  if (!shape.lookback || shape.lookback_shared_bytes > device.shared_bytes || device.multiprocessors < 2 ||
      !takes_lanes_apart(table, plan))
    return;
  const std::int64_t tile = std::int64_t{policy::threads} * shape.row_steps * shape.lookback_vectors;
  const std::int64_t tiles = (length + tile - 1) / tile;
  const double of_multiprocessor = static_cast<double>(blocks) / device.multiprocessors,
               walked = static_cast<double>(tiles_of_rows(shape, length));
  if (tiles < 2 || walked * std::max(1.0, of_multiprocessor) <=
                       device.tiles_of_lookback_start + policy::tiles_of_tile * walked * of_multiprocessor)
    return;
  plan.lane_threads = policy::threads;
  plan.lookback_tiles = tiles;
}

/// Steps of a block's tile along strips.
inline std::int64_t steps_of_strips(const cuda_tile_shape& shape, int lane_threads) {
  return std::int64_t{shape.strip_threads} / lane_threads * shape.strip_steps;
}

/// A walk along strips that are as narrow as they may be.
struct narrow_walk {
  int lane_threads = 1;
  double blocks = 0;  ///< of a multiprocessor
  double tiles = 0;   ///< of a block
  double a_tile = 1;  ///< what one costs, in tiles of 64 bytes

  bool costs_more_than(const cuda_narrow_policy::cost_of_pieces& pieces) const {
    return a_tile * tiles > pieces.start + pieces.a_tile * blocks * tiles;
  }
};
/// Makes strips of `lane_threads` threads narrower, as long as that gives work to more of the device, and
/// what is scanned at a time, `length` steps, is longer than a tile.
inline narrow_walk narrow_strips(int lane_threads, std::int64_t units, std::int64_t segments,
                                 std::int64_t length, const cuda_tile_shape& shape,
                                 const cuda_device& device) {
  using policy = cuda_narrow_policy;
  // Of types that are looked up as if they were the arithmetic's.
  const auto bytes = [&](int threads) { return threads * shape.strip_lanes * 16 / shape.row_steps; };
  const auto blocks = [&](int threads) { return (units + threads - 1) / threads * segments; };
  const auto tile = [&](int threads) { return steps_of_strips(shape, threads); };
  const auto may_be = [&](int threads) {
    const int held = bytes(threads) >= policy::bytes_of_residents ? shape.strip_blocks : 1;
    return bytes(threads) >= policy::bytes_of_few &&
           blocks(threads) <= std::int64_t{held} * device.multiprocessors;
  };
  while (lane_threads > 1 && tile(lane_threads) < length && may_be(lane_threads / 2)) lane_threads /= 2;
  return {lane_threads, static_cast<double>(blocks(lane_threads)) / std::max(device.multiprocessors, 1),
          static_cast<double>((length + tile(lane_threads) - 1) / tile(lane_threads)),
          policy::tile_of(bytes(lane_threads))};
}

/// Cuts the lanes of a walk of few blocks along strips into pieces: so many that the blocks are shared evenly
/// among the multiprocessors.
inline void consider_pieces(const walk_table& table, cuda_kernel_plan& plan, const cuda_tile_shape& shape,
                            const cuda_device& device, std::int64_t blocks, std::int64_t length) {
  using policy = cuda_piece_policy;
  const std::int64_t few = std::int64_t{policy::blocks_of_a_walk} * device.multiprocessors;
  if (!shape.pieces || shape.piece_shared_bytes > device.shared_bytes || !takes_lanes_apart(table, plan) ||
      plan.lane_threads > policy::most_lane_threads || blocks == 0 || blocks > few)
    return;
  const std::int64_t unit = std::int64_t{policy::threads} / plan.lane_threads * shape.strip_steps;
  std::int64_t best = 0;
  double longest = 0;
  for (std::int64_t rounds = 1; rounds <= policy::rounds; ++rounds) {
    const std::int64_t pieces = rounds * device.multiprocessors / blocks;
    if (pieces < 2) continue;
    const std::int64_t piece = ((length + pieces - 1) / pieces + unit - 1) / unit * unit;
    const double time = static_cast<double>(rounds * piece);
    if (piece < length && (best == 0 || time < 0.97 * longest)) best = piece, longest = time;
  }
  if (best == 0) return;
  plan.piece = best;
  plan.pieces = (length + best - 1) / best;
}

/// Cuts the lanes of a walk of few blocks and several sweeps into pieces of whole tiles.
inline void consider_sweep_pieces(cuda_kernel_plan& plan, const cuda_tile_shape& shape,
                                  const cuda_device& device, std::int64_t blocks, std::int64_t length,
                                  std::int64_t tile) {
  using policy = cuda_sweep_piece_policy;
  const bool row = plan.arrangement == cuda_arrangement::row;
  const int idle = row ? shape.idle_of_rows : shape.idle_of_strips,
            resident = row ? policy::blocks_resident_of_rows : policy::blocks_resident_of_strips;
  if (idle == 0 || plan.nest.walk.size() != 1 || plan.packed || plan.chunk > 0 || plan.repeats > 1 ||
      blocks == 0 || blocks * idle > device.multiprocessors)
    return;
  const std::int64_t tiles = (length + tile - 1) / tile;
  const std::int64_t wanted = std::int64_t{resident} * device.multiprocessors / blocks,
                     of_piece = (tiles + wanted - 1) / wanted, pieces = (tiles + of_piece - 1) / of_piece;
  plan.piece = of_piece * tile;
  plan.pieces = pieces;
}

/// Vectors of lanes, of which a thread of a strip has one, in the dimensions from `first` on.
inline std::int64_t units_of_lanes(const std::vector<dimension>& lanes, const cuda_tile_shape& shape,
                                   std::size_t first = 0) {
  std::int64_t units = (lanes.back().extent + shape.strip_lanes - 1) / shape.strip_lanes;
  for (std::size_t d = first; d + 1 < lanes.size(); ++d) units *= lanes[d].extent;
  return units;
}

/// Of how many tiles a part is, so that all have been reduced soonest: blocks run in waves, and each takes as
/// long as its tiles and what it does once.
inline std::int64_t tiles_of_part(std::int64_t all_tiles, std::int64_t strips, std::int64_t resident) {
  using policy = cuda_part_policy;
  const std::int64_t fewest = (all_tiles + policy::most_parts - 1) / policy::most_parts,
                     most = std::min<std::int64_t>((all_tiles + 1) / 2, policy::most_tiles);
  std::int64_t best = fewest;
  double soonest = std::numeric_limits<double>::infinity();
  for (std::int64_t tiles = fewest; tiles <= most; ++tiles) {
    const std::int64_t blocks = (all_tiles + tiles - 1) / tiles * strips,
                       waves = (blocks + resident - 1) / resident;
    const double end = static_cast<double>(waves) * (static_cast<double>(tiles) + policy::tiles_of_once);
    if (end >= soonest) continue;
    best = tiles;
    soonest = end;
  }
  return best;
}

/// Parts that get shorter towards the end, of sequences of so many tiles, as many strips side by side. None
/// where a block's share of all tiles is one part: then parts of one length, of which each has one or two,
/// begin together and end together.
constexpr part_list graded_parts(std::int64_t all_tiles, std::int64_t sequences, std::int64_t strips,
                                 std::int64_t resident, std::int64_t tile) {
  using policy = cuda_part_policy;
  const std::int64_t of_a_block = all_tiles * sequences * strips / resident;
  if (of_a_block <= policy::most_tiles || all_tiles * sequences >= std::int64_t{1} << 31) return {};
  const std::int64_t fewest = (all_tiles + policy::most_parts - 1) / policy::most_parts;
  std::int64_t tiles =
      std::max(std::min({of_a_block / 2, std::int64_t{policy::most_tiles}, all_tiles}), fewest);
  part_list_maker maker(all_tiles * tile, sequences);
  maker.add(tiles * tile, all_tiles * sequences * tile);
  for (int i = 1; i < part_list::most_grades && tiles > 1; ++i) {
    const double one_more = static_cast<double>(tiles * resident) / static_cast<double>(strips);
    const auto left = static_cast<std::int64_t>(policy::left_for_shorter * one_more);
    if (left == 0) break;
    tiles = (tiles + 1) / 2;
    maker.add(tiles * tile, left * tile);
  }
  return maker.list.count_of_grades > 1 ? maker.list : part_list{};
}

/// Cuts the lanes of a reduction along strips into parts, in the order of their addresses.
inline void consider_parts(const program& p, const walk_table& table, cuda_kernel_plan& plan,
                           const cuda_tile_shape& shape, const cuda_device& device, std::int64_t length) {
  using policy = cuda_part_policy;
  const bool alone = plan.lane_threads >= std::min(shape.strip_threads, cuda_strip_policy::most_lane_threads);
  if (!shape.parts || !takes_lanes_apart(table, plan) || plan.chunk > 0 || alone) return;
  const auto units_from = [&](std::size_t d) { return units_of_lanes(plan.nest.lanes, shape, d); };
  const std::int64_t units = units_from(0);
  if (length == 0 || units == 0) return;
  const int wide = policy::bytes * shape.row_steps / (16 * shape.strip_lanes);
  std::int64_t side = units_from(stretches_of(p, plan, length).at);
  const int threads = power_of_two_above(side, std::min(wide, policy::threads_that_join));
  // Where a row of blocks would be idle in part, all lanes are side by side.
  if (((side + threads - 1) / threads * threads - side) * 8 > side) side = units;
  const std::int64_t tile = std::int64_t{policy::threads} / threads * shape.strip_steps;
  const std::int64_t all_tiles = (length + tile - 1) / tile;
  const std::int64_t strips = (side + threads - 1) / threads * (units / side),
                     resident = std::int64_t{policy::blocks_resident} * device.multiprocessors;
  const std::int64_t waves = (all_tiles * strips + resident - 1) / resident;
  if (all_tiles < 2 * power_of_two_above((waves + 1) / 2, policy::most_tiles_walked)) return;
  plan.lane_threads = threads;
  plan.piece = tiles_of_part(all_tiles, strips, resident) * tile;
  plan.pieces = (length + plan.piece - 1) / plan.piece;
  plan.side = side;
  plan.parts = graded_parts(all_tiles, units / side, (side + threads - 1) / threads, resident, tile);
}

}  // namespace detail

/// Whether a kernel's parts lie, each by itself, as the lanes do in tensor t: [part][lane].
inline bool parts_lie_as(const cuda_kernel_plan& plan, int t, const cuda_tile_shape& shape) {
  if (!shape.parts || plan.side == 0 || plan.nest.lanes.empty()) return false;
  std::int64_t lanes = 1;
  for (std::size_t d = plan.nest.lanes.size(); d-- > 0;) {
    const dimension& each = plan.nest.lanes[d];
    if (each.extent != 1 && each.stride[static_cast<std::size_t>(t)] != lanes) return false;
    lanes *= each.extent;
  }
  return plan.nest.lanes.back().extent % shape.strip_lanes == 0;
}
/// Has a kernel add up the parts that another one leaves in scratch tensor t, along its outermost axis. Where
/// that numbers the sequences that the parts are of, these may have unlike numbers of parts: of a list.
inline void take_parts(problem& bound, int t, cuda_kernel_plan& of) {
  dims& axis = bound.tensors[static_cast<std::size_t>(t)].view.axis[0];
  if (of.parts.sequences != axis.count()) of.parts = {};
  const std::int64_t parts = of.parts.count > 0 ? of.parts.count : of.pieces * axis.count();
  axis = dims{{parts, axis.begin()->stride}};
  of.leaves_parts = true;
}

namespace detail {

/// Whether rows go without restarting from end to end, so that a tile may be all there is of each.
inline bool has_whole_rows(const program& p, const cuda_kernel_plan& plan) {
  const bool restarts = plan.chunk > 0 && plan.chunk_dimension < 0;
  return p.scans.count > 0 && !plan.packed && !restarts && plan.nest.walk.size() == 1;
}
/// Whether rows are one tile of threads that hold more of such than of longer rows. Of one sweep where fewer
/// vectors a thread would make one tile, too, for several tiles are walked in less time than one is. Short
/// rows are left to parts of a warp that hold less: where they do not begin at 16 bytes, which such programs
/// of one sweep cannot tell, more threads are faster. Ragged rows have one kernel for all lengths.
inline bool holds_more_of_one_tile(const program& p, const walk_table& table, const cuda_kernel_plan& plan,
                                   const cuda_tile_shape& shape, std::int64_t length) {
  if (shape.one_tile_vectors <= shape.row_vectors || !has_whole_rows(p, plan)) return false;
  const int vectors = table.sweeps > 1 ? shape.one_tile_vectors : shape.row_vectors;
  return length <= std::int64_t{cuda_row_policy::threads} * shape.row_steps * vectors &&
         (plan.ragged || length > std::int64_t{32} * shape.row_steps * shape.row_vectors);
}

inline int most_blocks_of_cluster(const cuda_device& device) {
  return std::bit_floor(
      static_cast<unsigned>(std::clamp(device.cluster_blocks, 1, cuda_row_policy::most_blocks)));
}

/// Whether the blocks of a cluster hold a row, which is longer than a block's tile.
inline bool can_be_clustered(const program& p, const cuda_kernel_plan& plan, const cuda_tile_shape& shape,
                             const cuda_device& device, std::int64_t length) {
  const std::int64_t most_blocks = most_blocks_of_cluster(device);
  const std::int64_t of_cluster =
      most_blocks * cuda_row_policy::threads * shape.row_steps * shape.cluster_vectors;
  return shape.clusters && most_blocks > 1 && has_whole_rows(p, plan) && length > steps_of_rows(shape) &&
         length <= of_cluster && !plan.holds_more;
}

/// Whether rows that clusters of so many blocks hold are walked by a block each in less time: as its last
/// tile is seldom as empty as a cluster is in part, and as it waits for no others.
inline bool walks_sooner(std::int64_t rows, std::int64_t length, int blocks, const cuda_tile_shape& shape,
                         const cuda_device& device) {
  using policy = cuda_cluster_policy;
  const double of_multiprocessor = static_cast<double>(rows) / device.multiprocessors,
               tiles = static_cast<double>(tiles_of_rows(shape, length));
  const double walk = policy::start_of_walk +
                      tiles * std::max(policy::tile_of_lone_block, of_multiprocessor) +
                      policy::row_of_walk * of_multiprocessor;
  const double others = std::max(0, blocks - policy::blocks_for_nothing),
               tiles_of_block = static_cast<double>(shape.cluster_vectors) / shape.row_vectors;
  return walk < blocks * tiles_of_block * (1 + policy::other_block * others) * of_multiprocessor;
}

/// What a thread has in shared memory of a staged row.
inline std::int64_t staged_bytes_of_thread(std::int64_t length, int threads, int width) {
  const std::int64_t apart = std::int64_t{threads} * width, bytes_of_vector = 16;
  return (length + apart - 1) / apart * bytes_of_vector;
}
/// Has rows that are longer than a warp's registers, and are read twice, wait in shared memory.
inline bool stage_rows(const program& p, cuda_kernel_plan& plan, const cuda_tile_shape& shape,
                       const cuda_device& device, std::int64_t length) {
  using policy = cuda_row_policy;
  if (!shape.staged_rows || !has_whole_rows(p, plan) ||
      length <= std::int64_t{32} * shape.row_steps * shape.row_vectors)
    return false;
  const std::int64_t of_thread = std::int64_t{policy::staged_vectors} * shape.row_steps;
  const int threads = std::max(32, power_of_two_above((length + of_thread - 1) / of_thread,
                                                      policy::threads * most_blocks_of_cluster(device)));
  const std::int64_t bytes = staged_bytes_of_thread(length + shape.row_steps, threads, shape.row_steps) *
                             std::min(threads, policy::threads);
  if (bytes + policy::bytes_beside_stages > device.shared_bytes) return false;
  plan.staged = true;
  plan.ragged = false;
  plan.clustered = threads > policy::threads;
  plan.lane_threads = threads;
  return true;
}

/// Threads along a row of more tiles than one, where there are rows enough to keep the device busy with few:
/// a warp waits for no other, and its last tile is not mostly empty (9000 steps in tiles of 8192 take as long
/// as 16384). But a block has its stages in shared memory however many threads it has, so that of small ones
/// fewer may be resident.
inline int threads_of_rows(std::int64_t rows, std::int64_t length, const cuda_tile_shape& shape,
                           const cuda_device& device) {
  using policy = cuda_row_policy;
  constexpr int most_resident = policy::threads * policy::blocks_resident;
  const std::int64_t a_thread = shape.row_steps * shape.row_vectors;
  const int blocks = device.shared_bytes / std::max(1, shape.row_stage_bytes);
  const auto cost = [&](int threads) {
    const std::int64_t tile = threads * a_thread, walked = (length + tile - 1) / tile * tile;
    const std::int64_t resident = std::int64_t{blocks} * std::max(threads, policy::fewest_threads);
    const double lack = static_cast<double>(most_resident) /
                        static_cast<double>(std::clamp<std::int64_t>(resident, 1, most_resident));
    return static_cast<double>(walked) * (1 + policy::cost_of_lack * (lack - 1)) *
           (threads > 32 ? policy::cost_of_barriers : 1);
  };
  const std::int64_t enough = std::int64_t{most_resident} * policy::rounds_of_blocks * device.multiprocessors;
  int best = policy::threads;
  for (int threads = best / 2; threads >= 32 && rows * threads >= enough; threads /= 2)
    if (cost(threads) < cost(best)) best = threads;
  return best;
}

/// Without scans nothing comes from the steps before: cuts the walk of `blocks` blocks into tiles of `tile`
/// steps, in the order of their addresses. Where sines and the like are computed once for all steps, no
/// further than it takes to keep the device busy.
inline void cut_map(const program& p, const walk_table& table, cuda_kernel_plan& plan,
                    const cuda_device& device, std::int64_t blocks, std::int64_t length, std::int64_t tile) {
  if (p.scans.count > 0 || plan.nest.walk.size() != 1 || length == 0) return;
  std::int64_t pieces = (length + tile - 1) / tile;
  if (table.axis >= 0 && !table.rotates) {
    const std::int64_t wanted = std::int64_t{cuda_strip_policy::blocks_of_maps} * device.multiprocessors;
    pieces = std::min(pieces, std::max<std::int64_t>(1, wanted / std::max<std::int64_t>(1, blocks)));
  }
  const std::int64_t tiles = (length + pieces * tile - 1) / (pieces * tile);
  if (tiles * tile < length) fold(p, plan, tiles * tile);
}

}  // namespace detail

/// Whether a plan can leave carries, or (finds) begin its tiles with them: walks along strips of more than
/// one tile, without restarts.
inline bool keeps_carries(const program& p, const cuda_kernel_plan& plan, const cuda_tile_shape& shape,
                          bool finds) {
  const std::int64_t interval = cuda_strip_policy::carry_steps, steps = plan.nest.steps(),
                     tile = detail::steps_of_strips(shape, plan.lane_threads);
  return detail::can_number_lanes(p) && plan.arrangement == cuda_arrangement::strip && !plan.packed &&
         plan.pieces == 1 && plan.chunk == 0 && plan.nest.walk.size() == 1 && steps > interval &&
         (finds ? steps > tile && tile % interval == 0 : interval % shape.strip_steps == 0);
}
/// What carries of a program's lanes take.
constexpr std::int64_t carry_bytes(std::int64_t steps, std::int64_t lanes, int components, int element_size) {
  const std::int64_t interval = cuda_strip_policy::carry_steps;
  return (steps + interval - 1) / interval * lanes * components * element_size;
}

/// Plans one kernel program.
inline cuda_kernel_plan plan_cuda_kernel(const program& p, const walk_table& table, const problem& bound,
                                         const iteration_space& space, const cuda_tile_shape& shape,
                                         const cuda_device& device) {
  cuda_kernel_plan plan;
  plan.nest = make_nest(p, table, space);
  detail::walk_innermost(table, plan.nest);
  loop_nest& nest = plan.nest;
  const std::int64_t along_walk =
      nest.walk.size() == 1 ? detail::bytes_along(p, table, bound, nest.walk.front()) : 0;
  const std::int64_t along_lanes =
      nest.lanes.empty() ? 0 : detail::bytes_along(p, table, bound, nest.lanes.back());
  if (shape.rows && (along_walk > along_lanes || nest.lanes.empty() || !shape.strips))
    plan.arrangement = cuda_arrangement::row;
  else if (nest.lanes.empty())
    nest.lanes.push_back({});

  std::int64_t length = nest.steps();
  if (p.scans.count > 0) {
    plan.chunk = detail::restart_interval(p, bound, p.scans[0].every);
    if (plan.chunk >= length) plan.chunk = 0;
    if (p.scans[0].offsets >= 0 && bound.tensors[static_cast<std::size_t>(p.scans[0].offsets)].bound) {
      plan.packed = true;
      plan.segments = space.extent[static_cast<std::size_t>(p.scans[0].segment_axis)];
    }
    if (plan.chunk > 0 && !plan.packed && !table.uses_last && nest.walk.size() == 1) {
      length = plan.chunk;
      detail::fold(p, plan, plan.chunk);
    }
  }

  if (plan.arrangement == cuda_arrangement::row) {
    plan.ragged = shape.ragged_rows &&
                  (plan.packed || length % shape.row_steps != 0 || nest.steps() % shape.row_steps != 0);
    plan.holds_more = detail::holds_more_of_one_tile(p, table, plan, shape, length);
    const std::int64_t a_thread =
        shape.row_steps * (plan.holds_more ? shape.one_tile_vectors : shape.row_vectors);
    plan.lane_threads =
        detail::power_of_two_above((length + a_thread - 1) / a_thread, cuda_row_policy::threads);
    plan.lane_threads = std::max(plan.lane_threads, plan.packed ? 32 : shape.fewest_row_threads);
    if (detail::stage_rows(p, plan, shape, device, length)) return plan;
    if (detail::can_be_clustered(p, plan, shape, device, length)) {
      const std::int64_t held = shape.row_steps * shape.cluster_vectors;
      const int threads =
          std::max(cuda_row_policy::threads,
                   detail::power_of_two_above((length + held - 1) / held,
                                              cuda_row_policy::threads * cuda_row_policy::most_blocks));
      // (Of rows that lie anywhere, to read twice costs more.)
      if (plan.ragged || !detail::walks_sooner(nest.lane_count(), length, threads / cuda_row_policy::threads,
                                               shape, device)) {
        plan.lane_threads = threads;
        plan.clustered = true;
        return plan;
      }
    }
    if (p.scans.count > 0 && !plan.packed && length > plan.lane_threads * a_thread)
      plan.lane_threads = detail::threads_of_rows(nest.lane_count(), length, shape, device);
    else if (shape.repeat_vectors > 0 && !plan.packed && !plan.ragged && plan.chunk == 0 &&
             nest.walk.size() == 1)
      detail::repeat_rows(plan, shape, device, length);
    const std::int64_t blocks =
        (nest.lane_count() * plan.lane_threads + cuda_row_policy::threads - 1) / cuda_row_policy::threads;
    detail::cut_map(p, table, plan, device, blocks, length, plan.lane_threads * a_thread);
    detail::consider_lookback(table, plan, shape, device, blocks, length);
    const std::int64_t tile = plan.lane_threads * a_thread;
    if ((length + tile - 1) / tile >= cuda_sweep_piece_policy::fewest_tiles_of_rows)
      detail::consider_sweep_pieces(plan, shape, device, blocks, length, tile);
    return plan;
  }
  const std::int64_t units = detail::units_of_lanes(nest.lanes, shape);
  const int segments_wanted =
      detail::power_of_two_above((length + shape.strip_steps - 1) / shape.strip_steps, shape.strip_threads);
  const int fewest = cuda_strip_policy::fewest_bytes * shape.row_steps / (16 * shape.strip_lanes);
  plan.lane_threads =
      p.scans.count == 0  // no thread waits for another: memory is taken in the order of its addresses
          ? shape.strip_threads
          : std::clamp(shape.strip_threads / segments_wanted, fewest, cuda_strip_policy::most_lane_threads);
  plan.lane_threads =
      std::min(plan.lane_threads, detail::power_of_two_above(units, cuda_strip_policy::most_lane_threads));
  // Wider pieces of a row where there are blocks enough for every multiprocessor all the same.
  if (plan.lane_threads == fewest && detail::steps_of_strips(shape, fewest) > 128 &&
      units / (2 * fewest) >= 4 * device.multiprocessors)
    plan.lane_threads = 2 * fewest;
  // Threads that reduce their lanes alone join no others.
  const std::int64_t enough =
      std::int64_t{cuda_strip_policy::blocks_of_lone_threads} * device.multiprocessors;
  const bool reduces = table.sweeps == 1 && only_reduces(p);
  if (reduces)
    while (plan.lane_threads < std::min(shape.strip_threads, cuda_strip_policy::most_lane_threads) &&
           units / (2 * plan.lane_threads) >= enough)
      plan.lane_threads *= 2;
  const std::int64_t blocks = (units + plan.lane_threads - 1) / plan.lane_threads;
  const std::int64_t a_tile = detail::steps_of_strips(shape, plan.lane_threads);
  detail::cut_map(p, table, plan, device, blocks, length, a_tile);
  const std::int64_t at_a_time = plan.packed
                                     ? (length + plan.segments - 1) / std::max<std::int64_t>(plan.segments, 1)
                                 : plan.chunk > 0 ? std::min(length, plan.chunk)
                                                  : length;
  const detail::narrow_walk walk =
      detail::narrow_strips(plan.lane_threads, units, plan.segments, at_a_time, shape, device);
  if (walk.costs_more_than(cuda_narrow_policy::of_one_sweep))
    detail::consider_pieces(table, plan, shape, device, blocks, length);
  detail::consider_parts(p, table, plan, shape, device, length);
  if (walk.costs_more_than(cuda_narrow_policy::of_several_sweeps))
    detail::consider_sweep_pieces(plan, shape, device, blocks, length, a_tile);
  // Maps are cut into tiles, and reductions into parts, that are wide.
  if (p.scans.count > 0 && plan.pieces == 1 && !reduces) plan.lane_threads = walk.lane_threads;
  return plan;
}

}  // namespace scandsl
