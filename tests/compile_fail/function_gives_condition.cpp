// expect: the function must return one value
// expect: function_gives_value<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto f = fn([](auto v) { return v < 0.0; });
constexpr auto bad = op<"bad">(out<"y">(n) = f(x(n)));
}  // namespace
