// expect: varies along AXIS, which OUTPUT does not declare
// expect: output_axis<false, .*"y".*"s"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"offsets"> offsets;

constexpr auto bad = out<"y">(b) = last(scan(plain_sum, over(n).restart_at(offsets(s)), x(b, n)));
}  // namespace
