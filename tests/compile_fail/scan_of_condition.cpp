// expect: FUNCTION takes values, but got a condition
// expect: takes_values<false, .*"scan"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) = scan(plain_sum, over(n), x(n) < 0.0));
}  // namespace
