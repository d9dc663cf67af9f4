// expect: FUNCTION takes values, but got a condition
// expect: takes_values<false, .*"add"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = (x(n) < 0.0) + 1.0;
}  // namespace
