// expect: an equation is written with one =
// expect: equation_is_assigned<false, .*"y"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) == x(n));
}  // namespace
