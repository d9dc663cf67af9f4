// expect: AXIS stands where a value is taken
// expect: axis_is_no_value<false, .*"n"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = x(n) * n;
}  // namespace
