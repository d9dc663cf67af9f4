// A user of the prebuilt ops: includes an op's header and links the compiled library; and in the same
// executable has a program of their own, compiled for other instructions than the library.
#include <array>
#include <cmath>
#include <cstdio>

#include <scandsl/ops/logcumsumexp.hpp>
#include <scandsl/scandsl.hpp>

using namespace scandsl;
inline constexpr axis<"n"> n;
inline constexpr axis<"d"> d;
inline constexpr tensor<"x"> x;
inline constexpr tensor<"y"> y;
inline constexpr auto own = op<"own">(out<"y">(n, d) = scan(log_add_exp, over(n), x(n, d)));

int main() {
  constexpr int steps = 7, lanes = 37;
  std::array<float, steps * lanes> input{}, output{}, output_of_own{};
  for (int i = 0; i < steps * lanes; ++i) input[static_cast<std::size_t>(i)] = 0.01f * static_cast<float>(i);
  ops::logcumsumexp(cpu{}, array::of(input.data(), {steps, lanes}), 0,
                    array::of(output.data(), {steps, lanes}));
  run<own>(cpu{}, x = view(input.data(), steps, lanes), y = view(output_of_own.data(), steps, lanes));
  int wrong = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    double sum = 0;
    for (int step = 0; step < steps; ++step) {
      const auto at = static_cast<std::size_t>(step * lanes + lane);
      sum += std::exp(static_cast<double>(input[at]));
      wrong +=
          std::abs(output[at] - std::log(sum)) > 1e-5 || std::abs(output_of_own[at] - std::log(sum)) > 1e-5;
    }
  }
  std::printf("%d of %d wrong\n", wrong, steps * lanes);
  return wrong == 0 ? 0 : 1;
}
