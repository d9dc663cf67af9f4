// expect: the function must return one value
// expect: function_gives_value<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto f = fn([](auto v) { return state(v); });
constexpr auto bad = f(x(n));
}  // namespace
