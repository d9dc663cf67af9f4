// expect: the view bound to TENSOR has rank GOT
// expect: rank<false, .*"x".*, 2, 1
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

float in[6];
float result[6];
}  // namespace

void bad() { run<sums>(cpu{}, x = view(in, 6), y = view(result, 2, 3), chunk = 2); }
