// expect: TENSOR(...) takes axes
// expect: indexed_by_axes<false, .*"y"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr auto bad = out<"y">(3) = 1.0;
}  // namespace
