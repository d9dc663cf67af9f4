// expect: operand is a tensor with its axes or a scalar
// expect: optional_operand<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = value_or(x(n) * 2.0, 0.0);
}  // namespace
