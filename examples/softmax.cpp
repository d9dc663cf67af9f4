#include <scandsl/scandsl.hpp>

#include "check.hpp"

using namespace scandsl;
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"lse"> lse;

// [doc:softmax]
// A reduction is a scan's last value. It has no axis n, so it is the same all along n.
constexpr auto log_total = last(scan(log_add_exp, over(n), x(b, n)));
constexpr auto shares =
    op<"shares">(out<"y">(b, n) = exp(x(b, n) - log_total), out<"lse">(b).optional() = log_total);
// [/doc:softmax]

int main() {
  std::puts(describe(shares).c_str());
  const std::size_t rows = 4, length = 777;
  const std::vector<float> input = example::wave(rows * length, 30.0);
  std::vector<float> output(rows * length), alone(rows * length), totals(rows);
  // [doc:run]
  run<shares>(cpu{}, x = view(input.data(), rows, length), y = view(output.data(), rows, length),
              lse = view(totals.data(), rows));
  run<shares>(cpu{}, x = view(input.data(), rows, length), y = view(alone.data(), rows, length));
  // [/doc:run]

  std::vector<double> expected(rows * length), expected_totals(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    double sum = 0.0;
    for (std::size_t t = 0; t < length; ++t) sum += std::exp(static_cast<double>(input[r * length + t]));
    expected_totals[r] = std::log(sum);
    for (std::size_t t = 0; t < length; ++t)
      expected[r * length + t] = std::exp(static_cast<double>(input[r * length + t])) / sum;
  }
  example::expect_close("shares", output, expected, 1e-6);
  example::expect_close("log of the sum", totals, expected_totals, 1e-6);
  example::expect_close("without the optional output", alone, output, 0.0);
  return example::exit_status();
}
