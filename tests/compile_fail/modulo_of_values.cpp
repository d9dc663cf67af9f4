// expect: FUNCTION takes integers
// expect: takes_integers<false, .*"modulo"
#include <scandsl/scandsl.hpp>

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"v"> v;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) = x(n) % 2);
