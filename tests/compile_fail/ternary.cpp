// expect: use select(condition, a, b)
// expect: condition_is_no_bool<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;

constexpr auto bad = x(n) > 0.0 ? a(n) : a(n);
}  // namespace
