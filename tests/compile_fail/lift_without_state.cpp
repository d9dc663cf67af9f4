// expect: lift must return state(...) with EXPECTED components
// expect: lift_gives_state<false, 1
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto mine = scan_op(
    state(0.0), [](auto v) { return v; }, [](auto l, auto) { return l; },
    [](auto v) {
      auto [p] = v;
      return p;
    });
constexpr auto bad = scan(mine, over(n), x(n));
}  // namespace
