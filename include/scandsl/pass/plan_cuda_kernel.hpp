#pragma once
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <vector>

#include "scandsl/pass/cuda_plan.hpp"
#include "scandsl/pass/kernel_problem.hpp"
#include "scandsl/pass/prepare.hpp"
#include "scandsl/pass/reduction.hpp"

/// How a kernel program's arrangement, tiles and pieces are chosen (docs/cuda.md): plain functions of the
/// program, the problem and the device.
namespace scandsl {

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
            resident = row ? shape.walked_blocks : policy::blocks_resident_of_strips;
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

/// Whether rows go without restarting from end to end, so that a tile may be all there is of each.
inline bool has_whole_rows(const program& p, const cuda_kernel_plan& plan) {
  const bool restarts = plan.chunk > 0 && plan.chunk_dimension < 0;
  return p.scans.count > 0 && !plan.packed && !restarts && plan.nest.walk.size() == 1;
}
/// Whether rows are one tile, where such have kernels of their own. Of one sweep where fewer vectors a thread
/// would make one tile, too, for several tiles are walked in less time than one is. Short rows are left to
/// parts of a warp, which may hold less: where they do not begin at 16 bytes, which such programs of one
/// sweep cannot tell, more threads are faster. Ragged rows have one kernel for all lengths.
inline bool are_one_tile(const program& p, const walk_table& table, const cuda_kernel_plan& plan,
                         const cuda_tile_shape& shape, std::int64_t length) {
  if (shape.one_tile_vectors == 0 || !has_whole_rows(p, plan)) return false;
  const int vectors = table.sweeps > 1 ? shape.one_tile_vectors : shape.row_vectors;
  return length <= std::int64_t{cuda_row_policy::threads} * shape.row_steps * vectors &&
         (plan.ragged || length > steps_of_short_rows(shape));
}
/// Vectors that a thread has of a row.
inline int vectors_of_rows(const cuda_kernel_plan& plan, const cuda_tile_shape& shape, std::int64_t length) {
  return plan.one_tile                                          ? shape.one_tile_vectors
         : length <= steps_of_short_rows(shape) && !plan.packed ? shape.row_vectors
                                                                : shape.walked_vectors;
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
         length <= of_cluster && !plan.one_tile;
}

/// Whether rows that clusters of so many blocks hold are walked by a block each in less time: as its last
/// tile is seldom as empty as a cluster is in part, and as it waits for no others.
inline bool walks_sooner(std::int64_t rows, std::int64_t length, int blocks, const cuda_tile_shape& shape,
                         const cuda_device& device) {
  using policy = cuda_cluster_policy;
  const double of_multiprocessor = static_cast<double>(rows) / device.multiprocessors,
               tiles = static_cast<double>(tiles_of_rows(shape, length));
  const double a_tile = of_multiprocessor * (shape.finds_carries ? policy::tile_with_carries : 1);
  const double walk = policy::start_of_walk + tiles * std::max(policy::tile_of_lone_block, a_tile) +
                      policy::row_of_walk * of_multiprocessor;
  const double others = std::max(0, blocks - policy::blocks_for_nothing),
               tiles_of_block = static_cast<double>(shape.cluster_vectors) / shape.row_vectors;
  return walk < blocks * tiles_of_block * (1 + policy::other_block * others) * of_multiprocessor;
}

/// Has rows that are longer than a warp's registers, and are read twice, wait in shared memory.
inline bool stage_rows(const program& p, cuda_kernel_plan& plan, const cuda_tile_shape& shape,
                       const cuda_device& device, std::int64_t length) {
  using policy = cuda_row_policy;
  if (!shape.staged_rows || !has_whole_rows(p, plan) || length <= steps_of_short_rows(shape)) return false;
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

/// Threads of a block that walks rows, at most: those whose two stages of what they hold fit its memory.
inline int walked_threads(const cuda_tile_shape& shape, const cuda_device& device) {
  using policy = cuda_row_policy;
  const auto bytes = [](int threads) { return threads * 2 * 4 * policy::held_words; };
  int threads = shape.walked_threads;
  while (threads > policy::threads && bytes(threads) + policy::bytes_beside_stages > device.shared_bytes)
    threads /= 2;
  return threads;
}

/// Threads along a row of more tiles than one: where there are rows enough to keep the device busy with few,
/// as many as serve best, or fewer where its last tile would be mostly empty (9000 steps in tiles of 8192
/// take as long as 16384).
inline int threads_of_rows(std::int64_t rows, std::int64_t length, const cuda_tile_shape& shape,
                           const cuda_device& device) {
  using policy = cuda_row_policy;
  const std::int64_t a_thread = shape.row_steps * shape.walked_vectors;
  const auto log2 = [](int threads) { return std::countr_zero(static_cast<unsigned>(threads)); };
  const auto cost = [&](int threads) {
    const std::int64_t tile = threads * a_thread, walked = (length + tile - 1) / tile * tile;
    const int doublings = std::abs(log2(threads) - log2(shape.walked_best.count));
    return static_cast<double>(walked) * (1 + shape.walked_best.cost_of_twice * doublings);
  };
  const std::int64_t enough = std::int64_t{shape.walked_threads} * shape.walked_blocks *
                              policy::rounds_of_blocks * device.multiprocessors;
  const std::int64_t fewest =
      std::max<std::int64_t>(32, shape.finds_carries ? policy::carry_steps / a_thread : 0);
  int best = walked_threads(shape, device);
  for (int threads = best / 2; threads >= fewest && rows * threads >= enough; threads /= 2)
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

template <class Device>
cuda_kernel_plan plan_cuda_kernel(const program& p, const walk_table& table, const problem& bound,
                                  const iteration_space& space, const cuda_tile_shape& shape,
                                  const Device& device) {
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
    plan.one_tile = detail::are_one_tile(p, table, plan, shape, length);
    const std::int64_t a_thread = shape.row_steps * detail::vectors_of_rows(plan, shape, length);
    const int most_threads = plan.one_tile ? cuda_row_policy::threads : detail::walked_threads(shape, device);
    plan.lane_threads = detail::power_of_two_above((length + a_thread - 1) / a_thread, most_threads);
    plan.lane_threads = std::max(plan.lane_threads, plan.packed ? 32 : shape.fewest_row_threads);
    if (detail::stage_rows(p, plan, shape, device, length)) return plan;
    if (detail::can_be_clustered(p, plan, shape, device, length)) {
      const std::int64_t held = shape.row_steps * shape.cluster_vectors;
      const int threads =
          std::max(cuda_row_policy::threads,
                   detail::power_of_two_above((length + held - 1) / held,
                                              cuda_row_policy::threads * cuda_row_policy::most_blocks));
      // (Of rows that lie anywhere, to read twice costs more.)
      if ((plan.ragged && !shape.finds_carries) ||
          !detail::walks_sooner(nest.lane_count(), length, threads / cuda_row_policy::threads, shape,
                                device)) {
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
    const std::int64_t blocks = (nest.lane_count() * plan.lane_threads + most_threads - 1) / most_threads;
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
