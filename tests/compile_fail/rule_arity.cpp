// expect: rule takes the ARGUMENTS arguments and then the function's value
// expect: rule_matches<false, 1
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto f = fn([](auto u) { return u * u; }).derivative([](auto u) { return u; });
constexpr auto bad = op<"bad">(out<"y">(n) = f(x(n)));
}  // namespace
