#include <algorithm>

#include "ops/op_case.hpp"
#include "scandsl/ops/md_lrpe_cosine.hpp"
#include "support/catch.hpp"

// md_lrpe_cosine, its angles and its backward against loops in float64.

using namespace op_test;

namespace {

struct grid_case {
  std::int64_t b = 2, h = 2, d = 5, extra = 0;
  extent_list shape = {3, 4};
  dtype type = dtype::float32, theta_type = dtype::float32;
  unsigned layout_seed = 0;

  std::int64_t dimensions() const { return static_cast<std::int64_t>(shape.size()); }
  std::int64_t e() const { return (d + dimensions() - 1) / dimensions(); }
  std::int64_t tokens() const { return extra + count_of(shape); }
  extent_list x_extents() const { return {b, h, tokens(), d}; }
  extent_list y_extents() const { return {b, h, tokens(), 2 * d}; }
  /// The position of token t along the dimension that feature j belongs to: digits of t, from the last one
  /// on.
  std::int64_t position(std::int64_t t, std::int64_t j) const {
    if (t < extra) return 0;
    std::int64_t rest = t - extra;
    for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i])
      if (static_cast<std::int64_t>(i) == j / e()) return rest % shape[i];
    return -1;
  }
};

std::ostream& operator<<(std::ostream& out, const grid_case& c) {
  out << name_of(c.type) << " theta " << name_of(c.theta_type) << " [" << c.b << ", " << c.h << ", "
      << c.extra << " +";
  for (const std::int64_t size : c.shape) out << ' ' << size;
  return out << ", " << c.d << "] layout " << c.layout_seed;
}

std::string mismatch_of(const grid_case& c) {
  static unsigned seed = 0;
  std::mt19937 random(++seed);
  const op_case layouts{c.x_extents(), 0,      false,  false,        false, false, {}, 0,
                        c.type,        c.type, c.type, c.layout_seed};
  const auto memory = [&](dtype type, const extent_list& extents, bool is_output) {
    return operand_memory(random, layouts, type, extents, is_output,
                          random_values(random, count_of(extents), -1, 1));
  };
  const dtype angle_type = c.type == dtype::float64 ? c.type : dtype::float32;
  const extent_list angle_extents{c.h, c.tokens(), c.d};
  operand_memory x = memory(c.type, c.x_extents(), false), dy = memory(c.type, c.y_extents(), false),
                 theta = memory(c.theta_type, {c.h, c.e()}, false), y = memory(c.type, c.y_extents(), true),
                 dx = memory(c.type, c.x_extents(), true), dx_alone = memory(c.type, c.x_extents(), true),
                 dtheta = memory(c.theta_type, {c.h, c.e()}, true),
                 angles = memory(angle_type, angle_extents, true),
                 table = memory(angle_type, angle_extents, false),
                 of_table = memory(c.type, c.y_extents(), true),
                 dx_of_table = memory(c.type, c.x_extents(), true);

  const std::vector<double> xs = x.block.read(), dys = dy.block.read(), thetas = theta.block.read(),
                            tables = table.block.read();
  std::vector<double> ys(2 * xs.size()), dxs(xs.size()), dthetas(thetas.size()), reduced,
      ys_of_table(2 * xs.size()), dxs_of_table(xs.size());
  for (std::int64_t i = 0; i < c.b; ++i)
    for (std::int64_t k = 0; k < c.h; ++k)
      for (std::int64_t t = 0; t < c.tokens(); ++t)
        for (std::int64_t j = 0; j < c.d; ++j) {
          const auto row = ((i * c.h + k) * c.tokens() + t) * c.d;
          const auto at = static_cast<std::size_t>(row + j), cosine = static_cast<std::size_t>(2 * row + j),
                     sine = cosine + static_cast<std::size_t>(c.d),
                     which = static_cast<std::size_t>(k * c.e() + j % c.e()),
                     in_table = static_cast<std::size_t>((k * c.tokens() + t) * c.d + j);
          const double p = static_cast<double>(c.position(t, j)), angle = p * thetas[which];
          ys[cosine] = xs[at] * std::cos(angle), ys[sine] = xs[at] * std::sin(angle);
          dxs[at] = dys[cosine] * std::cos(angle) + dys[sine] * std::sin(angle);
          dthetas[which] += xs[at] * p * (dys[sine] * std::cos(angle) - dys[cosine] * std::sin(angle));
          if (i == 0) reduced.push_back(std::remainder(angle, 2 * std::acos(-1.0)));
          ys_of_table[cosine] = xs[at] * std::cos(tables[in_table]);
          ys_of_table[sine] = xs[at] * std::sin(tables[in_table]);
          dxs_of_table[at] =
              dys[cosine] * std::cos(tables[in_table]) + dys[sine] * std::sin(tables[in_table]);
        }

  ops::md_lrpe_options options{c.extra, {}}, with_table{c.extra, table.view()};
  run_on_device(
      [&](auto& device) { ops::md_lrpe_cosine(device, x.view(), theta.view(), c.shape, y.view(), options); });
  run_on_device([&](auto& device) {
    ops::md_lrpe_cosine(device, x.view(), theta.view(), c.shape, of_table.view(), with_table);
  });
  run_on_device([&](auto& device) {
    ops::md_lrpe_cosine_backward(device, x.view(), theta.view(), c.shape,
                                 {dy.view(), dx.view(), dtheta.view()}, options);
  });
  run_on_device([&](auto& device) {
    ops::md_lrpe_cosine_backward(device, x.view(), theta.view(), c.shape, {dy.view(), dx_alone.view(), {}},
                                 options);
  });
  run_on_device([&](auto& device) {
    ops::md_lrpe_cosine_backward(device, x.view(), theta.view(), c.shape, {dy.view(), dx_of_table.view(), {}},
                                 with_table);
  });
  const bool makes_angles = c.theta_type == angle_type;
  if (makes_angles)
    run_on_device(
        [&](auto& device) { ops::md_lrpe_angles(device, theta.view(), c.shape, angles.view(), c.extra); });
  for (const operand_memory* each : {&y, &dx, &dx_alone, &dtheta, &angles, &of_table, &dx_of_table})
    if (!each->block.is_intact_around()) return "memory beside the outputs was written";
  const double close = c.type == dtype::float64 ? 1e-13 : 4e-6;
  std::string wrong = mismatch("y", c.type, ys, y.block.read(), close);
  const auto then = [&](const std::string& next) { wrong = wrong.empty() ? next : wrong; };
  then(mismatch("y of angles", c.type, ys_of_table, of_table.block.read(), close));
  then(gradient_mismatch("dx", c.type, dxs, dx.block.read(), close));
  then(gradient_mismatch("dx alone", c.type, dxs, dx_alone.block.read(), close));
  then(gradient_mismatch("dx of angles", c.type, dxs_of_table, dx_of_table.block.read(), close));
  then(gradient_mismatch("dtheta", c.theta_type, dthetas, dtheta.block.read(), 4 * close));
  if (makes_angles && c.b > 0) then(mismatch("angles", angle_type, reduced, angles.block.read(), close / 4));
  return wrong;
}

}  // namespace

TEST_CASE("md_lrpe_cosine agrees with loops, and its backward", "[ops][lrpe]") {
  unsigned turn = 0;
  for (const extent_list& shape :
       {extent_list{7}, {3, 4}, {2, 3, 4}, {1, 5, 1}, {2, 1, 3, 2}, {2, 2, 2, 1, 2}, {0, 3}, {1}})
    for (const std::int64_t d : {1, 3, 6, 7, 16})
      for (const std::int64_t extra : {0, 3})
        for (const auto& [type, theta_type] : {std::pair{dtype::float32, dtype::float32},
                                               {dtype::float64, dtype::float64},
                                               {dtype::bfloat16, dtype::float32},
                                               {dtype::float16, dtype::float16}}) {
          const grid_case c{2, 2, d, extra, shape, type, theta_type, turn++ % 4};
          INFO(c);
          CHECK(mismatch_of(c) == "");
        }
}

TEST_CASE("md_lrpe_cosine takes any size", "[ops][lrpe]") {
  const extent_list longest(16, 1);
  unsigned turn = 0;
  for (const auto& [b, h, d] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {0, 2, 3}, {3, 1, 129}, {1, 1, 5}, {2, 0, 4}, {2, 2, 0}})
    for (const extent_list& shape : {extent_list{5, 9}, {1, 1}, {0, 9}, longest})
      for (const std::int64_t extra : {0, 2})
        for (const auto& [type, theta_type] : {std::pair{dtype::float32, dtype::float32},
                                               {dtype::float64, dtype::float64},
                                               {dtype::bfloat16, dtype::bfloat16},
                                               {dtype::float16, dtype::float32}}) {
          const grid_case c{b, h, d, extra, shape, type, theta_type, turn++ / 4 % 4};
          INFO(c);
          CHECK(mismatch_of(c) == "");
        }
}

TEST_CASE("md_lrpe_cosine of many sequences, and of one", "[ops][lrpe]") {
  unsigned turn = 0;
  for (const std::int64_t b : {1, 5, 6, 19})  // the CPU walks along few sequences otherwise than along many
    for (const auto& [type, theta_type] : {std::pair{dtype::float32, dtype::float32},
                                           {dtype::float64, dtype::float64},
                                           {dtype::bfloat16, dtype::float32}}) {
      const grid_case c{b, 2, 21, 3, {2, 3, 4}, type, theta_type, turn++ % 4};
      INFO(c);
      CHECK(mismatch_of(c) == "");
    }
}

TEST_CASE("a sequence's bits do not depend on how many there are", "[ops][lrpe]") {
  constexpr std::int64_t many = 9, h = 2, tokens = 30, d = 37;
  memory_of<float> x(many * h * tokens * d), theta(h * 19), all(2 * x.size()), one(all.size() / many);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> any(-1, 1);
  for (auto* each : {&x, &theta})
    for (float& value : *each) value = any(random);
  const extent_list shape{5, 6};
  const auto encode = [&](float* from, float* to, std::int64_t b) {
    run_on_device([&](auto& device) {
      ops::md_lrpe_cosine(device, array::of(from, {b, h, tokens, d}), array::of(theta.data(), {h, 19}), shape,
                          array::of(to, {b, h, tokens, 2 * d}));
    });
  };
  encode(x.data(), all.data(), many);
  encode(x.data() + 4 * h * tokens * d, one.data(), 1);
  CHECK(std::equal(one.begin(), one.end(), all.begin() + 4 * h * tokens * 2 * d));
}

TEST_CASE("extra tokens become themselves and zeros", "[ops][lrpe]") {
  const memory_of<float> theta(2 * 2, 0.5F);
  memory_of<float> x(2 * 7 * 3), y(2 * 7 * 6, 77.0F);
  std::iota(x.begin(), x.end(), 1.0F);
  const extent_list shape{2, 2};
  run_on_device([&](auto& device) {
    ops::md_lrpe_cosine(device, array::of(x.data(), {1, 2, 7, 3}), array::of(theta.data(), {2, 2}), shape,
                        array::of(y.data(), {1, 2, 7, 6}), {3, {}});
  });
  for (std::size_t k = 0; k < 2; ++k)
    for (std::size_t t = 0; t < 3; ++t)
      for (std::size_t j = 0; j < 6; ++j)
        CHECK(y[(k * 7 + t) * 6 + j] == (j < 3 ? x[(k * 7 + t) * 3 + j] : 0.0F));
}

TEST_CASE("grids, for compute-sanitizer", "[.sanitize]") {
  CHECK(mismatch_of({2, 2, 16, 3, {2, 3, 4}, dtype::bfloat16, dtype::float32, 0}) == "");
  CHECK(mismatch_of({1, 3, 7, 0, {5, 9}, dtype::float32, dtype::float32, 2}) == "");
}
