// expect: the operands, at least one, are values
// expect: scan_takes_operands<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;

constexpr auto bad = scan(plain_sum, over(n), "x");
}  // namespace
