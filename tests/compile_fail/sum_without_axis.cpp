// expect: sum(over(axis), operand): write over(n)
// expect: scan_takes_over<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = sum(x(n));
}  // namespace
