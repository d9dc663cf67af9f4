// expect: FUNCTION takes a condition where it got a value
// expect: takes_conditions<false, .*"not"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = !x(n);
}  // namespace
