// expect: the arguments of an fn have no axes: scan outside of it
// expect: scan_outside_functions<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto f = fn([](auto v) { return scan(plain_sum, over(n), v); });
constexpr auto bad = op<"bad">(out<"y">(n) = f(x(n)));
}  // namespace
