// expect: last(...) takes scan(...) itself
// expect: last_of_a_scan<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = last(exp(scan(plain_sum, over(n), x(n))));
}  // namespace
