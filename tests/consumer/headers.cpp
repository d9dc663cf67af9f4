// The smallest program of a user, written against the installed headers alone.
#include <array>
#include <cmath>
#include <cstdio>

#include <scandsl/scandsl.hpp>

using namespace scandsl;
inline constexpr axis<"b"> b;
inline constexpr axis<"n"> n;
inline constexpr tensor<"x"> x;
inline constexpr tensor<"y"> y;

inline constexpr auto logcumsumexp = op<"logcumsumexp">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n)));

int main() {
  const std::array<float, 3> input{0, 0, 0};
  std::array<float, 3> output{};
  run<logcumsumexp>(cpu{}, x = view(input.data(), 1, 3), y = view(output.data(), 1, 3));
  std::printf("%g %g %g\n", output[0], output[1], output[2]);
  return std::abs(output[2] - std::log(3.0f)) < 1e-6f ? 0 : 1;
}
