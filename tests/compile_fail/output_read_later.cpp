// expect: NAME stands for two things
// expect: one_role<false, .*"y"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;

constexpr auto bad = op<"bad">(out<"y">(n) = x(n), out<"z">(n) = y(n));
}  // namespace
