#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/executed.hpp"
#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"

// Reductions along rows: on the CPU those whose elements lie side by side are walked a pack of the row's own
// elements at a time.

using namespace exec_test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"h"> h;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"w"> w;
constexpr tensor<"table"> looked_up;
constexpr axis<"e"> e;
constexpr tensor<"theta"> theta;
constexpr tensor<"seed"> seed;
constexpr tensor<"start"> start;
constexpr integer_tensor<"places"> places;
constexpr integer_tensor<"given"> given;
constexpr scalar<"scale"> scale;
constexpr integer_scalar<"offset"> offset;

/// Sums, extrema and log-sums of one row, some from a start; what follows from them at every element;
/// elements looked up, and where they are.
inline constexpr auto most = last(scan(maximum, over(d), x(n, d)));
inline constexpr auto total =
    last(scan(plain_sum, over(d).starting_from(value_or(seed(n), 0.0)), x(n, d) * (index(d) + 1) * scale));
inline constexpr auto logarithm =
    last(scan(log_add_exp, over(d).starting_from(value_or(start(n), -inf)), x(n, d)));
inline constexpr auto rows =
    op<"rows">(out<"most">(n) = most, out<"total">(n) = total, out<"logarithm">(n).optional() = logarithm,
               out<"y">(n, d) = x(n, d) - most + looked_up(e[places(n, d)]),
               out<"z">(n, d) = exp(x(n, d) - logarithm) * w(d) / (1 + abs(total)));
inline constexpr auto drows = gradient(rows, x, looked_up);

/// A softmax along rows whose angles turn from row to row, where positions advance.
inline constexpr auto position = select(offset != 0, index(n) + offset, given(b, n));
inline constexpr auto turned = op<"turned">(
    out<"y">(b, n, h, d) = softmax(over(d), x(b, n, h, d)) * cos_of_product(position, theta(h, d)),
    out<"z">(b, n, h, d) = softmax(over(d), x(b, n, h, d)) * sin_of_product(position, theta(h, d)));
inline constexpr auto dturned = gradient(turned, x);

/// Of one product the cosine is needed for the maximum, the sine later.
inline constexpr auto apart =
    op<"apart">(out<"y">(n, d) = softmax(over(d), x(n, d) * cos_of_product(given(n, d), theta(d))) *
                                 sin_of_product(given(n, d), theta(d)));

const compiled apart_program = compile_both<apart>(), rows_program = compile_both<rows>(),
               drows_program = compile_float<drows>(), turned_program = compile_both<turned>(),
               dturned_program = compile_float<dturned>();

operands rows_of(std::mt19937& random, std::int64_t count, std::int64_t length, bool seeded) {
  operands made;
  made.inputs["x"] = random_tensor(random, {count, length});
  made.inputs["w"] = random_tensor(random, {length});
  made.inputs["table"] = random_tensor(random, {length});
  if (seeded) made.inputs["seed"] = random_tensor(random, {count});
  if (seeded) made.inputs["start"] = random_tensor(random, {count});
  made.inputs["places"] = random_tensor(random, {count, length}, -1, static_cast<double>(length) + 1);
  for (double& place : made.inputs["places"].values) place = std::floor(place);
  made.types["places"] = dtype::int32;
  made.extents["e"] = length;
  made.scalars["scale"] = 1.0 / static_cast<double>(length + 1);
  return made;
}
operands turned_of(std::mt19937& random, std::vector<std::int64_t> extents, int kind) {
  operands made;
  made.inputs["x"] = random_tensor(random, extents);
  made.inputs["theta"] = random_tensor(random, {extents[2], extents[3]}, 0, 1);
  made.scalars["offset"] = kind == 0 ? 1000 : 0;
  oracle_tensor& positions = made.inputs["given"] = random_tensor(random, {extents[0], extents[1]}, 0, 4);
  double at = 0;
  for (double& each : positions.values)  // in order; with steps of 0 to 3; or anywhere
    each = kind == 1 ? at++ : kind == 2 ? at += std::floor(each) : std::floor(1e6 * each - 2e6);
  made.types["given"] = kind == 1 ? dtype::int32 : dtype::int64;
  return made;
}
void add_cotangents(std::mt19937& random, operands& to, const std::vector<std::int64_t>& extents,
                    const std::vector<std::string>& outputs) {
  for (const std::string& each : outputs) to.inputs["d" + each] = random_tensor(random, extents);
}

}  // namespace

TEST_CASE("reductions along rows, of any length, count and type", "[exec][rows]") {
  std::mt19937 random(11);
  unsigned turn = 0;
  for (const std::int64_t length : {0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 128, 1000})
    for (const std::int64_t count : {0, 1, 3, 8, 17, 130})
      for (const dtype type : tested_types()) {
        operands made = rows_of(random, count, length, turn++ % 2 != 0);
        made.usual = type;
        INFO(count << " rows of " << length << " " << name_of(type));
        CHECK(mismatch(rows_program, made, 2e-5) == "");
      }
}

TEST_CASE("rows that lie otherwise: apart, backwards, repeated", "[exec][rows][layout]") {
  std::mt19937 random(12);
  std::vector<layout> layouts(6);
  layouts[0].order = {1, 0};
  layouts[1].spacing = 3;
  layouts[2].flipped = {true, false};
  layouts[3].flipped = {false, true};
  layouts[4].repeated = {true, false};
  layouts[5].repeated = {false, true};
  for (const layout& each : layouts)
    for (const std::int64_t length : {32, 37}) {
      operands made = rows_of(random, 21, length, true);
      made.layouts["x"] = each;
      CHECK(mismatch(rows_program, made, 2e-5) == "");
    }
}

TEST_CASE("gradients of reductions along rows", "[exec][rows]") {
  std::mt19937 random(13);
  for (const std::int64_t length : {16, 33, 128, 300})
    for (const std::int64_t count : {1, 9, 70}) {
      operands made = rows_of(random, count, length, count == 9);
      add_cotangents(random, made, {count}, {"most", "total", "logarithm"});
      add_cotangents(random, made, {count, length}, {"y", "z"});
      INFO(count << " rows of " << length);
      CHECK(gradient_mismatch(drows_program, made, 1e-5) == "");
    }
}

TEST_CASE("infinities and NaN in rows", "[exec][rows]") {
  std::mt19937 random(14);
  for (const double special : {-infinity, infinity, std::numeric_limits<double>::quiet_NaN()})
    for (const std::size_t length : {32UL, 37UL}) {
      operands made = rows_of(random, 5, static_cast<std::int64_t>(length), false);
      std::vector<double>& values = made.inputs["x"].values;
      values[3] = special;               // of the first row one
      values[2 * length - 1] = special;  // of the second the last
      std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(2 * length), length, special);  // a whole row
      values[3 * length] = 500;  // one far above the others
      values[4 * length + 1] = -special;
      CAPTURE(special, length);
      CHECK(mismatch(rows_program, made, 2e-5) == "");
    }
}

TEST_CASE("angles that turn from row to row", "[exec][rows]") {
  std::mt19937 random(15);
  unsigned turn = 0;
  for (const auto& extents : std::vector<std::vector<std::int64_t>>{
           {1, 40, 1, 16}, {2, 33, 3, 20}, {3, 1, 2, 64}, {1, 300, 2, 32}, {2, 17, 1, 5}, {1, 9, 5, 130}})
    for (int kind = 0; kind < 4; ++kind)
      for (const dtype type : tested_types()) {
        operands made = turned_of(random, extents, kind);
        made.usual = type;
        INFO(extents[1] << " x " << extents[2] << " x " << extents[3] << " kind " << kind << " "
                        << name_of(type));
        CHECK(mismatch(turned_program, made, 4e-6) == "");
        if (type != dtype::float32 || turn++ % 2 != 0) continue;
        add_cotangents(random, made, extents, {"y", "z"});
        CHECK(gradient_mismatch(dturned_program, made, 1e-5) == "");
      }
}

TEST_CASE("a sine and a cosine of one product that are needed apart", "[exec][rows]") {
  std::mt19937 random(17);
  for (const dtype type : tested_types()) {
    operands made;
    made.inputs["x"] = random_tensor(random, {9, 50});
    made.inputs["theta"] = random_tensor(random, {50}, 0, 1);
    made.inputs["given"] = random_tensor(random, {9, 50}, 0, 1000);
    for (double& each : made.inputs["given"].values) each = std::floor(each);
    made.types["given"] = dtype::int32;
    made.usual = type;
    INFO(name_of(type));
    CHECK(mismatch(apart_program, made, 4e-6) == "");
  }
}

#ifndef SCANDSL_TEST_CUDA
TEST_CASE("rows have the same bits on any number of threads", "[exec][rows][threads]") {
  std::mt19937 random(16);
  const operands made = turned_of(random, {2, 400, 3, 48}, 0), others = rows_of(random, 500, 77, true);
  const tensors once = run_on_cpu(turned_program, made, cpu{1}).outputs,
                other = run_on_cpu(rows_program, others, cpu{1}).outputs;
  for (const int threads : {2, 3, 7}) {
    CHECK(same_bits(once, run_on_cpu(turned_program, made, cpu{threads}).outputs));
    CHECK(same_bits(other, run_on_cpu(rows_program, others, cpu{threads}).outputs));
  }
}

TEST_CASE("the plan says where rows are walked", "[exec][rows]") {
  const auto mode = [](auto... bindings) { return plan<turned>(cpu{2}, bindings...).kernels[0].plan.mode; };
  constexpr tensor<"y"> y;
  constexpr tensor<"z"> z;
  const auto all = shape<float>(2, 64, 3, 128);
  CHECK(mode(x = all, theta = shape<float>(3, 128), given = shape<std::int32_t>(2, 64), y = all, z = all,
             offset = 1) == cpu_schedule::rows);
  const auto few = shape<float>(2, 64, 3, 2);  // less than a pack
  CHECK(mode(x = few, theta = shape<float>(3, 2), given = shape<std::int32_t>(2, 64), y = few, z = few,
             offset = 1) == cpu_schedule::lanes);
}
#endif
