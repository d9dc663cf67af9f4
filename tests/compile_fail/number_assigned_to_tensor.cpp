// expect: TENSOR = ... takes view(pointer, extents...)
// expect: tensor_takes_view<false, .*"x"
#include <scandsl/scandsl.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr scalar<"chunk"> chunk;

inline constexpr auto sums =
    op<"sums">(out<"y">(b, n) = scan(plain_sum, over(n).restart_every(chunk), x(b, n)));

float result[6];
}  // namespace

void bad() { run<sums>(cpu{}, x = 2.0, y = view(result, 2, 3), chunk = 2); }
