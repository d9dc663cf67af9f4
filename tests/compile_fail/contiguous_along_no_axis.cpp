// expect: contiguous_along names an axis that the program lacks
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;

constexpr program bad = contiguous_along(op<"same">(out<"y">(n) = x(n)), d);
}  // namespace
