// expect: TENSOR has the same axis twice
// expect: distinct_axes<false, .*"y"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;

constexpr auto bad = out<"y">(n, n) = 1.0;
}  // namespace
