// expect: TENSOR holds integers
// expect: integer_elements<false, .*"offsets"
#include <scandsl/scandsl.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"offsets"> offsets;

inline constexpr auto packed =
    op<"packed">(out<"y">(n) = scan(plain_sum, over(n).restart_at(offsets(s)), x(n)));

float in[6];
float result[6];
}  // namespace

void bad() { run<packed>(cpu{}, x = view(in, 6), y = view(result, 6), offsets = view(in, 2)); }
