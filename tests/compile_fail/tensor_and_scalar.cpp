// expect: NAME stands for two things
// expect: one_role<false, .*"x"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr scalar<"x"> x_number;
constexpr auto bad = op<"bad">(out<"y">(n) = x(n) * x_number);
}  // namespace
