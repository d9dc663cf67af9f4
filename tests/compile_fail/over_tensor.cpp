// expect: over(...) takes one axis
// expect: over_takes_an_axis<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = scan(plain_sum, over(x), x(n));
}  // namespace
