#include "scandsl/exec/cuda/plan.cuh"

#include "../ops/decayed_sum/gradient_program.hpp"
#include "../ops/lrpe_cosine/gradient_program.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"

// What needs no GPU: how programs would run on one. There is no kernel in it, so that nvcc's pass over the
// device's code, which takes as long as the two others together, has nothing to read.
#ifndef __CUDA_ARCH__
namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"dy"> dy;
constexpr tensor<"dx"> dx;

constexpr cuda_device h200{132};

inline constexpr auto rows = op<"rows">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n)));
inline constexpr auto drows = gradient(rows);
inline constexpr auto columns = op<"columns">(out<"y">(b, n, d) = scan(log_add_exp, over(n), x(b, n, d)));
inline constexpr auto dcolumns = gradient(columns);
inline constexpr auto softmax_along_columns =
    op<"softmax_along_columns">(out<"y">(b, n, d) = softmax(over(n), x(b, n, d)));
inline constexpr program columns_along_rows = along_rows(columns);
// [doc:along-rows]
inline constexpr program normalised =
    along_rows(op<"normalised">(out<"y">(b, n) = softmax(over(n), x(b, n))));
// [/doc:along-rows]

// [doc:gradient]
const cuda_plan planned =
    plan<dcolumns>(h200, x = shape<bfloat16>(12, 8192, 2048), dy = shape<bfloat16>(12, 8192, 2048),
                   dx = shape<bfloat16>(12, 8192, 2048));
// [/doc:gradient]

constexpr tensor<"scale"> scale;
constexpr tensor<"shift"> shift;
constexpr tensor<"dscale"> dscale;
// [doc:contiguous-along]
inline constexpr program weighted_gradient = contiguous_along(
    gradient(op<"weighted">(out<"y">(b, n, d) = softmax(over(d), x(b, n, d)) * scale(n, d))), d);
// [/doc:contiguous-along]
inline constexpr program rows_as_strips = contiguous_along(rows, b);
inline constexpr auto scaled =
    op<"scaled">(out<"y">(b, n) = scale(b) * scan(plain_sum, over(n), x(b, n)) + shift(b));

constexpr axis<"h"> h;
constexpr tensor<"theta"> theta;
// [doc:rotation]
inline constexpr auto encoded =
    op<"encoded">(out<"y">(b, n, h, d) = x(b, n, h, d) * cos_of_product(index(n), theta(h, d)));
// [/doc:rotation]
// [doc:shared-rows]
inline constexpr auto encoded_shares = op<"encoded_shares">(
    out<"y">(b, n, h, d) = softmax(over(d), x(b, n, h, d)) * cos_of_product(index(n), theta(h, d)));
// [/doc:shared-rows]
inline constexpr auto encoded_silu_shares =
    op<"encoded_silu_shares">(out<"y">(b, n, h, d) = softmax(over(d), silu(x(b, n, h, d))));

inline constexpr auto centred = op<"centred">(
    out<"y">(b, n) = x(b, n) - last(scan(plain_sum, over(b), scan(plain_sum, over(n), x(b, n)))));

constexpr tensor<"a"> a;
constexpr tensor<"c"> c;
inline constexpr auto quotients =
    op<"quotients">(out<"y">(b, n, d) = scan(log_add_exp, over(n), x(b, n, d)) * (a(b, n, d) / c(b, n, d)));
inline constexpr auto dquotients = gradient(quotients, x);
inline constexpr auto optional_columns =
    op<"optional_columns">(out<"y">(b, n, d) = scan(log_add_exp, over(n), value_or(x(b, n, d), 0.0)));
inline constexpr auto doptional_columns = gradient(optional_columns);
template <const program& P> using framed = cuda_detail::framed_group<P, 0>;

inline constexpr auto faded =
    op<"faded">(out<"y">(b, n, d) = scan(decayed_sum, over(n), exp(-square(a(d))), x(b, n, d)));
inline constexpr auto total = op<"total">(out<"y">(b, d) = sum(over(n), x(b, n, d)));
inline constexpr auto total_of_all = op<"total_of_all">(out<"y">(d) = sum(over(b), sum(over(n), x(b, n, d))));

constexpr axis<"m"> m;
inline constexpr auto total_of_three =
    op<"total_of_three">(out<"y">(d) = sum(over(b), sum(over(n), sum(over(m), x(b, n, m, d)))));

constexpr std::int64_t unit = std::int64_t{12} * 8192 * 2048 * 2;

}  // namespace

TEST_CASE("a gradient of rows that fit into a tile reads its inputs once and saves nothing", "[cuda][plan]") {
  const auto p = plan<drows>(h200, x = shape<bfloat16>(98304, 2048), dy = shape<bfloat16>(98304, 2048),
                             dx = shape<bfloat16>(98304, 2048));
  REQUIRE(p.kernels.size() == 1);
  CHECK(p.kernels[0].one_tile);
  CHECK(p.floor_bytes == 3 * unit);
  CHECK(p.moved_bytes == p.floor_bytes);
  CHECK(p.workspace_bytes == 0);
  // So it does of rows that a cluster holds, where that takes no longer than to read them twice.
  const auto of_clusters = [](std::int64_t steps, std::int64_t count = 64) {
    const auto all = shape<bfloat16>(count, steps);
    return plan<drows>(h200, x = all, dy = all, dx = all);
  };
  for (const std::int64_t steps : {16384, 65536, 131072}) {
    CHECK(of_clusters(steps).moved_bytes == of_clusters(steps).floor_bytes);
    CHECK(of_clusters(steps).workspace_bytes == 0);
  }
  CHECK(of_clusters(32768, 1024).moved_bytes == of_clusters(32768, 1024).floor_bytes);
  for (const auto& [steps, count] : {std::pair{262145, 64}, {98304, 1024}}) {
    CHECK(of_clusters(steps, count).moved_bytes > of_clusters(steps, count).floor_bytes);
    CHECK(of_clusters(steps, count).workspace_bytes > 0);
  }
}

TEST_CASE("of longer lanes it saves a carry for every tile of 64 steps or more, and reads x twice",
          "[cuda][plan]") {
  REQUIRE(planned.kernels.size() == 1);
  CHECK_FALSE(planned.kernels[0].one_tile);
  CHECK(planned.workspace_bytes > 0);
  CHECK(planned.kernels[0].tile_steps >= 64);
  CHECK(planned.workspace_bytes <= unit / 64 * 2);  // a number of 32 bits
  CHECK(planned.moved_bytes == 4 * unit + 2 * planned.kernels[0].sweeps[0].saved_bytes);
  CHECK(planned.kernels[0].sweeps[1].computed_again == std::vector<int>{0});
}

TEST_CASE("explain states what is saved, what is computed again and what is moved", "[cuda][plan][explain]") {
  const std::string text = explain(planned);
  CAPTURE(text);
  for (const char* part :
       {"dcolumns on a GPU of 132 multiprocessors", "walks n, 8192 steps of 24576 lanes",
        "saves its carry at every tile", "backward, 2 operands read, 1 written", "sweep 1 computed again",
        "floor (inputs once, outputs once) 1.12 GiB", "workspace"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("explain states the carries that a scan can leave and its gradient find", "[cuda][plan][explain]") {
  const auto scan_of =
      plan<columns>(h200, x = shape<bfloat16>(12, 8192, 2048), y = shape<bfloat16>(12, 8192, 2048));
  CHECK(scan_of.carry_bytes == unit / 32);
  CHECK(planned.carry_bytes == scan_of.carry_bytes);
  CHECK(explain(scan_of).find("can leave carries for its gradient, 12.00 MiB") != std::string::npos);
  // A gradient that finds them reads x and dy once and writes dx: three units and the carries.
  CHECK(moved_with_carries(planned) == 3 * unit + planned.carry_bytes);
  CHECK(planned.workspace_with_carries == 0);
  const std::string text = explain(planned);
  CAPTURE(text);
  CHECK(
      text.find("; with carries that the scan left, 12.00 MiB, no workspace, and no first sweep: moves 1.14 "
                "GiB\n") != std::string::npos);
  CHECK(text.find("  peak memory, beside the inputs: outputs 384.00 MiB + workspace ") != std::string::npos);
  CHECK(explain(scan_of).find(
            "outputs 384.00 MiB + workspace 1.50 KiB; + 12.00 MiB where it leaves carries\n") !=
        std::string::npos);
  // One tile, look-back, pieces; and a program of two sweeps that is no gradient.
  CHECK(plan<rows>(h200, x = shape<bfloat16>(98304, 2048), y = shape<bfloat16>(98304, 2048)).carry_bytes ==
        0);
  CHECK(plan<rows>(h200, x = shape<float>(1, 1 << 28), y = shape<float>(1, 1 << 28)).carry_bytes == 0);
  CHECK(plan<columns>(h200, x = shape<bfloat16>(1, 1 << 20, 64), y = shape<bfloat16>(1, 1 << 20, 64))
            .carry_bytes == 0);
  CHECK(plan<softmax_along_columns>(h200, x = shape<bfloat16>(12, 8192, 2048),
                                    y = shape<bfloat16>(12, 8192, 2048))
            .carry_bytes == 0);
}

TEST_CASE("strips of a sequence keep pace where all of them are on the device", "[cuda][plan][explain]") {
  const auto scan_of = [](std::int64_t outer, std::int64_t steps, std::int64_t inner) {
    return plan<columns>(h200, x = shape<bfloat16>(outer, steps, inner),
                         y = shape<bfloat16>(outer, steps, inner));
  };
  const auto paced = [&](std::int64_t outer, std::int64_t steps, std::int64_t inner) {
    const cuda_plan of = scan_of(outer, steps, inner);
    const int strips = of.kernels[0].paced_strips;
    if (strips > 0) CHECK(of.workspace_bytes == (outer * 128 + 255) / 256 * 256);
    return strips;
  };
  CHECK(paced(12, 8192, 2048) == 32);
  CHECK(paced(12, 2048, 2048) == 32);
  CHECK(paced(12, 2047 - 128, 2048) == 0);  // 15 tiles
  CHECK(paced(6, 8192, 2048) == 64);        // narrow ones
  CHECK(paced(4, 8192, 2048) == 0);         // 256, of 132 multiprocessors
  CHECK(paced(13, 8192, 2048) == 0);        // 416, where 396 have room
  CHECK(paced(300, 8192, 64) == 0);         // one strip each
  CHECK(paced(12, 8192, 2047) == 0);        // which strips do not fill
  CHECK(explain(scan_of(12, 8192, 2048)).find(" side by side, 32 strips in step, tiles of ") !=
        std::string::npos);
  CHECK(planned.kernels[0].paced_strips == 0);  // a gradient that reads two
}

TEST_CASE("rows of several tiles leave carries, too, with which a gradient is walked",
          "[cuda][plan][explain]") {
  const auto scan_of = [](std::int64_t rows_there) {
    return plan<rows>(h200, x = shape<bfloat16>(rows_there, 65536), y = shape<bfloat16>(rows_there, 65536));
  };
  const auto gradient_of = [](std::int64_t rows_there) {
    const auto all = shape<bfloat16>(rows_there, 65536);
    return plan<drows>(h200, x = all, dy = all, dx = all);
  };
  const std::int64_t bytes = std::int64_t{6144} * 65536 * 2;
  const auto many = gradient_of(6144);
  CHECK(scan_of(6144).carry_bytes == bytes / 256);  // a number of 32 bits for 512 of 16
  CHECK(many.carry_bytes == scan_of(6144).carry_bytes);
  CHECK(moved_with_carries(many) == 3 * bytes + many.carry_bytes);
  CHECK(many.workspace_with_carries == 0);
  // Of few rows a cluster holds each.
  CHECK(gradient_of(64).kernels[0].plan.clustered);
  CHECK(gradient_of(64).carry_bytes == 0);
  // Rows of a warp are one tile, though longer ones are walked by smaller tiles.
  namespace decayed = ops::decayed_sum_program;
  using ops::names::decay, ops::names::exclusive, ops::names::reverse;
  const auto of_elements = [](std::int64_t steps) {
    const auto all = shape<bfloat16>(98304, steps);
    return plan<decayed::gradient_per_element>(h200, x = all, decay = all, dy = all, dx = all,
                                               tensor<"ddecay">{} = all, decayed::log_decay = false,
                                               reverse = false, exclusive = false);
  };
  CHECK(of_elements(1024).kernels[0].one_tile);
  CHECK(of_elements(1024).carry_bytes == 0);
  CHECK(of_elements(16384).carry_bytes == std::int64_t{98304} * 32 * 4);
}

TEST_CASE("terms that vanish where a tile has no steps need no mask, and others are not taken for such",
          "[cuda]") {
  using cuda_detail::vanishes;
  STATIC_REQUIRE(vanishes<framed<dcolumns>, 0>);            // exp(-inf)
  STATIC_REQUIRE(vanishes<framed<dcolumns>, 1>);            // dy / sum, with dy = 0
  STATIC_REQUIRE(!vanishes<framed<dquotients>, 1>);         // dy (a / c), with c = 0
  STATIC_REQUIRE(!vanishes<framed<doptional_columns>, 0>);  // exp(fallback)
}

TEST_CASE("a sum of what a scan gives is added up on the way, and no fold has it", "[cuda][plan][explain]") {
  namespace decayed = ops::decayed_sum_program;
  using ops::names::decay, ops::names::exclusive, ops::names::reverse;
  constexpr tensor<"ddecay"> ddecay;
  using of_lane = cuda_detail::kernel_group<decayed::gradient_per_lane, 0>;
  using of_element = cuda_detail::kernel_group<decayed::gradient_per_element, 0>;
  CHECK(cuda_detail::has_tallies<of_lane, 1>);
  CHECK_FALSE(cuda_detail::has_tallies<of_lane, 0>);
  CHECK_FALSE(cuda_detail::has_tallies<of_element, 1>);
  // The schedule, which pieces on the CPU follow, folds the sum behind the scan.
  CHECK(of_lane::plan.rounds[1] == 2);
  CHECK(cuda_detail::rounds_of<of_lane, 1> == 1);
  CHECK(cuda_detail::component_capacity<of_lane> == 2);  // a decay and a sum; the tally has one
  const auto per_lane = plan<decayed::gradient_per_lane>(
      h200, x = shape<bfloat16>(1, 4096, 8192), decay = shape<bfloat16>(1),
      dy = shape<bfloat16>(1, 4096, 8192), dx = shape<bfloat16>(1, 4096, 8192), ddecay = shape<bfloat16>(1),
      decayed::log_decay = false, reverse = false, exclusive = false);
  CHECK(explain(per_lane).find("1 sum added up on the way") != std::string::npos);
  // What its lanes leave, one kernel adds up, over lanes and over the one sequence: along an inner axis.
  CHECK(per_lane.kernels.size() == 2);
  CHECK(per_lane.kernels.back().adds_at_once);
  const auto packed = plan<decayed::gradient_per_lane>(
      h200, x = shape<bfloat16>(1, 4096, 8192), decay = shape<bfloat16>(1),
      dy = shape<bfloat16>(1, 4096, 8192), dx = shape<bfloat16>(1, 4096, 8192), ddecay = shape<bfloat16>(1),
      ops::names::cu_seqlens = shape<std::int32_t>(4), decayed::log_decay = false, reverse = false,
      exclusive = false);
  CHECK(packed.kernels.size() == 3);
}

TEST_CASE("few long rows are planned as a look-back", "[cuda][plan][explain]") {
  const auto p = plan<rows>(h200, x = shape<float>(1, 1 << 28), y = shape<float>(1, 1 << 28));
  CHECK(p.kernels[0].plan.lookback_tiles > 1000);
  CHECK(explain(p).find("look-back") != std::string::npos);
  CHECK(p.moved_bytes == p.floor_bytes);
}

TEST_CASE("few lanes side by side are planned in pieces, read twice", "[cuda][plan][explain]") {
  const auto p =
      plan<columns>(h200, x = shape<bfloat16>(1, 1 << 20, 64), y = shape<bfloat16>(1, 1 << 20, 64));
  CHECK(p.kernels[0].plan.pieces > 100);
  const std::string text = explain(p);
  CAPTURE(text);
  CHECK(text.find("pieces of 8192 steps of each lane") != std::string::npos);
  CHECK(2 * p.moved_bytes == 3 * p.floor_bytes);
}

TEST_CASE("few lanes of a gradient are planned in pieces, each sweep twice", "[cuda][plan][explain]") {
  const auto p = plan<dcolumns>(h200, x = shape<bfloat16>(1, 1 << 20, 64),
                                dy = shape<bfloat16>(1, 1 << 20, 64), dx = shape<bfloat16>(1, 1 << 20, 64));
  CHECK(p.kernels[0].plan.pieces > 200);
  const std::string text = explain(p);
  CAPTURE(text);
  CHECK(text.find("pieces of") != std::string::npos);
  CHECK(p.carry_bytes > 0);  // where a scan without a workspace has left them
  // x twice, then x and dy twice, and dx: 7 in place of 3, and the carries between tiles.
  CHECK(3 * p.moved_bytes > 7 * p.floor_bytes);
  CHECK(2 * p.moved_bytes < 5 * p.floor_bytes);
  // As long as that is faster than a walk of narrow strips: 192 of 32 bytes are enough for one.
  const auto planned_for = [](int lanes) {
    return plan<dcolumns>(h200, x = shape<bfloat16>(1, 65536, lanes), dy = shape<bfloat16>(1, 65536, lanes),
                          dx = shape<bfloat16>(1, 65536, lanes))
        .kernels[0];
  };
  CHECK(planned_for(32 * 64).plan.pieces > 1);
  CHECK(planned_for(48 * 64).plan.pieces == 1);
  CHECK(planned_for(48 * 64).tile_steps == 256);
  CHECK(planned_for(128 * 64).tile_steps == 128);
  CHECK(planned_for(256 * 64).tile_steps == 64);
}

TEST_CASE("reductions of lanes side by side are planned in parts, read once", "[cuda][plan][explain]") {
  const auto planned_for = [](std::int64_t lanes, std::int64_t steps) {
    return plan<total>(h200, x = shape<bfloat16>(12, steps, lanes), y = shape<bfloat16>(12, lanes));
  };
  const auto p = planned_for(1536, 8192);
  const std::string text = explain(p);
  CAPTURE(text);
  CHECK(
      text.find("82 parts of 2176 to 384 steps of all lanes, shorter ones towards the end, reduced and then "
                "joined") != std::string::npos);
  CHECK(p.moved_bytes == p.floor_bytes);
  CHECK(p.kernels[0].plan.side == 1536 / 8);
  CHECK(planned_for(1536, 64).kernels[0].plan.pieces == 1);  // a tile
  const cuda_kernel_plan few = planned_for(64, 1 << 22).kernels[0].plan;
  CHECK((few.parts.count > 12 * 128 && few.parts.count <= 12 * 1024));  // of 12, a block each adds them up
  CHECK(explain(planned_for(1536, 2048)).find(" steps of each lane, reduced and then joined") !=
        std::string::npos);
  CHECK(planned_for(40, 8192).kernels[0].plan.side == 12 * 40 / 8);  // else most of a block were idle
}

TEST_CASE("parts of sums that another kernel adds up are not joined before", "[cuda][plan][explain]") {
  const auto planned_for = [](std::int64_t features) {
    return plan<total_of_all>(h200, x = shape<bfloat16>(12, 8192, features), y = shape<float>(features));
  };
  const auto p = planned_for(1536);
  const std::string text = explain(p);
  CAPTURE(text);
  REQUIRE(p.kernels.size() == 2);
  CHECK(
      text.find("82 parts of 2176 to 384 steps of all lanes, shorter ones towards the end, reduced and then "
                "added up by a later kernel") != std::string::npos);
  CHECK(p.kernels[1].read_bytes == std::int64_t{82} * 1536 * 4);
  CHECK(p.kernels[0].written_bytes == p.kernels[1].read_bytes);
  CHECK(explain(planned_for(1532)).find("reduced and then joined") != std::string::npos);  // ends in vectors
}

TEST_CASE("what a kernel would only have added up is added up at once along an axis one long",
          "[cuda][plan]") {
  const auto planned_for = [](std::int64_t count) {
    return plan<total_of_three>(h200, x = shape<float>(count, 4000, 100, 24), y = shape<float>(24));
  };
  const auto one = planned_for(1), two = planned_for(2);
  REQUIRE(one.kernels.size() == 2);
  REQUIRE(two.kernels.size() == 3);
  const std::string said = "adds up at once what a kernel before it would have added up";
  CHECK(explain(one).find(said) != std::string::npos);
  CHECK(explain(two).find(said) == std::string::npos);
  CHECK(one.kernels[1].read_bytes == one.kernels[0].written_bytes);
  CHECK(one.moved_bytes == one.kernels[0].read_bytes + 2 * one.kernels[0].written_bytes + 24 * 4);
}

TEST_CASE("an encoding is walked along its positions, a few at a time, and its cosines rotate",
          "[cuda][plan][explain]") {
  const auto p = plan<encoded>(h200, x = shape<bfloat16>(12, 8192, 12, 128), theta = shape<float>(12, 128),
                               y = shape<bfloat16>(12, 8192, 12, 128));
  REQUIRE(p.kernels.size() == 1);
  CHECK(p.kernels[0].one_tile);
  CHECK(p.kernels[0].tile_steps == 8);
  CHECK(p.kernels[0].sweeps[0].rotates);
  CHECK(p.moved_bytes <= p.floor_bytes);
  const std::string text = explain(p);
  CAPTURE(text);
  CHECK(text.find("walks n") != std::string::npos);
  CHECK(text.find("sines and cosines by rotation") != std::string::npos);
}

TEST_CASE("what does not vary along the walk is computed once, and the plan says so",
          "[cuda][plan][explain]") {
  const auto p = plan<faded>(h200, x = shape<bfloat16>(12, 8192, 2048), a = shape<float>(2048),
                             y = shape<bfloat16>(12, 8192, 2048));
  const std::string text = explain(p);
  CAPTURE(text);
  CHECK(text.find("1 function computed once for all steps") != std::string::npos);
  CHECK(explain(plan<columns>(h200, x = shape<bfloat16>(12, 8192, 2048), y = shape<bfloat16>(12, 8192, 2048)))
            .find("computed once") == std::string::npos);
}

TEST_CASE("a softmax over the sequence moves four units of traffic, and its gradient seven",
          "[cuda][plan][explain]") {
  namespace op = ops::lrpe_cosine_program;
  constexpr std::int64_t batch = 12, length = 8192, unit = batch * length * 12 * 128 * 2;
  const auto lanes = shape<bfloat16>(batch, length, 12, 128);
  const auto encoding = shape<bfloat16>(batch, length, 12, 2, 128);
  const auto forward = plan<op::softmax_sequence>(h200, op::x = lanes, op::theta = shape<float>(12, 128),
                                                  op::offset = 0, y = encoding);
  const auto backward = plan<op::softmax_sequence_dx>(h200, op::x = lanes, op::theta = shape<float>(12, 128),
                                                      op::offset = 0, dy = encoding, dx = lanes);
  // x twice and y, which is two; x and dy twice and dx. Beside them a maximum, a sum and a mean of each
  // column.
  CHECK(forward.moved_bytes >= 4 * unit);
  CHECK(100 * forward.moved_bytes < 404 * unit);
  CHECK(backward.moved_bytes >= 7 * unit);
  CHECK(100 * backward.moved_bytes < 707 * unit);
}

TEST_CASE("rows that share cosines are taken by the same threads, where there are many",
          "[cuda][plan][explain]") {
  const auto planned_for = [](std::int64_t batch, std::int64_t length) {
    return plan<encoded_shares>(h200, x = shape<bfloat16>(batch, length, 12, 128),
                                theta = shape<float>(12, 128), y = shape<bfloat16>(batch, length, 12, 128));
  };
  const auto many = planned_for(12, 8192);
  REQUIRE(many.kernels.size() == 1);
  CHECK(many.kernels[0].plan.repeats == 12);
  CHECK(explain(many).find("12 rows one after the other that share what is computed") != std::string::npos);
  CHECK(planned_for(40, 8192).kernels[0].plan.repeats == 10);  // a divisor, of 16 at most
  CHECK(planned_for(17, 8192).kernels[0].plan.repeats == 1);
  CHECK(planned_for(1, 8192).kernels[0].plan.repeats == 1);
  CHECK(planned_for(12, 100).kernels[0].plan.repeats == 1);  // others would be idle
  // What varies along every axis is not shared.
  const auto other = plan<encoded_silu_shares>(h200, x = shape<bfloat16>(12, 8192, 12, 128),
                                               y = shape<bfloat16>(12, 8192, 12, 128));
  CHECK(other.kernels[0].plan.repeats == 1);
}

TEST_CASE("what is read once a lane has no say in where threads lie", "[cuda][plan]") {
  const auto p = plan<scaled>(h200, x = shape<bfloat16>(2048, 32768), scale = shape<float>(2048),
                              shift = shape<float>(2048), y = shape<bfloat16>(2048, 32768));
  REQUIRE(p.kernels.size() == 1);
  CHECK(p.kernels[0].plan.arrangement == cuda_arrangement::row);
}

TEST_CASE("a program that has kernels for rows alone goes along rows, whatever lies side by side",
          "[cuda][plan]") {
  const auto in_strips =
      plan<columns>(h200, x = shape<bfloat16>(1, 1 << 20, 64), y = shape<bfloat16>(1, 1 << 20, 64));
  CHECK(in_strips.kernels[0].plan.arrangement == cuda_arrangement::strip);
  const auto along = plan<columns_along_rows>(h200, x = shape<bfloat16>(1, 1 << 20, 64),
                                              y = shape<bfloat16>(1, 1 << 20, 64));
  CHECK(along.kernels[0].plan.arrangement == cuda_arrangement::row);
  CHECK(along.kernels[0].plan.pieces == 1);
  const auto sweeps =
      plan<normalised>(h200, x = shape<bfloat16>(4096, 1000), y = shape<bfloat16>(4096, 1000));
  CHECK(sweeps.kernels[0].plan.arrangement == cuda_arrangement::row);
}

TEST_CASE("a program whose contiguous axis is known goes along rows there and along strips elsewhere",
          "[cuda][plan]") {
  static_assert(kernels_of<weighted_gradient>.programs.count == 2);
  static_assert(has_rows_alone<weighted_gradient, 0> && has_strips_alone<weighted_gradient, 1>);
  const auto in_order =
      plan<weighted_gradient>(h200, x = shape<bfloat16>(64, 100, 256), scale = shape<bfloat16>(100, 256),
                              dy = shape<bfloat16>(64, 100, 256), dx = shape<bfloat16>(64, 100, 256),
                              dscale = shape<bfloat16>(100, 256));
  REQUIRE(in_order.kernels.size() == 2);
  CHECK(in_order.kernels[0].plan.arrangement == cuda_arrangement::row);
  CHECK(in_order.kernels[1].plan.arrangement == cuda_arrangement::strip);
  // Whatever lies side by side, and where there is but one lane.
  const auto of_rows = [](std::int64_t lanes) {
    return plan<rows_as_strips>(h200, x = shape<bfloat16>(lanes, 4096), y = shape<bfloat16>(lanes, 4096));
  };
  CHECK(of_rows(100).kernels[0].plan.arrangement == cuda_arrangement::strip);
  CHECK(of_rows(1).kernels[0].plan.arrangement == cuda_arrangement::strip);
}

TEST_CASE("rows of several sweeps that end within a vector have kernels of their own", "[cuda][plan]") {
  const auto of_rows = [](std::int64_t length) {
    return plan<normalised>(h200, x = shape<bfloat16>(4096, length), y = shape<bfloat16>(4096, length));
  };
  for (const std::int64_t length : {1, 7, 1001}) CHECK(of_rows(length).kernels[0].plan.ragged);
  for (const std::int64_t length : {8, 1000, 50264}) CHECK_FALSE(of_rows(length).kernels[0].plan.ragged);
  // Longer ones of what is not read twice, in one block and in a cluster's.
  const auto gradient_of_rows = [](std::int64_t length) {
    return plan<drows>(h200, x = shape<bfloat16>(4096, length), dy = shape<bfloat16>(4096, length),
                       dx = shape<bfloat16>(4096, length));
  };
  for (const std::int64_t length : {1001, 20001, 50257})
    CHECK(gradient_of_rows(length).kernels[0].plan.ragged);
  CHECK_FALSE(gradient_of_rows(50264).kernels[0].plan.ragged);
  CHECK(gradient_of_rows(50257).kernels[0].plan.clustered);
  // Of one sweep, what comes behind a row's end is left out.
  const auto scan = plan<rows>(h200, x = shape<bfloat16>(4096, 1001), y = shape<bfloat16>(4096, 1001));
  CHECK_FALSE(scan.kernels[0].plan.ragged);
}

TEST_CASE("rows that are read twice wait in shared memory, where they are longer than a warp's registers",
          "[cuda][plan]") {
  const auto of_rows = [](std::int64_t length, cuda_device device = h200) {
    return plan<normalised>(device, x = shape<bfloat16>(4096, length), y = shape<bfloat16>(4096, length))
        .kernels[0]
        .plan;
  };
  for (const std::int64_t length : {8, 1000, 1024, 1001}) CHECK_FALSE(of_rows(length).staged);
  for (const auto& [length, threads] :
       {std::pair{1032, 32}, {1025, 32}, {4096, 32}, {4104, 64}, {32768, 256}}) {
    CAPTURE(length);
    CHECK(of_rows(length).staged);
    CHECK(of_rows(length).lane_threads == threads);
    CHECK_FALSE(of_rows(length).clustered);
  }
  for (const auto& [length, threads] : {std::pair{50257, 512}, {131072, 1024}, {1 << 20, 4096}}) {
    CAPTURE(length);
    CHECK(of_rows(length).staged);
    CHECK(of_rows(length).lane_threads == threads);
    CHECK(of_rows(length).clustered);
  }
  // Longer ones than shared memory, and where there are no clusters, those longer than a block's.
  CHECK_FALSE(of_rows(2 << 20).staged);
  CHECK(of_rows(100'000, {132, 1}).staged);
  CHECK_FALSE(of_rows(100'000, {132, 1}).clustered);
  CHECK_FALSE(of_rows(131072, {132, 1}).staged);
  const std::string text =
      explain(plan<normalised>(h200, x = shape<bfloat16>(4096, 8192), y = shape<bfloat16>(4096, 8192)));
  CHECK(text.find("rows, 64 threads each, one tile of 8192 steps in shared memory") != std::string::npos);
}

TEST_CASE("what lies between two kernels is held once", "[cuda][plan]") {
  const auto p = plan<centred>(h200, x = shape<float>(512, 5000), y = shape<float>(512, 5000));
  REQUIRE(p.kernels.size() == 2);
  CHECK(p.workspace_bytes == std::int64_t{512} * 5000 * 4);
}
#endif
