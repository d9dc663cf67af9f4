#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ops/op_case.hpp"
#include "scandsl/ops/lrpe_cosine.hpp"
#include "support/catch.hpp"

// Encodings whose cosines a thread does not compute one by one: rows of a softmax over features that share
// them, and steps of a softmax over the sequence along which they turn. Compared with loops in float64.
namespace {

using namespace scandsl;
using ops::lrpe_activation, ops::lrpe_gradients, ops::lrpe_options;

using op_test::run_on_device, support::memory_of;

/// x of shape [b, n, h, d].
struct encoding_case {
  std::int64_t b, n, h, d;
  bool wide = false;  ///< rows that leave the frame, and rows with -inf, among others
  std::int64_t count() const { return b * n * h * d; }
  std::string name() const {
    return std::to_string(b) + " x " + std::to_string(n) + " x " + std::to_string(h) + " x " +
           std::to_string(d) + (wide ? ", wide" : "");
  }
};

double number(bfloat16 value) { return static_cast<float>(value); }
/// Whether a number is further off than its rounding and `terms`, the errors of what it is made of.
bool wrong(bfloat16 got, double should, double terms) {
  return !(std::fabs(number(got) - should) <= 0x1p-8 * std::fabs(should) + terms + 0x1p-126);
}

/// A sum, and the sum of its terms' sizes.
struct summed {
  double value = 0, size = 0;
  void add(double term) {
    value += term;
    size += std::fabs(term);
  }
};

struct encoding {
  encoding_case what;
  memory_of<bfloat16> x, y, dy, dx;
  memory_of<float> theta, dtheta;
  lrpe_options options;

  explicit encoding(const encoding_case& given) : what(given) {
    options.offset = 3;
    options.act = lrpe_activation::softmax;
    std::mt19937 random(static_cast<unsigned>(what.count()));
    std::uniform_real_distribution<float> unit(0, 1);
    const auto count = static_cast<std::size_t>(what.count()), row = static_cast<std::size_t>(what.d);
    x.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (i % row == 0) scale = what.wide && unit(random) < 0.2F ? 200.0F : 3.0F;
      x[i] = bfloat16(scale * (2 * unit(random) - 1));
      if (scale > 3 && unit(random) < 0.3F) x[i] = bfloat16(-std::numeric_limits<float>::infinity());
    }
    y.assign(2 * count, bfloat16(1e4F));
    dx.assign(count, bfloat16(1e4F));
    dy.resize(2 * count);
    for (bfloat16& each : dy) each = bfloat16(2 * unit(random) - 1);
    theta.resize(static_cast<std::size_t>(what.h * what.d));
    for (float& each : theta) each = unit(random);
    dtheta.assign(theta.size(), 1e9F);
  }
  /// Forward and backward, whose gradients are x's and, where it is wanted, theta's.
  void run(bool by_theta) {
    const array input = array::of(x.data(), {what.b, what.n, what.h, what.d}),
                angles = array::of(theta.data(), {what.h, what.d});
    lrpe_gradients gradients;
    gradients.y_cotangent = array::of(dy.data(), {what.b, what.n, what.h, 2 * what.d});
    gradients.x_gradient = array::of(dx.data(), {what.b, what.n, what.h, what.d});
    if (by_theta) gradients.theta_gradient = array::of(dtheta.data(), {what.h, what.d});
    run_on_device([&](auto& device) {
      ops::lrpe_cosine(device, input, angles, array::of(y.data(), {what.b, what.n, what.h, 2 * what.d}),
                       options);
    });
    run_on_device(
        [&](auto& device) { ops::lrpe_cosine_backward(device, input, angles, gradients, options); });
  }

  /// What is wrong with the results; empty: nothing.
  std::string mismatch(bool by_theta) const {
    const auto d = static_cast<std::size_t>(what.d);
    std::vector<double> p(d), q(d), c(d), s(d);
    std::vector<summed> turned(theta.size());
    for (std::int64_t row = 0; row < what.b * what.n * what.h; ++row) {
      const auto at = static_cast<std::size_t>(row) * d;
      const std::size_t head = static_cast<std::size_t>(row % what.h) * d;
      const double position = static_cast<double>(row / what.h % what.n + 3);
      double most = -HUGE_VAL, sum = 0, mean = 0, greatest = 0;
      for (std::size_t i = 0; i < d; ++i) most = std::max(most, number(x[at + i]));
      for (std::size_t i = 0; i < d; ++i) sum += p[i] = std::exp(number(x[at + i]) - most);
      for (std::size_t i = 0; i < d; ++i) {
        p[i] /= sum;
        c[i] = std::cos(position * static_cast<double>(theta[head + i]));
        s[i] = std::sin(position * static_cast<double>(theta[head + i]));
        q[i] = c[i] * number(dy[2 * at + i]) + s[i] * number(dy[2 * at + d + i]);
        mean += p[i] * q[i];
        greatest = std::max(greatest, p[i] * std::fabs(q[i]));
        turned[head + i].add(position * p[i] * c[i] * number(dy[2 * at + d + i]));
        turned[head + i].add(-position * p[i] * s[i] * number(dy[2 * at + i]));
      }
      // Half a unit of bfloat16, sines and cosines to 2e-6, and the roundings of the softmax's gradient's
      // terms.
      for (std::size_t i = 0; i < d; ++i) {
        const std::string where = " of row " + std::to_string(row) + ", feature " + std::to_string(i);
        if (wrong(y[2 * at + i], p[i] * c[i], 3e-6 * p[i]) ||
            wrong(y[2 * at + d + i], p[i] * s[i], 3e-6 * p[i]))
          return "y" + where;
        if (wrong(dx[at + i], p[i] * (q[i] - mean), 1e-5 * p[i] + 1e-5 * greatest))
          return "dx" + where + ": expected " + std::to_string(p[i] * (q[i] - mean)) + ", got " +
                 std::to_string(number(dx[at + i]));
      }
    }
    return by_theta ? mismatch_of_theta(turned, 1e-5) : "";
  }
  /// tolerance: of a term of the sums.
  std::string mismatch_of_theta(const std::vector<summed>& should, double tolerance) const {
    for (std::size_t i = 0; i < should.size(); ++i)
      if (!(std::fabs(static_cast<double>(dtheta[i]) - should[i].value) <= tolerance * should[i].size))
        return message("dtheta of column ", static_cast<std::int64_t>(i), ": expected ", should[i].value,
                       ", got ", static_cast<double>(dtheta[i]));
    return "";
  }

private:
  float scale = 3.0F;
};

void check_encoding(const encoding_case& what) {
  for (const bool by_theta : {false, true}) {
    encoding one(what);
    one.run(by_theta);
    INFO(what.name() << (by_theta ? ", theta's gradient too" : ""));
    CHECK(one.mismatch(by_theta) == "");
  }
}

/// What is reduced along the positions: a softmax over them, or theta's gradient, or both.
std::string mismatch_along(const encoding_case& what, lrpe_activation act, bool by_theta = true) {
  encoding one(what);
  one.options.act = act;
  one.options.act_dim = 1;
  one.run(by_theta);
  const bool softmax = act == lrpe_activation::softmax;
  const auto b = what.b, n = what.n, columns = what.h * what.d, d = what.d;
  std::vector<summed> turned(one.theta.size());
  std::vector<double> value(static_cast<std::size_t>(n)), slope(value.size()), q(value.size());
  for (std::int64_t column = 0; column < columns; ++column) {
    summed& of_theta = turned[static_cast<std::size_t>(column)];
    for (std::int64_t batch = 0; batch < b; ++batch) {
      const auto at = [&](std::int64_t i) {
        return static_cast<std::size_t>((batch * n + i) * columns + column);
      };
      const auto out = [&](std::int64_t i) {
        return static_cast<std::size_t>(((batch * n + i) * what.h + column / d) * 2 * d + column % d);
      };
      double most = -HUGE_VAL, sum = 0, mean = 0, greatest = 0;
      for (std::int64_t i = 0; i < n; ++i) most = std::max(most, number(one.x[at(i)]));
      for (std::int64_t i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        const double of = number(one.x[at(i)]), s = 1 / (1 + std::exp(-of));
        value[k] = softmax ? std::exp(of - most) : act == lrpe_activation::silu ? of * s : of;
        slope[k] = act == lrpe_activation::silu ? s + of * s * (1 - s) : 1.0;
        sum += value[k];
      }
      for (std::int64_t i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        if (softmax) value[k] /= sum;
        const double position = static_cast<double>(i + 3),
                     angle = position * static_cast<double>(one.theta[static_cast<std::size_t>(column)]),
                     c = std::cos(angle), s = std::sin(angle), dc = number(one.dy[out(i)]),
                     ds = number(one.dy[out(i) + static_cast<std::size_t>(d)]);
        q[k] = c * dc + s * ds;
        mean += value[k] * q[k];
        greatest = std::max(greatest, value[k] * std::fabs(q[k]));
        of_theta.add(position * value[k] * c * ds);
        of_theta.add(-position * value[k] * s * dc);
        const double size = std::fabs(value[k]);
        const std::string where = " of column " + std::to_string(column) + ", step " + std::to_string(i);
        if (wrong(one.y[out(i)], value[k] * c, 5e-6 * size) ||
            wrong(one.y[out(i) + static_cast<std::size_t>(d)], value[k] * s, 5e-6 * size))
          return "y" + where;
      }
      for (std::int64_t i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        // A share below the numbers that float32 has is 0.
        const double should = softmax ? value[k] * (q[k] - mean) : q[k] * slope[k],
                     terms = softmax ? (1e-5 * value[k] + 0x1p-126) * (1 + std::fabs(mean) + std::fabs(q[k]))
                                     : 1e-5;
        if (wrong(one.dx[at(i)], should, terms))
          return message("dx of column ", column, ", step ", i, ": expected ", should, ", got ",
                         number(one.dx[at(i)]));
      }
    }
  }
  // Sines and cosines to 2e-6, a sigmoid to 1e-6, a share to 5e-6, sums of float32.
  return by_theta ? one.mismatch_of_theta(turned, softmax ? 1e-5 : 4e-6) : "";
}

/// Of a softmax over a sequence of n equal numbers.
void check_rotation(std::int64_t n) {
  constexpr std::int64_t h = 3, d = 64;
  const auto count = static_cast<std::size_t>(n * h * d);
  memory_of<float> x(count, 0.5F), y(2 * count, 1e4F), theta(h * d);
  std::mt19937 random(1);
  for (float& each : theta) each = std::uniform_real_distribution<float>(0, 3)(random);
  for (const std::int64_t offset : {std::int64_t{0}, std::int64_t{1} << 20, (std::int64_t{1} << 24) - n}) {
    lrpe_options options;
    options.offset = offset;
    options.act = lrpe_activation::softmax;
    options.act_dim = 1;
    run_on_device([&](auto& device) {
      ops::lrpe_cosine(device, array::of(x.data(), {1, n, h, d}), array::of(theta.data(), {h, d}),
                       array::of(y.data(), {1, n, h, 2 * d}), options);
    });
    double most = 0;
    for (std::int64_t row = 0; row < n * h; ++row)
      for (std::int64_t i = 0; i < d; ++i) {
        const double angle = static_cast<double>(row / h + offset) *
                             static_cast<double>(theta[static_cast<std::size_t>(row % h * d + i)]);
        const auto at = static_cast<std::size_t>(2 * row * d + i);
        // How far the point is off its ray, which the rounding of the share does not change.
        const double off =
            static_cast<double>(y[at]) * std::sin(angle) - static_cast<double>(y[at + d]) * std::cos(angle);
        most = std::max(most, static_cast<double>(n) * std::fabs(off));
      }
    CHECK(most < 2e-6);
  }
}

}  // namespace

TEST_CASE("rows that share sines and cosines", "[cuda][shared_rows]") {
  for (encoding_case what :
       {encoding_case{12, 700, 4, 64}, encoding_case{16, 600, 3, 128}, encoding_case{6, 2000, 3, 40},
        encoding_case{2, 3000, 1, 1000}, encoding_case{5, 7001, 1, 136}, encoding_case{24, 1000, 3, 17}})
    for (const bool wide : {false, true}) {
      what.wide = wide;
      check_encoding(what);
    }
}

TEST_CASE("angles that turn along a tile of any length are within 2e-6", "[cuda][rotation]") {
  check_rotation(4096);  // every share of the softmax is 2^-12
}

TEST_CASE("encodings, for compute-sanitizer", "[.sanitize]") {
  for (const lrpe_activation act : {lrpe_activation::silu, lrpe_activation::softmax})
    for (const bool by_theta : {false, true}) CHECK(mismatch_along({2, 300, 3, 40}, act, by_theta) == "");
  check_encoding({12, 700, 4, 64});  // so many rows that the same threads take several
  check_encoding({2, 20, 3, 40, true});
  check_rotation(512);
}

TEST_CASE("reductions along the positions, in parts", "[cuda][parts]") {
  // Tiles, parts and vectors of lanes that are whole and that are not; one step more or less than a tile.
  for (encoding_case what :
       {encoding_case{12, 1000, 4, 64}, encoding_case{2, 129, 3, 128}, encoding_case{3, 127, 3, 33},
        encoding_case{2, 2047, 5, 40}, encoding_case{1, 8192, 1, 8}, encoding_case{2, 700, 1, 1000},
        encoding_case{5, 64, 2, 17}, encoding_case{16, 513, 12, 128}, encoding_case{1, 40001, 1, 24}})
    for (const lrpe_activation act : {lrpe_activation::none, lrpe_activation::silu, lrpe_activation::softmax})
      for (const bool wide : {false, true}) {
        if (wide && act != lrpe_activation::softmax) continue;
        what.wide = wide;
        INFO(what.name() << ", activation " << static_cast<int>(act));
        CHECK(mismatch_along(what, act) == "");
        if (act == lrpe_activation::softmax) CHECK(mismatch_along(what, act, false) == "");
      }
}
