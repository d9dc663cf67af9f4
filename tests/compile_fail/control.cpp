// The well-formed program beside the ill-formed ones: were it to fail, their failures would prove nothing.
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

[[maybe_unused]] constexpr auto sums = op<"sums">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n)));
}  // namespace
