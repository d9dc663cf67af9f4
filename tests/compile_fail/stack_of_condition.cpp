// expect: stack(axis, a, b, ...) takes values
// expect: stack_takes_values<false>
#include <scandsl/scandsl.hpp>

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"v"> v;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n, v) = stack(v, x(n), x(n) < 1.0));
