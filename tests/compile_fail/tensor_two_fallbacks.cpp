// expect: NAME is used with and without value_or
// expect: one_fallback<false, .*"x"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) = x(n) + value_or(x(n), 1.0));
}  // namespace
