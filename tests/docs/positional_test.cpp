#include <cstdint>
#include <string>
#include <vector>

#include "../examples/layer.hpp"
#include "../ops/md_lrpe_cosine/program.hpp"
#include "docs/golden.hpp"
#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"
#include "support/layer_reference.hpp"

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
constexpr tensor<"w"> w;
constexpr tensor<"dy"> dy;
constexpr tensor<"dx"> dx;
constexpr tensor<"theta"> theta;

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

static_assert(kernels_of<layer_op::layer>.programs.count == 1);
static_assert(kernels_of<layer_op::dlayer>.programs.count == 1);

}  // namespace

TEST_CASE("positional encodings print as the page shows them", "[docs][positions]") {
  CHECK(golden("positional.txt", "encoding") == describe(encoding) + "\n");
  CHECK(golden("positional.txt", "dencoding") == describe(dencoding) + "\n");
  CHECK(golden("positional.txt", "gather") == describe(picked) + "\n" + describe(dpicked) + "\n");
  CHECK(golden("positional.txt", "grid") == describe(ops::md_lrpe_cosine_program::program) + "\n");
  CHECK(golden("positional.txt", "latex") == describe_latex(encoding) + "\n");
  CHECK(golden("positional.txt", "dencoding-latex") == describe_latex(dencoding) + "\n");
  CHECK(golden("positional.txt", "dpicked-latex") == describe_latex(dpicked) + "\n");
  CHECK(golden("positional.txt", "dlayer") == describe(layer_op::dlayer) + "\n");
  CHECK(golden("positional.txt", "dlayer-latex") == describe_latex(layer_op::dlayer) + "\n");
}

namespace {

/// Runs the layer and its gradient on the CPU in T, and compares.
template <class T> void check_layer(layer_reference of, double tolerance) {
  const std::vector<T> xs = of.held<T>(of.x), gs = of.held<T>(of.g), thetas = of.held<T>(of.theta),
                       decays = of.held<T>(of.decay), dys = of.held<T>(of.dy);
  std::vector<T> ys(dys.size()), dxs(xs.size()), dgs(xs.size());
  const auto on_lanes = [&](auto* data) { return view(data, of.batch, of.length, of.heads, of.features); };
  const auto on_parts = [&](auto* data) { return view(data, of.batch, of.length, of.heads, 2, of.features); };
  namespace l = layer_op;
  const auto restart = static_cast<std::int64_t>(of.every);
  run<l::layer>(cpu{}, l::x = on_lanes(xs.data()), l::g = on_lanes(gs.data()),
                l::theta = view(thetas.data(), of.heads, of.features),
                l::decay = view(decays.data(), of.heads), l::chunk = restart, l::y = on_parts(ys.data()));
  run<l::dlayer>(cpu{}, l::x = on_lanes(xs.data()), l::g = on_lanes(gs.data()),
                 l::theta = view(thetas.data(), of.heads, of.features),
                 l::decay = view(decays.data(), of.heads), l::chunk = restart, l::dy = on_parts(dys.data()),
                 l::dx = on_lanes(dxs.data()), l::dg = on_lanes(dgs.data()));
  of.compute();
  CAPTURE(of.length, of.features, of.every);
  CHECK(of.error_in(of.size_of_y, ys, of.y) < tolerance);
  CHECK(of.error_in(of.size_of_dx, dxs, of.dx) < tolerance);
  CHECK(of.error_in(of.size_of_dg, dgs, of.dg) < tolerance);
}

}  // namespace

TEST_CASE("the fused layer is what it says, and its gradient too", "[docs][positions]") {
  for (const std::size_t length : {0U, 1U, 5U, 300U, 5000U})
    for (const std::size_t chunk : {0U, 64U}) {
      check_layer<float>({2, length, 2, 7, chunk}, 4e-6);  // sines and cosines err by 2e-6
      check_layer<float>({1, length, 1, 1, chunk}, 4e-6);
      check_layer<double>({1, length, 3, 16, chunk}, 1e-12);
    }
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
