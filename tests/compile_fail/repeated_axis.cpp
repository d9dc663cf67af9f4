// expect: TENSOR has the same axis twice
// expect: distinct_axes<false, .*"x"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = x(n, b, n);
}  // namespace
