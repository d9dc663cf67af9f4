// expect: TENSOR of the program is not bound
// expect: bound<false, .*"y"
#include <scandsl/scandsl.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr scalar<"chunk"> chunk;

inline constexpr auto sums =
    op<"sums">(out<"y">(b, n) = scan(plain_sum, over(n).restart_every(chunk), x(b, n)));

float in[6];
}  // namespace

void bad() { run<sums>(cpu{}, x = view(in, 2, 3), chunk = 2); }
