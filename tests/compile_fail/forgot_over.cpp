// expect: write over(n), not n
// expect: scan_takes_over<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = scan(plain_sum, n, x(n));
}  // namespace
