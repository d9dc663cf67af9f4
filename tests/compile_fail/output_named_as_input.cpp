// expect: NAME stands for two things
// expect: one_role<false, .*"x"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"x">(n) = x(n));
}  // namespace
