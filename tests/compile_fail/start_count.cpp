// expect: GOT initial values do not make one state
// expect: start_matches<false, 2
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = scan(plain_sum, over(n).starting_from(0.0, 1.0), x(n));
}  // namespace
