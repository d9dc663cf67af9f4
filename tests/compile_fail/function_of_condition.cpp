// expect: FUNCTION takes values, but got a condition
// expect: takes_values<false, .*"fn"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) = square(x(n) < 0.0));
}  // namespace
