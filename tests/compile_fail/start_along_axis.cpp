// expect: an initial state cannot vary along the scanned AXIS
// expect: start_is_before_the_scan<false, .*"n"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;

constexpr auto bad = scan(plain_sum, over(n).starting_from(a(n)), x(n));
}  // namespace
