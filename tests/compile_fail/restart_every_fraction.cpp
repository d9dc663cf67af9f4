// expect: k is an integer or a scalar
// expect: restart_interval<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;

constexpr auto bad = over(n).restart_every(2.5);
}  // namespace
