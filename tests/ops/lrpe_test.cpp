#include <algorithm>

#include "ops/op_case.hpp"
#include "scandsl/ops/lrpe_cosine.hpp"
#include "support/catch.hpp"

// lrpe_cosine and its backward against loops in float64.

using namespace op_test;
using ops::lrpe_activation;

namespace {

struct lrpe_case {
  std::int64_t b = 2, n = 5, h = 2, d = 3;
  bool one_head = false, one_feature = false;  ///< theta is [1, d] or [h, 1]
  lrpe_activation act = lrpe_activation::none;
  int act_dim = -1;
  int position_rank = 0;  ///< 0: offset + index
  dtype position_type = dtype::int64;
  std::int64_t offset = 0;
  dtype type = dtype::float32, theta_type = dtype::float32;
  unsigned layout_seed = 0;

  extent_list x_extents() const { return {b, n, h, d}; }
  extent_list y_extents() const { return {b, n, h, 2 * d}; }
  extent_list theta_extents() const { return {one_head ? 1 : h, one_feature ? 1 : d}; }
  std::int64_t theta_at(std::int64_t at_h, std::int64_t at_d) const {
    return (one_head ? 0 : at_h) * theta_extents()[1] + (one_feature ? 0 : at_d);
  }
  std::int64_t count() const { return b * n * h * d; }
};

std::ostream& operator<<(std::ostream& out, const lrpe_case& c) {
  return out << name_of(c.type) << " theta " << name_of(c.theta_type) << " [" << c.b << ", " << c.n << ", "
             << c.h << ", " << c.d << "]" << (c.one_head ? " one head" : "")
             << (c.one_feature ? " one feature" : "") << " act " << static_cast<int>(c.act) << " along "
             << c.act_dim << " positions " << c.position_rank << ' ' << name_of(c.position_type) << " offset "
             << c.offset << " layout " << c.layout_seed;
}

/// Cosine and sine of the exact product, of which the rounded one may be off by far more than their last
/// digit.
std::pair<double, double> turned_by(double position, double theta) {
  const double angle = position * theta, rest = std::fma(position, theta, -angle);
  const double cosine = std::cos(angle), sine = std::sin(angle);
  return {cosine * std::cos(rest) - sine * std::sin(rest), sine * std::cos(rest) + cosine * std::sin(rest)};
}

double sigmoid(double v) { return v < 0 ? std::exp(v) / (1 + std::exp(v)) : 1 / (1 + std::exp(-v)); }

/// Everything in float64, x, theta and dy being what memory holds.
struct lrpe_reference {
  const lrpe_case& c;
  std::vector<double> x, theta, dy;
  std::vector<std::int64_t> positions;
  std::vector<double> f, y, dx, dtheta;
  double dx_terms = 0;  ///< the greatest of what a softmax's gradient is a difference of

  std::size_t at(std::int64_t i, std::int64_t t, std::int64_t k, std::int64_t j) const {
    return static_cast<std::size_t>(((i * c.n + t) * c.h + k) * c.d + j);
  }
  template <class F> void for_each(F visit) const {
    for (std::int64_t i = 0; i < c.b; ++i)
      for (std::int64_t t = 0; t < c.n; ++t)
        for (std::int64_t k = 0; k < c.h; ++k)
          for (std::int64_t j = 0; j < c.d; ++j) visit(i, t, k, j);
  }
  double position(std::int64_t i, std::int64_t t) const {
    if (c.position_rank == 0) return static_cast<double>(c.offset + t);
    return static_cast<double>(positions[static_cast<std::size_t>(c.position_rank == 1 ? t : i * c.n + t)]);
  }
  /// The elements over which a softmax runs through this one.
  std::vector<std::size_t> row(std::int64_t i, std::int64_t t, std::int64_t k, std::int64_t j) const {
    std::vector<std::size_t> places;
    for (std::int64_t e = 0; e < (c.act_dim == 1 ? c.n : c.d); ++e)
      places.push_back(c.act_dim == 1 ? at(i, e, k, j) : at(i, t, k, e));
    return places;
  }

  void run() {
    f = x;
    for (double& v : f) {
      if (c.act == lrpe_activation::relu) v = std::max(v, 0.0);
      if (c.act == lrpe_activation::sigmoid) v = sigmoid(v);
      if (c.act == lrpe_activation::silu) v = v * sigmoid(v);
    }
    if (c.act == lrpe_activation::softmax)
      for_each([&](auto i, auto t, auto k, auto j) {
        double most = -INFINITY, sum = 0;
        for (const std::size_t e : row(i, t, k, j)) most = std::max(most, x[e]);
        for (const std::size_t e : row(i, t, k, j)) sum += std::exp(x[e] - most);
        f[at(i, t, k, j)] = std::exp(x[at(i, t, k, j)] - most) / sum;
      });
    y.resize(2 * x.size());
    std::vector<double> df(x.size());
    dtheta.assign(theta.size(), 0.0);
    for_each([&](auto i, auto t, auto k, auto j) {
      const auto which = static_cast<std::size_t>(c.theta_at(k, j));
      const double p = position(i, t);
      const auto [cos_of_angle, sin_of_angle] = turned_by(p, theta[which]);
      const std::size_t from = at(i, t, k, j),
                        cosine = 2 * (from - static_cast<std::size_t>(j)) + static_cast<std::size_t>(j),
                        sine = cosine + static_cast<std::size_t>(c.d);
      y[cosine] = f[from] * cos_of_angle;
      y[sine] = f[from] * sin_of_angle;
      if (dy.empty()) return;
      df[from] = dy[cosine] * cos_of_angle + dy[sine] * sin_of_angle;
      dtheta[which] += f[from] * p * (dy[sine] * cos_of_angle - dy[cosine] * sin_of_angle);
    });
    dx = df;
    for_each([&](auto i, auto t, auto k, auto j) {
      const std::size_t e = at(i, t, k, j);
      const double v = x[e], s = sigmoid(v);
      if (c.act == lrpe_activation::relu) dx[e] = v > 0 ? df[e] : 0;
      if (c.act == lrpe_activation::sigmoid) dx[e] = df[e] * s * (1 - s);
      if (c.act == lrpe_activation::silu) dx[e] = df[e] * s * (1 + v * (1 - s));
      if (c.act != lrpe_activation::softmax) return;
      double mean = 0;
      for (const std::size_t other : row(i, t, k, j)) mean += f[other] * df[other];
      dx[e] = f[e] * (df[e] - mean);
      dx_terms = std::max(dx_terms, std::fabs(f[e] * df[e]));
    });
  }
  /// What errors of dx are measured by beside its own size. A softmax's gradient f (df - mean of df) is 0
  /// where df is the same along all of its row: with one element, or an x and a dy that are repeated along
  /// it. Then this reference, too, holds nothing but the roundings of the terms, and their size is the only
  /// one there is. Of every other gradient, 0.
  double dx_size() const {
    double most = 0;
    for (const double each : dx) most = std::max(most, std::fabs(each));
    return most <= 1e-12 * dx_terms ? dx_terms : 0;
  }
};

std::string mismatch_of(const lrpe_case& c, unsigned seed) {
  std::mt19937 random(seed);
  const op_case layouts{c.x_extents(), 0,      false,  false,        false, false, {}, 0,
                        c.type,        c.type, c.type, c.layout_seed};
  operand_memory x(random, layouts, c.type, c.x_extents(), false, random_values(random, c.count(), -2, 2));
  operand_memory dy(random, layouts, c.type, c.y_extents(), false,
                    random_values(random, 2 * c.count(), -1, 1));
  operand_memory theta(random, layouts, c.theta_type, c.theta_extents(), false,
                       random_values(random, count_of(c.theta_extents()), -1, 1));
  operand_memory y(random, layouts, c.type, c.y_extents(), true),
      dx(random, layouts, c.type, c.x_extents(), true),
      dx_alone(random, layouts, c.type, c.x_extents(), true),
      dtheta(random, layouts, c.theta_type, c.theta_extents(), true);
  lrpe_reference expected{c, x.block.read(), theta.block.read(), dy.block.read(), {}, {}, {}, {}, {}};
  for (std::int64_t i = 0; i < (c.position_rank == 2 ? c.b * c.n : c.n); ++i)
    expected.positions.push_back(static_cast<std::int64_t>(random() % 60) - 20 + c.offset);
  expected.run();

  ops::lrpe_options options;
  options.act = c.act;
  options.act_dim = c.act_dim;
  options.offset = c.position_rank == 0 ? c.offset : 5;  // which positions replace
  const memory_of<std::int64_t> wide(expected.positions.begin(), expected.positions.end());
  const memory_of<std::int32_t> narrow(expected.positions.begin(), expected.positions.end());
  const extent_list at = c.position_rank == 2 ? extent_list{c.b, c.n} : extent_list{c.n};
  if (c.position_rank > 0)
    options.positions =
        c.position_type == dtype::int64 ? array::of(wide.data(), at) : array::of(narrow.data(), at);
  run_on_device([&](auto& device) { ops::lrpe_cosine(device, x.view(), theta.view(), y.view(), options); });
  run_on_device([&](auto& device) {
    ops::lrpe_cosine_backward(device, x.view(), theta.view(), {dy.view(), dx.view(), dtheta.view()}, options);
  });
  run_on_device([&](auto& device) {
    ops::lrpe_cosine_backward(device, x.view(), theta.view(), {dy.view(), dx_alone.view(), {}}, options);
  });
  for (const operand_memory* each : {&y, &dx, &dx_alone, &dtheta})
    if (!each->block.is_intact_around()) return "memory beside the outputs was written";
  const bool in_double = c.type == dtype::float64;
  std::string wrong = mismatch("y", c.type, expected.y, y.block.read(), in_double ? 1e-13 : 4e-6);
  if (wrong.empty())
    wrong = gradient_mismatch("dx", c.type, expected.dx, dx.block.read(), in_double ? 1e-13 : 4e-6,
                              expected.dx_size());
  if (wrong.empty())
    wrong = gradient_mismatch("dx alone", c.type, expected.dx, dx_alone.block.read(),
                              in_double ? 1e-13 : 4e-6, expected.dx_size());
  if (wrong.empty())
    wrong = gradient_mismatch("dtheta", c.theta_type, expected.dtheta, dtheta.block.read(),
                              in_double ? 1e-12 : 1e-5);
  return wrong;
}

/// Of softmax, with the dimension along which it runs.
const std::pair<lrpe_activation, int> every_activation[] = {
    {lrpe_activation::none, -1}, {lrpe_activation::relu, -1},    {lrpe_activation::sigmoid, -1},
    {lrpe_activation::silu, -1}, {lrpe_activation::softmax, -1}, {lrpe_activation::softmax, 1}};
/// One head, one feature.
const std::pair<bool, bool> every_theta[] = {{false, false}, {true, false}, {false, true}};
/// Their rank (0: offset + index) and type.
const std::pair<int, dtype> every_position[] = {
    {0, dtype::int64}, {1, dtype::int32}, {1, dtype::int64}, {2, dtype::int32}, {2, dtype::int64}};
/// Of x and theta.
const std::pair<dtype, dtype> every_type[] = {
    {dtype::float32, dtype::float32},   {dtype::float64, dtype::float64}, {dtype::bfloat16, dtype::float32},
    {dtype::bfloat16, dtype::bfloat16}, {dtype::float16, dtype::float16}, {dtype::float16, dtype::float32},
    {dtype::float64, dtype::float32}};

std::string mismatch_of(const lrpe_case& c) {
  static unsigned seed = 0;
  return mismatch_of(c, ++seed);
}

/// The largest error of cosines and sines of so many positions from `first` on.
template <class T> double error_of_turns(std::int64_t first, double largest_theta) {
  constexpr std::int64_t n = 300, d = 64;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> angles(0.0, largest_theta);
  memory_of<T> ones(n * d, T(1)), theta(d), y(2 * n * d);
  for (T& each : theta) each = static_cast<T>(angles(random));
  ops::lrpe_options options;
  options.offset = first;
  run_on_device([&](auto& device) {
    ops::lrpe_cosine(device, array::of(ones.data(), {1, n, 1, d}), array::of(theta.data(), {1, d}),
                     array::of(y.data(), {1, n, 1, 2 * d}), options);
  });
  double worst = 0;
  for (std::int64_t t = 0; t < n; ++t)
    for (std::int64_t j = 0; j < d; ++j) {
      const auto [cosine, sine] =
          turned_by(static_cast<double>(first + t), static_cast<double>(theta[static_cast<std::size_t>(j)]));
      const auto at = static_cast<std::size_t>(t * 2 * d + j);
      worst = std::max({worst, std::abs(static_cast<double>(y[at]) - cosine),
                        std::abs(static_cast<double>(y[at + d]) - sine)});
    }
  return worst;
}

}  // namespace

TEST_CASE("lrpe_cosine agrees with loops, and its backward", "[ops][lrpe]") {
  unsigned turn = 0;
  for (const auto& [act, act_dim] : every_activation)
    for (const auto& [one_head, one_feature] : every_theta)
      for (const auto& [position_rank, position_type] : every_position)
        for (const auto& [type, theta_type] : every_type) {
          lrpe_case c;
          c.act = act, c.act_dim = act_dim;
          c.position_rank = position_rank, c.position_type = position_type;
          c.one_head = one_head, c.one_feature = one_feature;
          c.type = type, c.theta_type = theta_type;
          c.layout_seed = turn % 4;
          c.offset = turn % 3 == 0 ? 100 : 0;
          ++turn;
          INFO(c);
          CHECK(mismatch_of(c) == "");
        }
}

TEST_CASE("lrpe_cosine takes any size", "[ops][lrpe]") {
  const std::vector<extent_list> sizes = {{1, 1, 1, 1},   {2, 0, 2, 3},   {0, 4, 2, 3}, {3, 7, 1, 5},
                                          {1, 300, 2, 1}, {2, 33, 3, 67}, {2, 3, 1, 1}, {5, 2, 4, 129},
                                          {2, 1, 3, 5},   {2, 3, 2, 0},   {2, 3, 0, 4}, {0, 0, 0, 0}};
  unsigned turn = 0;
  for (const extent_list& size : sizes)
    for (const auto& [act, act_dim] : every_activation)
      for (const auto& [one_head, one_feature] : every_theta) {
        lrpe_case c;
        c.b = size[0], c.n = size[1], c.h = size[2], c.d = size[3];
        c.act = act, c.act_dim = act_dim;
        c.one_head = one_head, c.one_feature = one_feature;
        std::tie(c.type, c.theta_type) = every_type[turn % std::size(every_type)];
        std::tie(c.position_rank, c.position_type) = every_position[turn % std::size(every_position)];
        c.layout_seed = turn % 4;
        ++turn;
        INFO(c);
        CHECK(mismatch_of(c) == "");
      }
}

TEST_CASE("cosines and sines that follow from those before stay near their values", "[ops][lrpe]") {
  for (const std::int64_t first : {std::int64_t{0}, std::int64_t{5000}, (std::int64_t{1} << 24) - 300})
    for (const double largest_theta : {1e-3, 1.0, 100.0}) {
      CAPTURE(first, largest_theta);
      CHECK(error_of_turns<float>(first, largest_theta) < 2e-6);
      CHECK(error_of_turns<double>(first, largest_theta) < 3e-15);
    }
}

TEST_CASE("far positions keep the angle's digits", "[ops][lrpe]") {
  const std::int64_t limit = std::int64_t{1} << 31, turning_point = std::int64_t{1} << 24;
  unsigned turn = 0;
  for (const std::int64_t offset :
       {std::int64_t{1} << 20, turning_point - 8, turning_point - 2, turning_point, std::int64_t{1} << 30,
        limit - 70, -turning_point - 2, -limit + 20})
    for (const auto& [position_rank, position_type] : every_position)
      for (const auto& [one_head, one_feature] : every_theta)
        for (const auto& [type, theta_type] : every_type) {
          lrpe_case c;
          c.n = 9;
          c.act = turn % 3 == 0 ? lrpe_activation::silu : lrpe_activation::none;
          c.offset = offset, c.position_rank = position_rank, c.position_type = position_type;
          c.one_head = one_head, c.one_feature = one_feature;
          c.type = type, c.theta_type = theta_type;
          ++turn;
          INFO(c);
          CHECK(mismatch_of(c) == "");
        }
}

TEST_CASE("float64 counts positions beyond 31 bits", "[ops][lrpe]") {
  for (const std::int64_t offset :
       {std::int64_t{1} << 31, std::int64_t{1} << 40, -(std::int64_t{1} << 36) - 3})
    for (const int position_rank : {0, 1, 2}) {
      lrpe_case c;
      c.offset = offset, c.position_rank = position_rank;
      c.type = c.theta_type = dtype::float64;
      INFO(c);
      CHECK(mismatch_of(c) == "");
    }
}
