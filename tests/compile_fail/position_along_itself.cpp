// expect: a computed position varies along AXIS itself
// expect: position_is_apart<false, .*"x".*"n"
#include <scandsl/scandsl.hpp>

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"v"> v;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) = x(n[index(n) + 1]));
