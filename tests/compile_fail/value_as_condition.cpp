// expect: FUNCTION takes a condition where it got a value
// expect: takes_conditions<false, .*"select"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = select(x(n), 1.0, 2.0);
}  // namespace
