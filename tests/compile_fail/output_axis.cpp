// expect: varies along AXIS, which OUTPUT does not declare
// expect: output_axis<false, .*"y".*"n"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = out<"y">(b) = x(b, n) * 2.0;
}  // namespace
