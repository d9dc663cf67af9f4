// expect: TENSOR has more than LIMIT axes
// expect: rank_limit<false, .*"y".*8
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;

constexpr axis<"c"> c;
constexpr axis<"d"> d;
constexpr axis<"e"> e;
constexpr axis<"f"> f;
constexpr axis<"g"> g;
constexpr axis<"h"> h;
constexpr axis<"i"> i;
constexpr auto bad = op<"bad">(out<"y">(b, n, c, d, e, f, g, h, i) = 1.0);
}  // namespace
