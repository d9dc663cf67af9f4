#pragma once
#include <cstdint>

#include "scandsl/pass/nest.hpp"
#include "scandsl/pass/part_list.hpp"

/// How a program runs on a CUDA device for given shapes, what that is chosen from, and what follows from it,
/// without CUDA. The choice itself is in plan_cuda_kernel.hpp.
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
  /// Small blocks, of which some end while others begin. (H200, encodings of 8192 positions with silu, 256,
  /// 128, 64 and 32 threads: 0.908, 0.936, 0.943 and 0.945 of a copy, gradients 0.948, 0.948, 0.950 and
  /// 0.953; of 32768 without an activation 0.956, 0.955, 0.954 and 0.949.)
  static constexpr int threads_of_maps = 64, held_words_of_maps = 64;
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
  /// The most, and the fewest, threads of a block (threads_of_sums apart).
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
  /// Of rows of several tiles with fewer threads than a block, where there are so many rounds of blocks: how
  /// many serve best, and what twice or half as many cost. Few threads wait less for each other, many take
  /// memory in the order of its addresses, which counts where a thread holds much. (H200, 2^28 or more
  /// elements in bfloat16, with 32, 64, 128 and 256 threads: log-sums, 64 bytes a thread, rows of 16384 0.95,
  /// 0.98, 0.95 and 0.82 of a copy, of 65536 0.90, 0.93, 0.93 and 0.93; decayed sums, 128 bytes, 0.99, 1.01,
  /// 1.02 and 1.04, and 0.93, 0.97, 0.99 and 1.01; their gradients 0.95, 0.86 and 0.78, and 0.91, 0.79 and
  /// 0.75. Of types that are looked up it is not measured.)
  struct best_threads {
    int count;
    double cost_of_twice;
  };
  static constexpr best_threads best_of_walked_sweeps{32, 0.09}, best_of_little{64, 0.03},
      best_of_much{256, 0.015}, best_of_other_types{32, 0.08};
  static constexpr int bytes_of_little = 64;
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
  /// Of rows of several tiles and several sweeps, whose operands wait while all of them run beside the tile
  /// that is on its way: fewer threads, of more registers. (H200, 6144 rows of 65536: gradient of a log-sum
  /// 0.60 ms, with 16 elements a thread 0.70, so with 128 registers too; of a decayed sum, whose three
  /// operands take 48 words of 32 elements, 1.71, and with 16 1.06.)
  static constexpr int threads_of_walked_sweeps = 128, blocks_resident_of_walked_sweeps = 3,
                       held_words_of_walked_sweeps = 32;
  /// Of sums of what another kernel left, one row as a rule, and so one block, which is to hide latencies by
  /// itself. (H200, 98304 numbers: 15.7 us with 256 threads, 11.7 with 512, 13.7 with 1024 that hold half.)
  static constexpr int threads_of_sums = 512;
  /// Carries are kept of every so many steps: no tile has fewer of a gradient that begins with them.
  static constexpr int carry_steps = 512;
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
  /// A tile of a walk that reads its tiles once, for the scan has left carries, where a multiprocessor has
  /// several rows. (H200, us, clusters and such walks: log-sums, 132 rows of 65536 29 and 34, 264 56 and 41,
  /// 2112 rows of 16384 81 and 72; decayed sums, 528 rows of 16384 38 and 45, 264 of 32768 40 and 39, 6144 of
  /// 16384 322 and 277.)
  static constexpr double tile_with_carries = 0.72;
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
  /// Of a block: threads do not wait for each other, and the fewer blocks there are, the fewer pieces each
  /// has to add up. (Log-sums of [1, 1M, 64] and [1, 65536, 1024]: 0.119 and 0.123 ms with 512, 0.118 and
  /// 0.120 with 256, 0.137 and 0.136 with 128.)
  static constexpr int threads = 256;
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
  /// Blocks of a multiprocessor, of strips.
  static constexpr int blocks_resident_of_strips =
      cuda_strip_policy::resident_threads_of_sweeps / cuda_strip_policy::threads_of_sweeps;
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

/// The pace of strips that lie side by side (exec/cuda/pace.cuh), where all of them are on the device at a
/// time. (H200, [12, 8192, 2048] bfloat16 along dimension 1, of a copy, without a pace, and where strips may
/// be 0, half a tile, one and one and a half ahead of their mean: log-sums 0.859; 0.875, 0.887, 0.871 and
/// 0.862; decayed sums, one decay for all, 0.870; 0.890, 0.889, 0.877 and 0.872.)
struct cuda_pace_policy {
  /// Of fewer tiles it is not measured.
  static constexpr int fewest_tiles = 16;
  /// Strips for each multiprocessor, at least: fewer do not fill memory as it is. (Log-sums of 8192 steps
  /// with 2.9, in 64 lanes and in 32: 3 % and 8 % faster; with 1.8 and 1.9 5 % slower.)
  static constexpr double fewest_blocks = 2.5;
  /// Trips through memory, 0.7 us each, after which a strip waits no more.
  static constexpr int most_looks = 16;
  /// What a word takes, so that no two share a cache line: where strips had a word each, and 32 of them did,
  /// 0.39 of a copy was left.
  static constexpr int bytes_of_word = 128;
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
  int walked_vectors = 2;  ///< a thread of a row of several tiles; threads of a block at most, and blocks
  int walked_threads = cuda_row_policy::threads, walked_blocks = cuda_row_policy::blocks_resident;
  cuda_row_policy::best_threads walked_best = cuda_row_policy::best_of_other_types;
  int one_tile_vectors = 0;     ///< a thread of a row that is one tile, where such have kernels of their own
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
  /// Of a gradient: it may begin its tiles with carries that the scan left.
  bool finds_carries = false;
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
  bool one_tile = false;            ///< a row is one tile of threads that hold shape.one_tile_vectors of it
  bool clustered = false;           ///< the blocks of a cluster hold a row
  bool ragged = false;              ///< rows end within vectors
  bool staged = false;              ///< a row waits in shared memory
  int repeats = 1;                  ///< rows that a thread takes one after the other, along `repeated`, which
  dimension repeated;               ///< share what does not vary there
  std::int64_t lookback_tiles = 0;  ///< more than 0: a look-back, with so many tiles of each lane
};

/// Plans one kernel program. A template of the only device there is: of many files that run programs one may
/// have it for all (it takes a second to compile). Who includes exec/cuda/typed_run.cuh alone leaves it to a
/// file that includes pass/plan_cuda_kernel.hpp and says `template cuda_kernel_plan plan_cuda_kernel(...)`.
template <class Device = cuda_device>
cuda_kernel_plan plan_cuda_kernel(const program& p, const walk_table& table, const problem& bound,
                                  const iteration_space& space, const cuda_tile_shape& shape,
                                  const Device& device);

namespace detail {

inline std::int64_t steps_of_strips(const cuda_tile_shape& shape, int lane_threads) {
  return std::int64_t{shape.strip_threads} / lane_threads * shape.strip_steps;
}
/// Steps of rows that are a warp's, one tile, at most.
inline std::int64_t steps_of_short_rows(const cuda_tile_shape& shape) {
  return std::int64_t{32} * shape.row_steps * shape.row_vectors;
}
/// What a thread has in shared memory of a staged row.
inline std::int64_t staged_bytes_of_thread(std::int64_t length, int threads, int width) {
  const std::int64_t apart = std::int64_t{threads} * width, bytes_of_vector = 16;
  return (length + apart - 1) / apart * bytes_of_vector;
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

/// Steps between the carries that a plan leaves, or finds.
constexpr std::int64_t carry_interval(cuda_arrangement arrangement) {
  return arrangement == cuda_arrangement::row ? cuda_row_policy::carry_steps : cuda_strip_policy::carry_steps;
}
/// Whether a plan can leave carries, or (finds) begin its tiles with them: walks of more than one tile,
/// without restarts. (Of strips one tile may leave them to a gradient whose tiles are shorter. Short rows are
/// one tile of threads that hold row_vectors of it.)
inline bool keeps_carries(const program& p, const cuda_kernel_plan& plan, const cuda_tile_shape& shape,
                          bool finds) {
  const std::int64_t interval = carry_interval(plan.arrangement), steps = plan.nest.steps();
  const bool row = plan.arrangement == cuda_arrangement::row;
  const std::int64_t of_thread = row ? shape.row_steps : shape.strip_steps,
                     tile = row ? plan.lane_threads * of_thread * shape.walked_vectors
                                : detail::steps_of_strips(shape, plan.lane_threads);
  const bool walks =
      !row || (steps > tile && steps > detail::steps_of_short_rows(shape) && !plan.clustered &&
               !plan.staged && !plan.one_tile && plan.repeats == 1 && plan.lookback_tiles == 0);
  return detail::can_number_lanes(p) && walks && !plan.packed && plan.pieces == 1 && plan.chunk == 0 &&
         plan.nest.walk.size() == 1 && steps > interval &&
         (finds ? steps > tile && tile % interval == 0 : interval % of_thread == 0);
}
/// What carries of a program's lanes take.
constexpr std::int64_t carry_bytes(std::int64_t interval, std::int64_t steps, std::int64_t lanes,
                                   int components, int element_size) {
  return (steps + interval - 1) / interval * lanes * components * element_size;
}

}  // namespace scandsl
