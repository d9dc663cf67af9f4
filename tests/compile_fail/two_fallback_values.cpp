// expect: throw-expression
// expect: a tensor is used with two different fallbacks
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) = value_or(x(n), 0.0) + value_or(x(n), 1.0));
}  // namespace
