// expect: TENSOR holds integers
// expect: integer_elements<false, .*"target"
#include <scandsl/scandsl.hpp>

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"v"> v;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr integer_tensor<"target"> target;
inline constexpr auto picked = op<"picked">(out<"y">(n) = x(n, v[target(n)]));

void bad(float* memory) {
  run<picked>(cpu{}, x = view(memory, 3, 3), target = view(memory, 3), y = view(memory, 3));
}
