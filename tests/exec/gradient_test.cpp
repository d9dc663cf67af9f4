#include "scandsl/pass/gradient.hpp"

#include <vector>

#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"w"> w;
constexpr tensor<"dy"> dy;
constexpr tensor<"dx"> dx;
constexpr tensor<"dw"> dw;
constexpr tensor<"dt"> dt;
constexpr scalar<"t"> t;

// [doc:scalar]
constexpr auto scaled = op<"scaled">(out<"y">(b, n) = scan(plain_sum, over(n), t* w(n) * x(b, n)));
constexpr auto dscaled = gradient(scaled);
// [/doc:scalar]
constexpr auto dscaled_x = gradient(scaled, x);

}  // namespace

TEST_CASE("a gradient is bound and run as any program", "[exec][gradient]") {
  const std::vector<float> xs = {1, 2, 3, 4, 5, 6}, ws = {1, 10, 100}, dys = {1, 0, 2, 0, 1, 0};
  // From each position on, the sum of dy: 3 2 2 in the first row, 1 1 0 in the second.
  std::vector<float> dxs(6), dws(3);
  float dt_value = 0;
  run<dscaled>(cpu{}, x = view(xs.data(), 2, 3), w = view(ws.data(), 3), t = 2, dy = view(dys.data(), 2, 3),
               dx = view(dxs.data(), 2, 3), dw = view(dws.data(), 3), dt = view(&dt_value));
  CHECK(dxs == std::vector<float>{6, 40, 400, 2, 20, 0});
  CHECK(dws == std::vector<float>{2 * (3 + 4), 2 * (4 + 5), 2 * 6});
  CHECK(dt_value == 3 + 4 + 10 * (4 + 5) + 100 * 6);

  std::vector<float> alone(6);  // any of several gradients may be left out; or ask for one alone
  run<dscaled>(cpu{}, x = view(xs.data(), 2, 3), w = view(ws.data(), 3), t = 2, dy = view(dys.data(), 2, 3),
               dx = view(alone.data(), 2, 3));
  CHECK(alone == dxs);
  run<dscaled_x>(cpu{}, w = view(ws.data(), 3), t = 2, dy = view(dys.data(), 2, 3),
                 dx = view(alone.data(), 2, 3));
  CHECK(alone == dxs);
}
