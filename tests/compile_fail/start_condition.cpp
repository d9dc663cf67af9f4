// expect: FUNCTION takes values, but got a condition
// expect: takes_values<false, .*"starting_from"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;

constexpr auto bad = op<"bad">(out<"y">(b, n) = scan(plain_sum, over(n).starting_from(a(b) < 0.0), x(b, n)));
}  // namespace
