// expect: no scanned operand has this AXIS
// expect: scan_axis<false, .*"s"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;

constexpr auto bad = scan(plain_sum, over(s), x(b, n));
}  // namespace
