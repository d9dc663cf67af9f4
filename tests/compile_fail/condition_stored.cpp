// expect: an output takes a value, but got a condition
// expect: output_is_a_value<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = out<"y">(n) = x(n) < 0.0;
}  // namespace
