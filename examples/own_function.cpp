#include <scandsl/scandsl.hpp>

#include "check.hpp"

using namespace scandsl;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"slope"> slope;

// [doc:function]
// A function is a generic lambda. Its argument is evaluated once, however often the body names it.
constexpr auto softsign = fn([](auto z) { return z / (1.0 + abs(z)); });
// [/doc:function]

// [doc:rule]
// With a derivative of its own: dy/dz from the argument z and the value y. Here the value is all it needs.
constexpr auto softsign_slope = [](auto /*z*/, auto value) { return square(1.0 - abs(value)); };
constexpr auto softsign_with_rule = softsign.derivative(softsign_slope);
// [/doc:rule]

// [doc:use]
constexpr auto bounded_sum = op<"bounded_sum">(out<"y">(n) = softsign(scan(plain_sum, over(n), x(n))));
// [/doc:use]
constexpr auto with_rule = op<"with_rule">(out<"y">(n) = softsign_with_rule(scan(plain_sum, over(n), x(n))));
constexpr auto rule_alone = op<"rule_alone">(out<"slope">(n) = softsign_slope(0.0, y(n)));

int main() {
  std::puts(describe(bounded_sum).c_str());
  const std::vector<float> values = example::wave(100);
  std::vector<float> result(values.size()), same(values.size());
  run<bounded_sum>(cpu{}, x = view(values.data(), 100), y = view(result.data(), 100));
  run<with_rule>(cpu{}, x = view(values.data(), 100), y = view(same.data(), 100));

  std::vector<double> expected(values.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += static_cast<double>(values[i]);
    expected[i] = sum / (1.0 + std::abs(sum));
  }
  example::expect_close("softsign of a running sum", result, expected, 1e-6);
  example::expect_close("the same with a rule: the value is the same", same, result, 0.0);

  // The rule against central differences, in float64.
  const double step = 1e-5;
  std::vector<double> points(values.begin(), values.end()), at(100), slopes(100), differences(100);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto value = [](double z) { return z / (1.0 + std::abs(z)); };
    at[i] = value(points[i]);
    differences[i] = (value(points[i] + step) - value(points[i] - step)) / (2.0 * step);
  }
  run<rule_alone>(cpu{}, y = view(at.data(), 100), slope = view(slopes.data(), 100));
  example::expect_close("the rule against central differences", slopes, differences, 1e-4);
  return example::exit_status();
}
