// expect: the function does not take GOT arguments
// expect: function_arity<false, 1
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto f = fn([](auto u, auto v) { return u * v; });
constexpr auto bad = f(x(n));
}  // namespace
