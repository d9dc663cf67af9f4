// expect: takes one or more equations
// expect: takes_equations<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(scan(plain_sum, over(n), x(n)));
}  // namespace
