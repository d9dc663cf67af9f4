// expect: two equations declare OUTPUT
// expect: output_once<false, .*"y"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;

constexpr auto bad = op<"bad">(out<"y">(n) = x(n), out<"y">(n) = a(n));
}  // namespace
