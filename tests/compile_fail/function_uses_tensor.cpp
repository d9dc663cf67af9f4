// expect: the function uses NAME from outside
// expect: function_is_closed<false, .*"a"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;

constexpr auto f = fn([](auto v) { return v * a(n); });
constexpr auto bad = op<"bad">(out<"y">(n) = f(x(n)));
}  // namespace
