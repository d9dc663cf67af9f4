// expect: combine(left, right) must take two states
// expect: state_is_no_value<false, 1
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto mine = scan_op(
    state(0.0), [](auto v) { return state(v); }, [](auto l, auto r) { return l + r; },
    [](auto v) {
      auto [p] = v;
      return p;
    });
constexpr auto bad = scan(mine, over(n), x(n));
}  // namespace
