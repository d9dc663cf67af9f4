#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "../ops/md_lrpe_cosine/program.hpp"
#include "docs/golden.hpp"
#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"
#include "support/derivative.hpp"

using namespace docs_test;

namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"h"> h;
constexpr axis<"d"> d;
constexpr axis<"v"> v;
constexpr axis<"part"> part;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"g"> g;
constexpr tensor<"w"> w;
constexpr tensor<"dy"> dy;
constexpr tensor<"dx"> dx;
constexpr tensor<"theta"> theta;
constexpr tensor<"decay"> decay;

// [doc:encoding]
constexpr integer_scalar<"offset"> offset;
constexpr auto position = index(n) + offset;  // an integer
constexpr auto encoding = op<"encoding">(
    out<"y">(b, n, h, part, d) = stack(part, x(b, n, h, d) * cos_of_product(position, theta(h, d)),
                                       x(b, n, h, d) * sin_of_product(position, theta(h, d))));
constexpr auto dencoding = gradient(encoding);
// [/doc:encoding]

// [doc:gather]
constexpr integer_tensor<"target"> target;
constexpr auto picked = op<"picked">(out<"y">(n) = w(v[target(n)]) * x(n, v[target(n)]));
constexpr auto dpicked = gradient(picked);
// [/doc:gather]

// [doc:fused]
constexpr auto turned = [](auto value) {
  return stack(part, value * cos_of_product(index(n), theta(h, d)),
               value * sin_of_product(index(n), theta(h, d)));
};
constexpr auto layer =
    op<"layer">(out<"y">(b, n, h, part, d) = sigmoid(g(b, n, h, d)) * scan(decayed_sum, over(n), decay(h),
                                                                           turned(silu(x(b, n, h, d)))));
constexpr auto dlayer = gradient(layer, x, g);
// [/doc:fused]
static_assert(kernels_of<layer>.programs.count == 1);
static_assert(kernels_of<dlayer>.programs.count == 1);

}  // namespace

TEST_CASE("positional encodings print as the page shows them", "[docs][positions]") {
  CHECK(golden("positional.txt", "encoding") == describe(encoding) + "\n");
  CHECK(golden("positional.txt", "dencoding") == describe(dencoding) + "\n");
  CHECK(golden("positional.txt", "gather") == describe(picked) + "\n" + describe(dpicked) + "\n");
  CHECK(golden("positional.txt", "grid") == describe(ops::md_lrpe_cosine_program::program) + "\n");
  CHECK(golden("positional.txt", "latex") == describe_latex(encoding) + "\n");
  CHECK(golden("positional.txt", "dencoding-latex") == describe_latex(dencoding) + "\n");
  CHECK(golden("positional.txt", "dpicked-latex") == describe_latex(dpicked) + "\n");
  CHECK(golden("positional.txt", "dlayer") == describe(dlayer) + "\n");
  CHECK(golden("positional.txt", "dlayer-latex") == describe_latex(dlayer) + "\n");
}

TEST_CASE("the fused layer is what it says, and its gradient too", "[docs][positions]") {
  constexpr std::size_t length = 5, features = 3;
  std::vector<float> xs, gs, thetas{0.3F, -0.7F, 0.9F}, ys(2 * length * features);
  for (std::size_t i = 0; i < length * features; ++i) {
    xs.push_back(0.1F * static_cast<float>(i) - 0.6F);
    gs.push_back(0.5F - 0.07F * static_cast<float>(i));
  }
  const float kept = 0.75F;
  // [doc:run]
  run<layer>(cpu{}, x = view(xs.data(), 1, length, 1, features), g = view(gs.data(), 1, length, 1, features),
             theta = view(thetas.data(), 1, features), decay = view(&kept, 1),
             y = view(ys.data(), 1, length, 1, 2, features));
  // [/doc:run]
  for (std::size_t j = 0; j < features; ++j) {
    double cosines = 0, sines = 0;
    for (std::size_t t = 0; t < length; ++t) {
      const double value = xs[t * features + j], silu_of = value / (1 + std::exp(-value)),
                   angle = static_cast<double>(t) * thetas[j],
                   gate = 1 / (1 + std::exp(-double{gs[t * features + j]}));
      cosines = kept * cosines + silu_of * std::cos(angle);
      sines = kept * sines + silu_of * std::sin(angle);
      CHECK(ys[(2 * t) * features + j] == Approx(gate * cosines).margin(1e-6));
      CHECK(ys[(2 * t + 1) * features + j] == Approx(gate * sines).margin(1e-6));
    }
  }
  std::mt19937 random(3);
  generate::random_case c;
  const auto drawn = [&](std::vector<std::int64_t> extents) {
    std::int64_t count = 1;
    for (const std::int64_t each : extents) count *= each;
    oracle_tensor values{{}, extents};
    for (std::int64_t i = 0; i < count; ++i) values.values.push_back(derivative::normal(random));
    return values;
  };
  c.inputs = {{"x", drawn({2, 4, 2, 3})},
              {"g", drawn({2, 4, 2, 3})},
              {"theta", drawn({2, 3})},
              {"decay", drawn({2})}};
  CHECK(derivative::difference_mismatch(layer, gradient(layer), c, random) < 1e-8);
}

TEST_CASE("a class is picked, and its gradient put back", "[docs][positions]") {
  // [doc:pick]
  const std::vector<float> logits{1, 2, 3, 4, 5, 6, 7, 8, 9}, weights{1, 10, 100};
  const std::vector<std::int64_t> classes{2, -100, 0};  // outside of the axis: 0
  std::vector<float> values(3);
  run<picked>(cpu{}, x = view(logits.data(), 3, 3), w = view(weights.data(), 3),
              target = view(classes.data(), 3), y = view(values.data(), 3));
  CHECK(values == std::vector<float>{300, 0, 7});
  // [/doc:pick]
  const std::vector<float> ones(3, 1.0F);
  std::vector<float> back(9);
  run<dpicked>(cpu{}, w = view(weights.data(), 3), target = view(classes.data(), 3),
               dy = view(ones.data(), 3), dx = view(back.data(), 3, 3), x = view(logits.data(), 3, 3));
  CHECK(back == std::vector<float>{0, 0, 100, 0, 0, 0, 1, 0, 0});
}
