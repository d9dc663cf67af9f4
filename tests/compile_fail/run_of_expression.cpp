// expect: is a template argument
// expect: run_takes_program<false
#include <scandsl/scandsl.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto expression_ = scan(plain_sum, over(n), x(b, n));

float in[6];
}  // namespace

void bad() { run<expression_>(cpu{}, x = view(in, 2, 3)); }
