// expect: state(...) takes values, but got a condition
// expect: state_of_values<false
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
      return state(p < q);
    },
    [](auto v) {
      auto [p] = v;
      return p;
    });
constexpr auto bad = op<"bad">(out<"y">(n) = scan(mine, over(n), x(n)));
}  // namespace
