// expect: TENSOR is used with two different lists of axes
// expect: one_axis_list<false, .*"x"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(b, n) = x(b, n) + x(n, b));
}  // namespace
