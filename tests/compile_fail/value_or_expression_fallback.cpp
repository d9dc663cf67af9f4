// expect: the fallback is a number
// expect: fallback_is_number<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;

constexpr auto bad = value_or(x(n), a(n));
}  // namespace
