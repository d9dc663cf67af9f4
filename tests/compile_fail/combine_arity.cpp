// expect: combine(left, right) must take two states
// expect: combine_gives_state<false, 1
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto mine = scan_op(
    state(0.0), [](auto v) { return state(v); }, [](auto l) { return l; },
    [](auto v) {
      auto [p] = v;
      return p;
    });
constexpr auto bad = scan(mine, over(n), x(n));
}  // namespace
