// expect: TENSOR is used without its axes
// expect: tensor_has_axes<false, .*"a"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;

constexpr auto bad = scan(plain_sum, over(n).starting_from(a), x(n));
}  // namespace
