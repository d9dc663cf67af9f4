#include "scandsl/pass/plan_cuda_kernel.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/sink.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"offsets"> offsets;
constexpr scalar<"chunk"> chunk;
constexpr scalar<"flag"> flag;
constexpr auto sums =
    scan(plain_sum, over(n).restart_every(value_or(chunk, 0)).restart_at(offsets(s)), x(b, n));
inline constexpr auto summed = op<"summed">(out<"y">(b, n) = sums);
inline constexpr auto with_last =
    op<"with_last">(out<"y">(b, n) = sums, out<"final">(s, b).optional() = last(sums));
inline constexpr auto reduced = op<"reduced">(out<"y">(b) = sum(over(n), x(b, n)));
inline constexpr auto centred =
    op<"centred">(out<"y">(b, n) = x(b, n) - last(scan(plain_sum, over(n), x(b, n))));
inline constexpr auto doubled = op<"doubled">(out<"y">(b, n) = 2.0 * x(b, n));
/// Its exponentials are the same for all of b, so that b is walked.
constexpr tensor<"w"> w;
inline constexpr auto weighted = op<"weighted">(out<"y">(b, n) = exp(w(n)) * x(b, n));

/// The plan of P's only kernel for x and y of bfloat16, their axes bound to the given dimensions.
template <const program& P>
cuda_kernel_plan plan_for(const dims& along_b, const dims& along_n, double chunk_size, std::int64_t sequences,
                          const cuda_tile_shape& shape, const cuda_device& device = {}) {
  const program& p = kernel_program<P, 0>;
  problem bound = unbound_problem(p);
  for (const char* id : {"x", "y"}) {
    bound_tensor& t = bound.tensors[static_cast<std::size_t>(p.find_tensor(make_name(id)))];
    t.bound = true;
    const int rank = p.tensors[p.find_tensor(make_name(id))].axes.count;
    t.view = {nullptr, dtype::bfloat16, true, rank, {along_b, rank > 1 ? along_n : dims{}}};
  }
  if (const int at = p.find_parameter(make_name("chunk")); at >= 0)
    bound.parameters[static_cast<std::size_t>(at)] = chunk_size;
  if (sequences > 0) {
    bound_tensor& t = bound.tensors[static_cast<std::size_t>(p.find_tensor(make_name("offsets")))];
    t.bound = true;
    t.view = {nullptr, dtype::int32, false, 1, {dims{{sequences + 1, 1}}}};
  }
  const iteration_space space = make_iteration_space(p, bound);
  return plan_cuda_kernel(p, kernel_table<P, 0>, bound, space, shape, device);
}
template <const program& P>
cuda_kernel_plan plan_for(const dims& along_b, const dims& along_n, double chunk_size = 0,
                          std::int64_t sequences = 0, bool lookback = false, bool clusters = false,
                          const cuda_device& device = {}) {
  return plan_for<P>(along_b, along_n, chunk_size, sequences,
                     {8, 8, 256, 8, 4, 1, lookback, lookback, 4, clusters, 4, 2000, 2000, 4}, device);
}

std::int64_t lanes_in(const std::vector<dimension>& dimensions) { return loop_nest::count(dimensions); }

}  // namespace

TEST_CASE("the arrangement follows what lies side by side", "[pass][cuda]") {
  const cuda_kernel_plan rows = plan_for<summed>({{96, 2048}}, {{2048, 1}});
  CHECK(rows.arrangement == cuda_arrangement::row);
  CHECK(rows.lane_threads == 2048 / 32);  // a thread holds 4 vectors of 8
  const cuda_kernel_plan strips = plan_for<summed>({{12, 8192 * 2048}, {2048, 1}}, {{8192, 2048}});
  CHECK(strips.arrangement == cuda_arrangement::strip);
  CHECK(strips.lane_threads * 8 * 2 >= cuda_strip_policy::fewest_bytes);  // 8 lanes a thread
  CHECK(strips.nest.lanes.back().extent == 2048);
}

TEST_CASE("short rows share a warp, and few lanes do not take threads they have no use for", "[pass][cuda]") {
  CHECK(plan_for<summed>({{1000, 16}}, {{16, 1}}).lane_threads == 1);
  CHECK(plan_for<summed>({{1000, 100}}, {{100, 1}}).lane_threads == 4);
  CHECK(plan_for<summed>({{3, 1}}, {{5000, 3}}).lane_threads == 1);
}

TEST_CASE("rows whose last tile would be mostly empty have fewer threads", "[pass][cuda]") {
  const auto threads = [](std::int64_t rows, std::int64_t steps) {
    return plan_for<summed>({{rows, steps}}, {{steps, 1}}).lane_threads;
  };
  CHECK(threads(2500, 9000) == 64);    // 5 tiles of 2048
  CHECK(threads(10000, 9000) == 32);   // 9 of 1024
  CHECK(threads(10000, 16384) == 32);  // no barriers
  CHECK(threads(10000, 8192) == 256);  // one tile
  CHECK(threads(10000, 5000) == 256);
  CHECK(threads(300, 9000) == 256);  // there would be multiprocessors without work
  const cuda_kernel_plan packed = plan_for<summed>({{10000, 9000}}, {{9000, 1}}, 0, 3);
  CHECK(packed.lane_threads == 256);
}

TEST_CASE("rows of several tiles have as many threads as serve best", "[pass][cuda]") {
  using policy = cuda_row_policy;
  cuda_tile_shape shape;
  shape.row_vectors = shape.walked_vectors = 4;
  const auto threads = [&](const policy::best_threads& best, std::int64_t rows, std::int64_t steps) {
    shape.walked_best = best;
    return plan_for<summed>({{rows, steps}}, {{steps, 1}}, 0, 0, shape).lane_threads;
  };
  CHECK(threads(policy::best_of_little, 10000, 16384) == 64);
  CHECK(threads(policy::best_of_much, 10000, 16384) == 256);
  CHECK(threads(policy::best_of_walked_sweeps, 10000, 16384) == 32);
  CHECK(threads(policy::best_of_little, 300, 16384) == 256);   // there would be multiprocessors without work
  CHECK(threads(policy::best_of_much, 10000, 8200) == 32);     // nine tiles of 1024, not two of 8192
  CHECK(threads(policy::best_of_little, 10000, 18432) == 64);  // nine of 2048
  CHECK(threads(policy::best_of_little, 10000, 9216) == 32);   // nine of 1024, not five of 2048
}

TEST_CASE("a block of many threads has no more stages than the device has shared memory", "[pass][cuda]") {
  cuda_tile_shape shape;
  shape.row_steps = 4;
  shape.row_vectors = shape.walked_vectors = 8;
  shape.walked_threads = cuda_row_policy::threads_of_sums;
  const auto threads = [&](int shared_kilobytes) {
    return plan_for<summed>({{1, 98304}}, {{98304, 1}}, 0, 0, shape,
                            {.shared_bytes = shared_kilobytes * 1024})
        .lane_threads;
  };
  CHECK(threads(227) == 512);
  CHECK(threads(163) == 512);
  CHECK(threads(99) == 256);
}

TEST_CASE("rows longer than a block's tile are a cluster's", "[pass][cuda]") {
  const auto threads = [](std::int64_t steps, cuda_device device = {}, double chunk_size = 0,
                          std::int64_t sequences = 0) {
    return plan_for<summed>({{40, steps}}, {{steps, 1}}, chunk_size, sequences, true, true, device)
        .lane_threads;
  };
  CHECK(threads(256 * 32) == 256);
  CHECK(threads(256 * 32 + 1) == 512);
  CHECK(threads(65536) == 2048);
  CHECK(threads(16 * 256 * 32) == 4096);
  CHECK(threads(16 * 256 * 32 + 1) <= 512);  // no cluster holds it
  CHECK(threads(65536, {132, 1}) <= 512);    // there are no clusters
  CHECK(threads(65536, {132, 4}) <= 512);
  CHECK(threads(65536, {}, 0, 7) == 256);  // packed sequences begin anywhere
  CHECK(threads(65536, {}, 100) <= 256);   // chunks are lanes
}

TEST_CASE("in a cluster a thread holds more", "[pass][cuda]") {
  cuda_tile_shape shape;
  shape.row_vectors = shape.walked_vectors = 4, shape.clusters = true, shape.cluster_vectors = 8;
  const auto plan = [&](std::int64_t steps) {
    const program& p = kernel_program<summed, 0>;
    problem bound = unbound_problem(p);
    for (const char* id : {"x", "y"})
      bound.tensors[static_cast<std::size_t>(p.find_tensor(make_name(id)))] = {
          true, {nullptr, dtype::bfloat16, true, 2, {dims{{40, steps}}, dims{{steps, 1}}}}};
    return plan_cuda_kernel(p, kernel_table<summed, 0>, bound, make_iteration_space(p, bound), shape, {});
  };
  CHECK(!plan(256 * 32).clustered);
  CHECK(plan(256 * 32 + 1).clustered);  // a cluster of one block
  CHECK(plan(256 * 64).lane_threads == 256);
  CHECK(plan(256 * 64 + 1).lane_threads == 512);
  CHECK(plan(16 * 256 * 64).lane_threads == 16 * 256);
  CHECK(!plan(16 * 256 * 64 + 1).clustered);
}

TEST_CASE("rows that are one tile may have kernels of their own, of threads that hold more", "[pass][cuda]") {
  cuda_tile_shape shape;
  shape.row_vectors = shape.walked_vectors = 4, shape.one_tile_vectors = 8, shape.clusters = true,
  shape.cluster_vectors = 8;
  const auto once = [&](std::int64_t steps, double chunk_size = 0, std::int64_t sequences = 0) {
    return plan_for<summed>({{4000, steps}}, {{steps, 1}}, chunk_size, sequences, shape);
  };
  const auto twice = [&](std::int64_t steps) {
    return plan_for<centred>({{40, steps}}, {{steps, 1}}, 0, 0, shape);
  };
  CHECK(!once(1024).one_tile);  // for rows of a warp there is another kernel
  CHECK(once(1024).lane_threads == 32);
  CHECK(once(1025).one_tile);
  CHECK(once(1025).lane_threads == 32);
  CHECK(once(2049).lane_threads == 64);
  CHECK(once(8192).lane_threads == 128);
  CHECK(!once(8193).one_tile);  // that is walked, by fewer threads
  CHECK(twice(16384).one_tile);
  CHECK(twice(16384).lane_threads == 256);
  CHECK(!twice(16384).clustered);
  CHECK(!twice(16385).one_tile);
  CHECK(twice(16385).clustered);
  CHECK(!once(4096, 0, 3).one_tile);  // packed sequences begin anywhere
  CHECK(once(8192, 2048).one_tile);   // chunks are lanes
  CHECK(once(8192, 2048).lane_threads == 32);
  shape.ragged_rows = true;  // rows that end within vectors have one kernel for all lengths
  CHECK(twice(100).ragged);
  CHECK(twice(100).one_tile);
  CHECK(twice(100).lane_threads == 2);
  shape.one_tile_vectors = 0;
  CHECK(!twice(2048).one_tile);
  CHECK(twice(2048).lane_threads == 64);
}

TEST_CASE("of a row of several tiles a thread may hold less, in blocks of fewer", "[pass][cuda]") {
  cuda_tile_shape shape;
  shape.row_vectors = shape.one_tile_vectors = 4, shape.walked_vectors = 2;
  shape.walked_threads = 128, shape.walked_blocks = 3;
  const auto twice = [&](std::int64_t rows, std::int64_t steps) {
    return plan_for<centred>({{rows, steps}}, {{steps, 1}}, 0, 0, shape);
  };
  CHECK(twice(4, 1024).lane_threads == 32);  // a warp, of which each thread holds four vectors
  CHECK(twice(4, 8192).one_tile);
  CHECK(twice(4, 8192).lane_threads == 256);
  CHECK(!twice(4, 8193).one_tile);
  CHECK(twice(4, 8193).lane_threads == 128);
  CHECK(plan_for<summed>({{4, 4096}}, {{4096, 1}}, 0, 3, shape).lane_threads == 128);  // packed sequences
  CHECK(twice(4000, 8193).lane_threads == 32);                                         // rows enough
  shape.finds_carries = true, shape.walked_vectors = 1;
  CHECK(twice(4000, 8193).lane_threads == 64);  // carries are of every 512th step
}

TEST_CASE("a gradient that finds carries walks where it would have a cluster", "[pass][cuda]") {
  cuda_tile_shape shape;
  shape.row_vectors = shape.one_tile_vectors = shape.walked_vectors = shape.cluster_vectors = 4;
  shape.clusters = true, shape.walked_threads = 128, shape.walked_blocks = 3;
  const auto clustered = [&](std::int64_t rows, std::int64_t steps) {
    return plan_for<centred>({{rows, steps}}, {{steps, 1}}, 0, 0, shape).clustered;
  };
  CHECK(clustered(64, 65536));
  CHECK(clustered(4000, 16384));
  shape.finds_carries = true;
  CHECK(clustered(64, 65536));  // too few to keep all multiprocessors busy
  CHECK(!clustered(4000, 16384));
  CHECK(!clustered(264, 32768));
}

TEST_CASE("many rows that a cluster would hold in part are walked", "[pass][cuda]") {
  const auto clustered = [](std::int64_t rows, std::int64_t length, const cuda_device& device = {}) {
    return plan_for<summed>({{rows, length}}, {{length, 1}}, 0, 0, false, true, device).clustered;
  };
  // Of what is measured in cuda_cluster_policy, what was faster.
  for (const std::int64_t rows : {16, 64, 132})
    for (const std::int64_t length : {12288, 24576, 65536}) CHECK(clustered(rows, length));
  for (const std::int64_t rows : {264, 528, 1056, 2112}) {
    CHECK(clustered(rows, 12288));
    CHECK(!clustered(rows, 24576));
    CHECK(clustered(rows, 32768));
    CHECK(!clustered(rows, 49152));
    CHECK(!clustered(rows, 98304));
    CHECK(!clustered(rows, 131072));
  }
  CHECK(clustered(64, 98304));
  CHECK(!clustered(132, 98304));
  CHECK(clustered(264, 24576, {1056}));  // of a device with more multiprocessors
}

TEST_CASE("few strips are narrow, and are cut into pieces where that is faster", "[pass][cuda]") {
  cuda_tile_shape shape{8, 8, 128, 8};  // 16 bytes a thread
  shape.pieces = true;
  shape.strip_blocks = 3;
  const auto plan = [&](std::int64_t batch, std::int64_t steps, std::int64_t lanes, double chunk_size = 0,
                        std::int64_t sequences = 0) {
    return plan_for<summed>({{batch, steps * lanes}, {lanes, 1}}, {{steps, lanes}}, chunk_size, sequences,
                            shape, {132});
  };
  const auto threads = [&](auto... sizes) {
    const cuda_kernel_plan p = plan(sizes...);
    CHECK(p.pieces == 1);
    return p.lane_threads;
  };
  CHECK(threads(12, 8192, 2048) == 8);  // 384 blocks, and room for 396
  CHECK(threads(6, 8192, 2048) == 4);   // again 384
  CHECK(threads(4, 4096, 2048) == 4);   // 512 would be too many
  CHECK(threads(4, 1024, 1024) == 2);
  CHECK(threads(2, 2048, 1024) == 2);  // of 16 bytes no more than multiprocessors
  CHECK(threads(1, 4096, 1000) == 1);
  CHECK(threads(4, 128, 2048) == 8);  // a tile
  CHECK(threads(4, 129, 2048) == 4);
  CHECK(threads(4, 8192, 1024, 128) == 8);     // many chunks
  CHECK(threads(1, 8192, 1024, 0, 100) == 8);  // sequences have blocks of their own
  CHECK(threads(1, 8192, 1024, 0, 2) == 2);
  CHECK(threads(1, 5120, 64, 0, 40) == 8);  // of a tile each, on an average
  CHECK(plan(1, 16384, 1000).pieces > 1);
  // As soon as the tiles of a walk take longer.
  CHECK(threads(1, 4096, 64) == 1);
  CHECK(plan(1, 16384, 64).pieces > 1);
  CHECK(plan(1, 16384, 64).lane_threads == 8);
  CHECK(threads(1, 8192, 1024) == 1);
  CHECK(plan(1, 32768, 1024).pieces > 1);
  CHECK(threads(4, 65536, 1024) == 2);
  shape.pieces = false;
  CHECK(threads(1, 16384, 64) == 1);
}

TEST_CASE("where there are lanes enough, a thread reduces its lanes alone", "[pass][cuda]") {
  constexpr std::int64_t many = std::int64_t{8192} * 12 * 128;
  CHECK(plan_for<reduced>({{many, 1}}, {{12, many}}).lane_threads == 256);
  CHECK(plan_for<reduced>({{2048, 1}}, {{12, 2048}}).lane_threads < 256);
  CHECK(plan_for<summed>({{many, 1}}, {{12, many}}).lane_threads < 256);  // a tile holds all of the scan
}

TEST_CASE("reductions are cut into parts in the order of their addresses", "[pass][cuda]") {
  cuda_tile_shape shape{8, 8, 256, 8};
  shape.parts = true;
  const auto plan = [&](std::int64_t batch, std::int64_t steps, std::int64_t lanes) {
    const program& p = kernel_program<reduced, 0>;
    problem bound = unbound_problem(p);
    const auto bind = [&](const char* id, int rank, std::int64_t apart) {
      bound.tensors[static_cast<std::size_t>(p.find_tensor(make_name(id)))] = {
          true,
          {nullptr, dtype::bfloat16, true, rank, {dims{{batch, apart}, {lanes, 1}}, dims{{steps, lanes}}}}};
    };
    bind("x", 2, steps * lanes);
    bind("y", 1, lanes);
    return plan_cuda_kernel(p, kernel_table<reduced, 0>, bound, make_iteration_space(p, bound), shape, {});
  };
  CHECK(plan(12, 8192, 1536).side == 1536 / 8);  // parts of one sequence come before the next sequence
  CHECK(plan(12, 8192, 1536).pieces > 1);
  CHECK(plan(3, 8192, 40).side == 3 * 5);  // else most of a block were idle
  CHECK(plan(1, std::int64_t{1} << 30, 64).pieces <= cuda_part_policy::most_parts);
  CHECK(plan(12, 100, 1536).pieces == 1);
  // The parts of all lanes come one after the other, as y would with a longer b, if there is no gap in it.
  const int y_ = kernel_program<reduced, 0>.find_tensor(make_name("y"));
  CHECK(parts_lie_as(plan(12, 8192, 1536), y_, shape));
  CHECK(!parts_lie_as(plan(12, 100, 1536), y_, shape));  // there are none
  CHECK(!parts_lie_as(plan(3, 8192, 44), y_, shape));    // a vector of lanes ends each sequence, in part
  CHECK(!parts_lie_as(plan(12, 8192, 1536), kernel_program<reduced, 0>.find_tensor(make_name("x")), shape));
  // Blocks run in waves, and each does something once.
  using detail::tiles_of_part;
  CHECK(tiles_of_part(128, 144, 264) == 12);  // 11 parts: 1584 blocks, which are six waves
  CHECK(tiles_of_part(128, 1, 264) == 1);     // all at once
  CHECK(tiles_of_part(128, 12, 264) == 6);
  CHECK(tiles_of_part(1 << 20, 1, 264) == (1 << 20) / cuda_part_policy::most_parts);
  CHECK(tiles_of_part(2, 1 << 20, 264) == 1);  // no part is all of a lane
  problem longer;
  longer.tensors.resize(1);
  longer.tensors[0] = {true, {nullptr, dtype::float32, true, 2, {dims{{12, 1536}}, dims{{1536, 1}}}}};
  problem as_it_was = longer;
  cuda_kernel_plan listed = plan(12, 8192, 1536);
  CHECK(listed.parts.count > 0);
  take_parts(longer, 0, listed);
  CHECK(longer.tensors[0].view.axis[0].count() == listed.parts.count);
  CHECK(longer.tensors[0].view.axis[0][0].stride == 1536);
  // What the parts are added up along is not what they are sequences of: all have as many.
  as_it_was.tensors[0].view.axis[0] = dims{{6, 1536}};
  take_parts(as_it_was, 0, listed);
  CHECK(listed.parts.count == 0);
  CHECK(as_it_was.tensors[0].view.axis[0].count() == 6 * listed.pieces);
  for (const auto [batch, steps, lanes] :
       {std::array<std::int64_t, 3>{0, 8192, 64}, {4, 8192, 0}, {4, 0, 64}, {1, 1, 1}})
    CHECK(plan(batch, steps, lanes).pieces == 1);
}

TEST_CASE("parts of a list come one after the other, and get shorter", "[pass][cuda]") {
  using detail::graded_parts;
  CHECK(graded_parts(128, 1, 12, 264, 64).count == 0);  // a block has one
  constexpr part_list theta = graded_parts(128, 12, 12, 264, 64);
  STATIC_REQUIRE(theta.count_of_grades == 4);
  STATIC_REQUIRE(theta[0] == part_list::part{0, 0, 24 * 64});
  STATIC_REQUIRE(theta[theta.count - 1].length == 3 * 64);
  for (const std::int64_t tiles : {1, 2, 7, 30, 128, 1001})
    for (const std::int64_t sequences : {1, 2, 5, 12, 97})
      for (const std::int64_t strips : {1, 3, 200})
        for (const std::int64_t resident : {1, 2, 264}) {
          CAPTURE(tiles, sequences, strips, resident);
          const part_list list = graded_parts(tiles, sequences, strips, resident, 8);
          CHECK((list.count == 0 || list[0].length <= 8 * tiles));
          if (list.count == 0) {
            // Few tiles of a block; or of a lane; or of so many strips that a block's last tile is a share of
            // one.
            CHECK((tiles == 1 ||
                   tiles * sequences * strips <= (cuda_part_policy::most_tiles + 1) * resident ||
                   std::min<std::int64_t>(tiles, cuda_part_policy::most_tiles) * resident < 2 * strips));
            continue;
          }
          std::int32_t number = 0;
          std::int64_t last = list[0].length;
          bool in_order = true, shorter = true;
          for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
            in_order = in_order && list.before(sequence) == number;
            for (std::int64_t at = 0; at < 8 * tiles; at += last) {
              const part_list::part next = list[number++];
              in_order = in_order && next.sequence == sequence && next.begin == at;
              shorter = shorter && next.length <= last && next.length > 0;
              last = next.length;
            }
          }
          CHECK(in_order);
          CHECK(shorter);
          CHECK(list.before(sequences) == number);
          CHECK(list.count == number);
        }
}

TEST_CASE("what is computed once for all steps is computed once where there are blocks enough",
          "[pass][cuda]") {
  const auto pieces = [](std::int64_t lanes, std::int64_t steps) {
    const program& p = kernel_program<weighted, 0>;
    problem bound = unbound_problem(p);
    const auto bind = [&](const char* id, int rank, const dims& first, const dims& second) {
      bound.tensors[static_cast<std::size_t>(p.find_tensor(make_name(id)))] = {
          true, {nullptr, dtype::bfloat16, true, rank, {first, second}}};
    };
    for (const char* id : {"x", "y"}) bind(id, 2, {{steps, lanes}}, {{lanes, 1}});
    bind("w", 1, {{lanes, 1}}, {});
    const cuda_kernel_plan plan =
        plan_cuda_kernel(p, kernel_table<weighted, 0>, bound, make_iteration_space(p, bound),
                         {8, 8, 128, 8, 4, 1, false, false, 4, false}, {});
    CHECK(plan.arrangement == cuda_arrangement::strip);
    if (plan.chunk_dimension < 0) return std::int64_t{1};
    return plan.nest.lanes[static_cast<std::size_t>(plan.chunk_dimension)].extent;
  };
  CHECK(pieces(1 << 24, 20) == 1);
  CHECK(pieces(1024, 8) == 1);
  CHECK(pieces(1024, 8000) == 1000);  // one block of lanes: cut wherever a tile ends
  const std::int64_t some = pieces(1 << 20, 8000);
  CHECK((some > 1 && some < 10));  // 1024 blocks of lanes
}

TEST_CASE("chunks become lanes where nothing runs through them", "[pass][cuda]") {
  const cuda_kernel_plan folded = plan_for<summed>({{4, 300 * 64}, {64, 1}}, {{300, 64}}, 128);
  REQUIRE(folded.chunk_dimension >= 0);
  CHECK(folded.chunk == 128);
  CHECK(folded.nest.lanes[static_cast<std::size_t>(folded.chunk_dimension)].extent ==
        3);  // the last one is short
  CHECK(lanes_in(folded.nest.lanes) == 4 * 64 * 3);
  CHECK(folded.nest.lanes.back().extent == 64);
  // A last value, or packed sequences, need the walk to go on.
  CHECK(plan_for<with_last>({{4, 300 * 64}, {64, 1}}, {{300, 64}}, 128).chunk_dimension == -1);
  CHECK(plan_for<summed>({{4, 300 * 64}, {64, 1}}, {{300, 64}}, 128, 5).chunk_dimension == -1);
  CHECK(plan_for<summed>({{4, 300 * 64}, {64, 1}}, {{300, 64}}, 300).chunk == 0);  // one chunk is none
}

TEST_CASE("packed sequences are blocks of their own", "[pass][cuda]") {
  const cuda_kernel_plan plan = plan_for<with_last>({{4, 1000}}, {{1000, 1}}, 0, 7);
  CHECK(plan.packed);
  CHECK(plan.segments == 7);
  // Of their rows, which are long or short, each has a warp at least: shorter ones do not walk.
  CHECK(plan_for<summed>({{4, 16}}, {{16, 1}}, 0, 7).lane_threads == 32);
}

TEST_CASE("few rows look back, where the program and the kernels can", "[pass][cuda]") {
  const dims one{{1, 1 << 24}}, steps{{1 << 24, 1}};
  const cuda_kernel_plan row = plan_for<summed>(one, steps, 0, 0, true);
  constexpr int tile = cuda_lookback_policy::threads * 8 * 4;
  CHECK(row.lane_threads == cuda_lookback_policy::threads);
  CHECK(row.lookback_tiles == (1 << 24) / tile);
  // Long chunks are lanes; each has its tiles.
  CHECK(plan_for<summed>(one, steps, 1 << 20, 0, true).lookback_tiles == (1 << 20) / tile);
  CHECK(plan_for<summed>(one, steps, 0, 0, false).lookback_tiles == 0);  // no such kernel
  const auto tiles = [&](std::int64_t rows, std::int64_t length, const cuda_device& device = {}) {
    return plan_for<summed>({{rows, length}}, {{length, 1}}, 0, 0, true, false, device).lookback_tiles;
  };
  // Few tiles are walked before a look-back has begun; of more rows, more.
  CHECK(tiles(1, 5 * tile) == 0);
  CHECK(tiles(1, 6 * tile) == 6);
  CHECK(tiles(64, 8 * tile) == 0);
  CHECK(tiles(64, 20 * tile) == 20);
  CHECK(tiles(110, 1 << 20) == 0);  // which keep most multiprocessors busy
  cuda_device at_once;
  at_once.tiles_of_lookback_start = 0;
  CHECK(tiles(1, 2 * tile, at_once) == 2);
  CHECK(tiles(1, tile, at_once) == 0);
  CHECK(plan_for<with_last>(one, steps, 1 << 20, 0, true).lookback_tiles == 0);  // restarts within the walk
  CHECK(plan_for<summed>(one, steps, 0, 3, true).lookback_tiles == 0);           // packed sequences
}

TEST_CASE("few lanes side by side are cut into pieces for all multiprocessors", "[pass][cuda]") {
  const auto pieces = [](std::int64_t lanes, std::int64_t steps, double chunk_size = 0, bool kernels = true) {
    return plan_for<summed>({{lanes, 1}}, {{steps, lanes}}, chunk_size, 0, kernels);
  };
  // Threads of a block side by side, and tiles of all of its threads, of which pieces are made.
  const cuda_kernel_plan one = pieces(64, 1 << 20);
  const std::int64_t unit = cuda_piece_policy::threads / 8 * 8;
  CHECK(one.lane_threads == 8);  // 64 lanes of 2 bytes: one line of memory
  CHECK(one.lookback_tiles == 0);
  CHECK(one.piece % unit == 0);
  CHECK(one.pieces == ((1 << 20) + one.piece - 1) / one.piece);
  CHECK(one.pieces > 120);
  CHECK(one.pieces <= 132);
  // Several strips share them; where they do not divide, rounds of blocks are more even than one.
  CHECK(pieces(1024, 1 << 16).pieces == 8);
  const cuda_kernel_plan uneven = pieces(70 * 64, 1 << 20);
  CHECK(uneven.pieces > 2);
  const std::int64_t uneven_blocks = 70 * uneven.pieces;
  CHECK(10 * uneven_blocks > 9 * 132 * ((uneven_blocks + 131) / 132));
  // Long chunks are lanes, each of which is cut.
  CHECK(pieces(64, 1 << 20, 1 << 18).pieces > 30);
  CHECK(pieces(64, 1 << 20, 1 << 18).chunk_dimension >= 0);
  CHECK(pieces(64, 1 << 20, 0, false).pieces == 1);  // no such kernel
  CHECK(plan_for<summed>({{64, 1}}, {{1 << 20, 64}}, 0, 0, true, false, {132, 16, 1000}).pieces == 1);
  CHECK(pieces(64, unit).pieces == 1);               // not more than one
  CHECK(pieces(132 * 64 + 1, 1 << 16).pieces == 1);  // lanes enough
  CHECK(plan_for<with_last>({{64, 1}}, {{100000, 64}}, 1000, 0, true).pieces ==
        1);                                                                    // restarts within the walk
  CHECK(plan_for<summed>({{64, 1}}, {{100000, 64}}, 0, 3, true).pieces == 1);  // packed sequences
}

TEST_CASE("few lanes of several sweeps are cut into pieces of whole tiles", "[pass][cuda]") {
  cuda_tile_shape shape{8, 8, 256, 8, 4};
  shape.idle_of_rows = 4;
  shape.idle_of_strips = 16;
  const auto pieces = [&](const dims& along_b, const dims& along_n, double chunk_size = 0,
                          std::int64_t sequences = 0) {
    return plan_for<summed>(along_b, along_n, chunk_size, sequences, shape);
  };
  const std::int64_t tile = 256 * 32;
  const cuda_kernel_plan row = pieces({{1, 1 << 24}}, {{1 << 24, 1}});
  CHECK(row.piece % tile == 0);
  CHECK(row.pieces == ((1 << 24) + row.piece - 1) / row.piece);
  CHECK(row.pieces > 200);
  CHECK(row.pieces <= 264);  // two for each multiprocessor
  const cuda_kernel_plan strip = pieces({{64, 1}}, {{1 << 20, 64}});
  CHECK(strip.piece % (256 / strip.lane_threads * 8) == 0);
  CHECK(strip.pieces > 200);
  CHECK(pieces({{33, 1 << 20}}, {{1 << 20, 1}}).pieces == 8);
  CHECK(pieces({{34, 1 << 20}}, {{1 << 20, 1}}).pieces == 1);  // lanes enough
  CHECK(pieces({{1, tile}}, {{tile, 1}}).pieces == 1);         // one tile
  CHECK(pieces({{1, 1}}, {{0, 1}}).pieces == 1);               // none
  CHECK(pieces({{1, 1 << 20}}, {{1 << 20, 1}}, 5000).pieces == 1);
  CHECK(pieces({{1, 1 << 20}}, {{1 << 20, 1}}, 0, 3).pieces == 1);
  CHECK(pieces({{8 * 64, 1}}, {{1 << 17, 8 * 64}}).pieces > 1);
  CHECK(pieces({{9 * 64, 1}}, {{1 << 17, 9 * 64}}).pieces == 1);
  shape.idle_of_rows = 0;
  CHECK(pieces({{1, 1 << 24}}, {{1 << 24, 1}}).pieces == 1);
}

TEST_CASE("without scans tiles are independent of each other", "[pass][cuda]") {
  const cuda_kernel_plan plan = plan_for<doubled>({{3, 100000}}, {{100000, 1}});
  CHECK(plan.arrangement == cuda_arrangement::row);
  REQUIRE(plan.chunk_dimension >= 0);
  CHECK(lanes_in(plan.nest.lanes) * plan.chunk >= 300000);
}

TEST_CASE("a select on a flag moves below the functions that both sides share", "[pass]") {
  constexpr auto scanned = scan(log_add_exp, over(n).exclusive(flag), x(b, n));
  static constexpr program p = op<"either">(out<"y">(b, n) = scanned);
  const program kernel = prepare(p);
  const auto count = [&](auto matches) {
    return std::count_if(kernel.nodes.begin(), kernel.nodes.end(), matches);
  };
  CHECK(count([](const node& each) { return is_apply<primitive::log_op>(each); }) == 1);
  // Of a condition on values it is left where it stands: the two sides may share nothing worth it.
  static constexpr program q =
      op<"clipped">(out<"y">(b, n) = select(x(b, n) > 0.0, exp(x(b, n)), exp(-x(b, n))));
  CHECK(sink_selects(q) == q);
}

TEST_CASE("what a flag chose is what it chooses once more", "[pass]") {
  // As in the gradient of a decay that may be given as a logarithm.
  constexpr auto chosen = select(flag != 0.0, exp(w(n)), w(n));
  static constexpr program p =
      op<"scaled">(out<"y">(b, n) = x(b, n) + chosen,
                   out<"z">(b, n) = select(flag != 0.0, x(b, n) * x(b, n) * exp(w(n)), x(b, n) * x(b, n)));
  const program q = sink_selects(p);
  const auto users_of_exponentials = [](const program& of) {
    std::vector<node> users;
    for (const node& each : of.nodes)
      for (const node_id operand : each.operand)
        if (operand != no_node && is_apply<primitive::exp_op>(of.nodes[operand])) users.push_back(each);
    return users;
  };
  REQUIRE(users_of_exponentials(p).size() == 2);
  const std::vector<node> users = users_of_exponentials(q);
  REQUIRE(users.size() == 1);
  CHECK(is_apply<primitive::select_op>(users[0]));
  // x * x is computed on either side: though both are products the choice stays outside, one for z.
  const auto selects = std::count_if(q.nodes.begin(), q.nodes.end(),
                                     [](const node& each) { return is_apply<primitive::select_op>(each); });
  CHECK(selects == 2);
  CHECK(is_apply<primitive::select_op>(q.nodes[q.stores[1].value]));
  // What else would be chosen may vary along more axes, or be known later.
  static constexpr program wider =
      op<"wider">(out<"y">(b, n) = x(b, n) * select(flag != 0.0, exp(w(n)), x(b, n)),
                  out<"z">(n) = select(flag != 0.0, 2.0 * exp(w(n)), w(n)));
  const program narrow = sink_selects(wider);
  CHECK(narrow.nodes[narrow.stores[1].value].axes == axis_bit(narrow.find_axis(n.id)));
  // On the other side nothing is known.
  static constexpr program other = op<"other">(
      out<"y">(b, n) = x(b, n) + chosen, out<"z">(b, n) = select(flag != 0.0, x(b, n), x(b, n) * exp(w(n))));
  CHECK(users_of_exponentials(sink_selects(other)).size() == 2);
}

TEST_CASE("lanes are numbered by the names of their axes, whatever the strides", "[pass][cuda]") {
  // Axis b of two dimensions, and of one; n is walked.
  const auto numbers = [](const dims& along_b) {
    const program& p = kernel_program<summed, 0>;
    problem bound = unbound_problem(p);
    for (const char* id : {"x", "y"}) {
      bound_tensor& t = bound.tensors[static_cast<std::size_t>(p.find_tensor(make_name(id)))];
      t.bound = true;
      t.view = {nullptr, dtype::bfloat16, true, 2, {along_b, dims{{10, 2000}}}};
    }
    iteration_space space = make_iteration_space(p, bound);
    REQUIRE(detail::number_lanes(p, kernel_table<summed, 0>, space) == 600);
    const loop_nest nest = make_nest(p, kernel_table<summed, 0>, space);
    const auto number = static_cast<std::size_t>(p.tensors.count);
    // Where memory has offset o, and the lane's number there.
    std::vector<std::pair<std::int64_t, std::int64_t>> found{{0, 0}};
    for (const dimension& d : nest.lanes) {
      std::vector<std::pair<std::int64_t, std::int64_t>> next;
      for (const auto& [offset, at] : found)
        for (std::int64_t i = 0; i < d.extent; ++i)
          next.push_back({offset + i * d.stride[static_cast<std::size_t>(p.find_tensor(make_name("x")))],
                          at + i * d.stride[number]});
      found = next;
    }
    std::sort(found.begin(), found.end());
    std::vector<std::int64_t> in_memory;
    for (const auto& each : found) in_memory.push_back(each.second);
    return in_memory;
  };
  std::vector<std::int64_t> counted(600);
  for (std::size_t i = 0; i < 600; ++i) counted[i] = static_cast<std::int64_t>(i);
  CHECK(numbers({{600, 1}}) == counted);
  CHECK(numbers({{3, 20000}, {200, 1}}) == counted);
  std::vector<std::int64_t> transposed;
  for (std::int64_t inner = 0; inner < 200; ++inner)
    for (std::int64_t outer = 0; outer < 3; ++outer) transposed.push_back(outer * 200 + inner);
  CHECK(numbers({{3, 1}, {200, 3}}) == transposed);
}

TEST_CASE("strips of more than one interval keep carries, and rows of several tiles", "[pass][cuda]") {
  const program& p = kernel_program<summed, 0>;
  const cuda_tile_shape shape{8, 8, 256, 8, 4, 1, false, false, 4, false, 4, 2000, 2000, 4};
  const auto keeps = [&](const dims& along_b, const dims& along_n, double chunk_size = 0,
                         std::int64_t sequences = 0) {
    return keeps_carries(p, plan_for<summed>(along_b, along_n, chunk_size, sequences), shape, false);
  };
  CHECK(keeps({{2048, 1}}, {{8192, 2048}}));
  CHECK(keeps({{2048, 1}}, {{65, 2048}}));
  CHECK_FALSE(keeps({{2048, 1}}, {{64, 2048}}));  // the carry before step 0 is known
  CHECK(keeps({{96, 8193}}, {{8193, 1}}));
  CHECK_FALSE(keeps({{96, 8192}}, {{8192, 1}}));          // one tile
  CHECK_FALSE(keeps({{96, 9000}}, {{9000, 1}}, 100));     // chunks are rows
  CHECK_FALSE(keeps({{96, 9000}}, {{9000, 1}}, 0, 3));    // packed sequences
  CHECK_FALSE(keeps({{2048, 1}}, {{8192, 2048}}, 100));   // restarts
  CHECK_FALSE(keeps({{2048, 1}}, {{8192, 2048}}, 0, 3));  // packed sequences
  CHECK(carry_bytes(64, 65, 100, 2, 4) == 2 * 100 * 2 * 4);
  CHECK(carry_bytes(64, 128, 100, 1, 8) == 2 * 100 * 8);
}
