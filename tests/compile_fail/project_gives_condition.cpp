// expect: project(state) must take one state and return one value
// expect: project_gives_value<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto mine = scan_op(
    state(0.0), [](auto v) { return state(v); },
    [](auto l, auto r) {
      auto [p] = l;
      auto [q] = r;
      return state(p + q);
    },
    [](auto v) {
      auto [p] = v;
      return p > 0.0;
    });
constexpr auto bad = op<"bad">(out<"y">(n) = scan(mine, over(n), x(n)));
}  // namespace
