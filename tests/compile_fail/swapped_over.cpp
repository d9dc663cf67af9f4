// expect: write over(n), not n, and before the operands
// expect: scan_takes_over<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = scan(plain_sum, x(n), over(n));
}  // namespace
