// expect: the operator's lift does not take GOT operands
// expect: operator_arity<false, 1
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = scan(decayed_sum, over(n), x(n));
}  // namespace
