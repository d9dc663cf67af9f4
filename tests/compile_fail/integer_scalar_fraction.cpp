// expect: SCALAR = ... takes an integer
// expect: integer_takes_whole_number<false, .*"offset"
#include <scandsl/scandsl.hpp>

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"v"> v;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr integer_scalar<"offset"> offset;
inline constexpr auto shifted = op<"shifted">(out<"y">(n) = x(n) * (index(n) + offset));

void bad(float* memory) { run<shifted>(cpu{}, x = view(memory, 3), y = view(memory, 3), offset = 0.5); }
