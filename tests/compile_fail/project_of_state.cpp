// expect: project(state) must take one state and return one value
// expect: project_gives_value<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto mine = scan_op(
    state(0.0), [](auto v) { return state(v); }, [](auto l, auto) { return l; }, [](auto v) { return v; });
constexpr auto bad = scan(mine, over(n), x(n));
}  // namespace
