#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/executed.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/jvp.hpp"
#include "support/catch.hpp"

using namespace exec_test;

namespace {

constexpr double nan_ = std::numeric_limits<double>::quiet_NaN();

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"v"> v;
constexpr tensor<"c"> c;
constexpr tensor<"s"> s;

inline constexpr auto over_sequence = op<"over_sequence">(out<"y">(b, n, d) = softmax(over(n), x(b, n, d)));
inline constexpr auto over_features = op<"over_features">(out<"y">(b, n, d) = softmax(over(d), x(b, n, d)));
inline constexpr auto dover_sequence = gradient(over_sequence);
inline constexpr auto dover_features = gradient(over_features);
inline constexpr auto tover_sequence = jvp(over_sequence);
/// The mean of v, each position counting by its share: what the walk of the maximum and the sum adds up, too.
inline constexpr auto pooled =
    op<"pooled">(out<"y">(b, d) = sum(over(n), softmax(over(n), x(b, n, d)) * v(b, n, d)));
inline constexpr auto dpooled = gradient(pooled);
/// As positional encodings take it, with the gradient of the angles' factors.
inline constexpr auto rotated = op<"rotated">(out<"y">(b, n, d) = softmax(over(n), x(b, n, d)) * c(n, d),
                                              out<"z">(b, n, d) = softmax(over(n), x(b, n, d)) * s(n, d));
inline constexpr auto drotated = gradient(rotated);

const compiled over_sequence_program = compile_both<over_sequence>();
const compiled over_features_program = compile_both<over_features>();
const compiled dover_sequence_program = compile_both<dover_sequence>();
const compiled dover_features_program = compile_both<dover_features>();
const compiled tover_sequence_program = compile_float<tover_sequence>();
const compiled pooled_program = compile_float<pooled>();
const compiled dpooled_program = compile_float<dpooled>();
const compiled drotated_program = compile_float<drotated>();

/// Shares of a row of numbers, in float64: 0 beside +inf, NaN at it and where there are none.
std::vector<double> shares_of(const std::vector<double>& row) {
  double most = -inf, sum = 0;
  for (const double each : row) most = std::isnan(each) || each > most ? each : most;
  std::vector<double> result;
  for (const double each : row) result.push_back(std::exp(each - most));
  for (const double each : result) sum += std::isnan(each) && most == inf ? 1 : each;
  for (double& each : result) each /= sum;
  return result;
}

/// Calls f(indices) with the positions of every row of a [batch, length, width] tensor, along n or along d.
template <class F>
void for_each_row(std::int64_t batch, std::int64_t length, std::int64_t width, bool features, F f) {
  const std::int64_t rows = features ? batch * length : batch * width, steps = features ? width : length;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::size_t> indices;
    for (std::int64_t t = 0; t < steps; ++t)
      indices.push_back(static_cast<std::size_t>(
          features ? row * width + t : (row / width * length + t) * width + row % width));
    f(indices);
  }
}
std::vector<double> row_of(const oracle_tensor& all, const std::vector<std::size_t>& indices) {
  std::vector<double> row;
  for (const std::size_t i : indices) row.push_back(all.values[i]);
  return row;
}

/// A value, and how far it may be off before it is rounded to its type.
struct expected_value {
  double value, off;
};
std::string compare(dtype type, double got, const expected_value& want) {
  if (std::isnan(want.value)) return std::isnan(got) ? "" : message("expected NaN, got ", got);
  const bool right =
      got >= rounded(type, want.value - want.off) && got <= rounded(type, want.value + want.off);
  return right ? "" : message("expected ", want.value, ", got ", got);
}

/// exp(z) errs by its argument's rounding, at most 100 units where the result is a number at all; what is
/// below the normal range may be 0. Of 16-bit operands m may be rounded, too (exp_in_frame on the GPU).
double share_error(dtype type, double size, double largest) {
  if (type == dtype::float64) return 0x1p-45 * size + 0x1p-1000;
  const bool is_short = type == dtype::bfloat16 || type == dtype::float16;
  return (0x1p-16 + (is_short ? 0x1p-22 * largest : 0.0)) * size + 0x1p-120;
}
double largest_of(const std::vector<double>& row) {
  double largest = 0;
  for (const double each : row)
    if (std::isfinite(each)) largest = std::max(largest, std::fabs(each));
  return largest;
}

std::string wrong_shares(const compiled& program_, operands given, bool features) {
  const outcome got = run_on_cpu(program_, given);
  const oracle_tensor& in = got.inputs.at("x");
  std::string wrong = got.intact ? "" : "memory beside the outputs was written";
  for_each_row(in.extents[0], in.extents[1], in.extents[2], features, [&](const auto& indices) {
    const std::vector<double> row = row_of(in, indices), shares = shares_of(row);
    const double largest = largest_of(row);
    for (std::size_t t = 0; t < indices.size() && wrong.empty(); ++t)
      wrong = compare(given.usual, got.outputs.at("y").values[indices[t]],
                      {shares[t], share_error(given.usual, shares[t], largest)});
  });
  return wrong;
}

/// Whether `got` is p (g - sum p g) within what its type allows, each error relative to the terms.
std::string wrong_gradient(dtype type, const oracle_tensor& in, const oracle_tensor& cotangent,
                           const oracle_tensor& got, bool features) {
  std::string wrong;
  for_each_row(in.extents[0], in.extents[1], in.extents[2], features, [&](const auto& indices) {
    const std::vector<double> row = row_of(in, indices), p = shares_of(row), g = row_of(cotangent, indices);
    const double largest = largest_of(row);
    double sum = 0, size = 0;
    for (std::size_t t = 0; t < p.size(); ++t) {
      sum += p[t] * g[t];
      size += p[t] * std::fabs(g[t]);
    }
    for (std::size_t t = 0; t < p.size() && wrong.empty(); ++t)
      wrong = compare(type, got.values[indices[t]],
                      {p[t] * (g[t] - sum), share_error(type, p[t] * (std::fabs(g[t]) + size), largest)});
  });
  return wrong;
}
std::string wrong_gradient(const compiled& program_, operands given, bool features) {
  const outcome got = run_on_cpu(program_, given);
  return got.intact ? wrong_gradient(given.usual, got.inputs.at("x"), got.inputs.at("dy"),
                                     got.outputs.at("dx"), features)
                    : "memory beside the outputs was written";
}

/// The shares over the sequence of a float32 tensor, times what `factor` gives for an element.
template <class Factor> oracle_tensor shares_times(const oracle_tensor& in, Factor factor) {
  oracle_tensor result = in;
  for_each_row(in.extents[0], in.extents[1], in.extents[2], false, [&](const auto& indices) {
    const std::vector<double> shares = shares_of(row_of(in, indices));
    for (std::size_t t = 0; t < indices.size(); ++t)
      result.values[indices[t]] = shares[t] * factor(indices[t]);
  });
  return result;
}
/// Whether a gradient is the sum over the batch of terms, its error relative to them; `batch` 1: each is one.
std::string wrong_sums(const oracle_tensor& terms, std::int64_t batch, const oracle_tensor& got) {
  const std::size_t count = got.values.size();
  for (std::size_t i = 0; i < count; ++i) {
    double sum = 0, size = 0;
    for (std::size_t each = 0; each < static_cast<std::size_t>(batch); ++each) {
      sum += terms.values[each * count + i];
      size += std::fabs(terms.values[each * count + i]);
    }
    const std::string wrong =
        compare(dtype::float32, got.values[i], {sum, share_error(dtype::float32, size, 0)});
    if (!wrong.empty()) return wrong;
  }
  return "";
}

/// The gradients of `rotated`: the shares' cotangent is dy c + dz s.
void check_rotated(const operands& given) {
  const outcome got = run_on_cpu(drotated_program, given);
  const tensors& in = got.inputs;
  const std::size_t positions = in.at("c").values.size();
  oracle_tensor by_share = in.at("dy");
  for (std::size_t i = 0; i < by_share.values.size(); ++i)
    by_share.values[i] = in.at("dy").values[i] * in.at("c").values[i % positions] +
                         in.at("dz").values[i] * in.at("s").values[i % positions];
  CHECK(got.intact);
  CHECK(wrong_gradient(dtype::float32, in.at("x"), by_share, got.outputs.at("dx"), false) == "");
  for (const bool sines : {false, true}) {
    const oracle_tensor& factor = in.at(sines ? "dz" : "dy");
    const oracle_tensor terms = shares_times(in.at("x"), [&](std::size_t i) { return factor.values[i]; });
    CHECK(wrong_sums(terms, terms.extents[0], got.outputs.at(sines ? "ds" : "dc")) == "");
  }
}

struct shape_case {
  std::int64_t batch, length, width;
};
const std::vector<shape_case> shapes = {{2, 37, 5},   {1, 1, 1}, {3, 1, 17}, {2, 300, 1}, {1, 5000, 3},
                                        {2, 16, 130}, {0, 4, 3}, {2, 0, 3},  {2, 3, 0}};

}  // namespace

TEST_CASE("softmax over either axis, every type, every size", "[exec][softmax]") {
  std::mt19937 random(81);
  for (const auto& [batch, length, width] : shapes)
    for (const double range : {3.0, 80.0, 1e4})
      for (const dtype type : tested_types()) {
        operands given;
        given.usual = type;
        given.inputs["x"] = random_tensor(random, {batch, length, width}, -range, range);
        INFO(batch << " x " << length << " x " << width << ", up to " << range);
        CHECK(wrong_shares(over_sequence_program, given, false) == "");
        CHECK(wrong_shares(over_features_program, given, true) == "");
        given.inputs["dy"] = random_tensor(random, {batch, length, width});
        CHECK(wrong_gradient(dover_sequence_program, given, false) == "");
        CHECK(wrong_gradient(dover_features_program, given, true) == "");
      }
}

TEST_CASE("softmax of infinities: masked positions have no share", "[exec][softmax]") {
  operands given;
  given.inputs["x"] = {{-inf, -inf, -inf,  // all masked: NaN, as in torch
                        -inf, 1, 2,        // some
                        1, -inf, -inf,     // all but one
                        1, inf, 2,         // +inf takes everything and is undefined itself
                        nan_, 1, 2},
                       {1, 5, 3}};
  const std::vector<double> y = run_on_cpu(over_features_program, given).outputs.at("y").values;
  for (const std::size_t i : {0, 1, 2, 10, 12, 13, 14}) CHECK(std::isnan(y[i]));
  CHECK(y[3] == 0);
  CHECK(y[4] == Approx(1 / (1 + std::exp(1.0))));
  CHECK((y[6] == 1 && y[7] == 0 && y[8] == 0));
  CHECK((y[9] == 0 && y[11] == 0));
  CHECK(wrong_shares(over_features_program, given, true) == "");
  given.inputs["dy"] = {std::vector<double>(15, 0.5), {1, 5, 3}};
  given.inputs["dy"].values[4] = 2;
  const std::vector<double> dx = run_on_cpu(dover_features_program, given).outputs.at("dx").values;
  const double p = y[4], sum = 2 * p + 0.5 * (1 - p);
  CHECK((dx[3] == 0 && dx[4] == Approx(p * (2 - sum)) && dx[5] == Approx((1 - p) * (0.5 - sum))));
  CHECK((dx[7] == 0 && dx[8] == 0));
  for (const std::size_t i : {0, 1, 2, 12, 13, 14}) CHECK(std::isnan(dx[i]));
}

TEST_CASE("weighted sums that join the walk of a softmax", "[exec][softmax]") {
  std::mt19937 random(82);
  for (const auto& [batch, length, width] : shapes) {
    if (batch * length * width == 0) continue;
    INFO(batch << " x " << length << " x " << width);
    operands given;
    given.inputs["x"] = random_tensor(random, {batch, length, width}, -20, 20);
    given.inputs["v"] = random_tensor(random, {batch, length, width});
    CHECK(mismatch(pooled_program, given, 1e-5) == "");
    given.inputs["dy"] = random_tensor(random, {batch, width});
    const outcome pooled_back = run_on_cpu(dpooled_program, given);
    const tensors& in = pooled_back.inputs;
    const auto cotangent = [&](std::size_t i) {  // of the element's lane
      const auto row = static_cast<std::size_t>(length * width), lanes = static_cast<std::size_t>(width);
      return in.at("dy").values[i / row * lanes + i % lanes];
    };
    oracle_tensor by_share = in.at("v");
    for (std::size_t i = 0; i < by_share.values.size(); ++i) by_share.values[i] *= cotangent(i);
    CHECK(pooled_back.intact);
    CHECK(wrong_gradient(dtype::float32, in.at("x"), by_share, pooled_back.outputs.at("dx"), false) == "");
    CHECK(wrong_sums(shares_times(in.at("x"), cotangent), 1, pooled_back.outputs.at("dv")) == "");
    operands tangents;
    tangents.inputs["x"] = given.inputs["x"];
    tangents.inputs["tx"] = random_tensor(random, {batch, length, width});
    CHECK(mismatch(tover_sequence_program, tangents, 1e-5) == "");
    operands turned;
    turned.inputs["x"] = given.inputs["x"];
    for (const char* each : {"dy", "dz"}) turned.inputs[each] = random_tensor(random, {batch, length, width});
    for (const char* each : {"c", "s"}) turned.inputs[each] = random_tensor(random, {length, width});
    check_rotated(turned);
  }
}

TEST_CASE("the derived gradient of a softmax is its finite difference", "[exec][softmax]") {
  if (!tests_double) return;
  std::mt19937 random(83);
  operands given;
  given.usual = dtype::float64;
  given.inputs["x"] = random_tensor(random, {2, 7, 3});
  operands backward = given;
  backward.inputs["dy"] = random_tensor(random, {2, 7, 3});
  const auto loss = [&](const operands& at) {
    double sum = 0;
    const std::vector<double> y = run_on_cpu(over_sequence_program, at).outputs.at("y").values;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * backward.inputs["dy"].values[i];
    return sum;
  };
  const std::vector<double> dx = run_on_cpu(dover_sequence_program, backward).outputs.at("dx").values;
  constexpr double h = 1e-6;
  for (std::size_t i = 0; i < dx.size(); ++i) {
    operands above = given, below = given;
    above.inputs["x"].values[i] += h;
    below.inputs["x"].values[i] -= h;
    CHECK(dx[i] == Approx((loss(above) - loss(below)) / (2 * h)).margin(1e-9));
  }
}
