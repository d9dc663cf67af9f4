// expect: a scanned operand varies along AXIS
// expect: segments_are_no_operand_axis<false, .*"s"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"offsets"> offsets;

constexpr auto bad = scan(plain_sum, over(n).restart_at(offsets(s)), x(s, n));
}  // namespace
