// expect: the first argument is an axis
// expect: index_takes_an_axis<false>
#include <scandsl/scandsl.hpp>

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"v"> v;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) = x(n) * index(x));
