// expect: write a < b < c as a < b && b < c
// expect: takes_values<false, .*"less"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = 0.0 < x(n) < 1.0;
}  // namespace
