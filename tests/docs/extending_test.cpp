#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "scandsl/ir/oracle.hpp"
#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;

// [doc:operator]
// How far the values so far lie apart: the largest minus the smallest. The state is (smallest, largest).
constexpr auto spread = scan_op(
    state(inf, -inf),                                // identity: no value yet
    [](auto value) { return state(value, value); },  // lift: one position
    [](auto left, auto right) {                      // combine: left, then right
      auto [low, high] = left;
      auto [lower, higher] = right;
      return state(min(low, lower), max(high, higher));
    },
    [](auto whole) {  // project: the value that the scan gives
      auto [low, high] = whole;
      return high - low;
    });
constexpr auto spreads = op<"spreads">(out<"y">(n) = scan(spread, over(n), x(n)));
// [/doc:operator]

// [doc:laws]
using combine_spread = combiner<ref<spreads>, 0, all_components<ref<spreads>, 0>>;
using spread_state = combine_spread::states<double>;

spread_state combined(spread_state left, const spread_state& right) {
  combine_spread::apply(left, right);
  return left;
}
// [/doc:laws]

}  // namespace

TEST_CASE("a new scan operator fulfils the laws", "[docs]") {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> value(-3.0, 3.0);
  const auto any_state = [&] {
    const double first = value(random), second = value(random);
    return combined({first, first}, {second, second});
  };
  // [doc:check]
  const spread_state identity = {spreads.scans[0].identity[0], spreads.scans[0].identity[1]};
  for (int i = 0; i < 100; ++i) {
    const spread_state s = any_state(), t = any_state(), u = any_state();
    CHECK(combined(identity, s) == s);
    CHECK(combined(s, identity) == s);
    CHECK(combined(combined(s, t), u) == combined(s, combined(t, u)));
  }
  // [/doc:check]
}

TEST_CASE("a new program agrees with the interpreter", "[docs]") {
  // [doc:oracle]
  const std::vector<double> values = {2, -1, 5, 3, -4};
  std::vector<double> result(5);
  run<spreads>(cpu{}, x = view(values.data(), 5), y = view(result.data(), 5));
  CHECK(result == oracle(spreads, {{"x", {values, {5}}}}).at("y").values);
  // [/doc:oracle]
  CHECK(result == std::vector<double>{0, 3, 6, 6, 9});
}
