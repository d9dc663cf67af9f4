// expect: NAME stands for two things
// expect: one_role<false, .*"offsets"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"offsets"> offsets;

constexpr auto bad =
    op<"bad">(out<"y">(n) = scan(plain_sum, over(n).restart_at(offsets(s)), x(n)), out<"z">(s) = offsets(s));
}  // namespace
