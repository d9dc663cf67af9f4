// expect: what is stacked varies along AXIS already
// expect: stack_axis_is_new<false, .*"n"
#include <scandsl/scandsl.hpp>

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"v"> v;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) = stack(n, x(n), 1.0));
