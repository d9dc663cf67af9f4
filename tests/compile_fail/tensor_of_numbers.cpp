// expect: TENSOR(...) takes axes
// expect: indexed_by_axes<false, .*"x"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr tensor<"x"> x;

constexpr auto bad = x(0, 1);
}  // namespace
