// expect: flag is a scalar<"...">
// expect: run_time_flag<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;

constexpr auto bad = over(n).reversed(true);
}  // namespace
