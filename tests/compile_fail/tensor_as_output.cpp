// expect: an output is declared by out<TENSOR>(axes...) = expression
// expect: output_is_declared<false, .*"y"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;

constexpr auto bad = op<"bad">(y(b, n) = x(b, n));
}  // namespace
