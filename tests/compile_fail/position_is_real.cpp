// expect: AXIS[position]: the position is an integer
// expect: position_is_integer<false, .*"v"
#include <scandsl/scandsl.hpp>

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"v"> v;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) = x(v[0.5 * index(n)]));
