// expect: contiguous_along_names_an_axis_that_the_program_lacks
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;

constexpr program bad = contiguous_along(op<"same">(out<"y">(n) = x(n)), d);
}  // namespace
