// expect: TENSOR is used without its axes
// expect: tensor_has_axes<false, .*"x"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr tensor<"x"> x;

constexpr auto bad = square(x);
}  // namespace
