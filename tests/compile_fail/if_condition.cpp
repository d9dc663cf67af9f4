// expect: use select(condition, a, b)
// expect: condition_is_no_bool<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto relu2 = fn([](auto v) {
  if (v > 0.0) return v * 1.0;
  return v * 2.0;
});
constexpr auto bad = relu2(x(n));
}  // namespace
