// expect: over(...) takes one axis
// expect: over_takes_an_axis<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = sum(over(b, n), x(b, n));
}  // namespace
