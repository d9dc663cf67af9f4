// expect: or partials(...) of as many derivatives
// expect: rule_matches<false, 2
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;

constexpr auto f = fn([](auto u, auto v) { return u * v; }).derivative([](auto u, auto, auto) { return u; });
constexpr auto bad = op<"bad">(out<"y">(n) = f(x(n), a(n)));
}  // namespace
