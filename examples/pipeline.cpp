#include <scandsl/scandsl.hpp>

#include "check.hpp"

using namespace scandsl;
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"decay"> decay;

// [doc:expression]
// At every position a softmax over the features d, then a decayed sum of it along the sequence n.
constexpr auto weight = exp(x(b, n, d) - last(scan(log_add_exp, over(d), x(b, n, d))));
constexpr auto attended = op<"attended">(out<"y">(b, n, d) = scan(decayed_sum, over(n), decay(d), weight));
// [/doc:expression]

void print(const std::string& title, const std::string& text) {
  std::printf("---- %s\n%s%s\n", title.c_str(), text.c_str(), text.ends_with('\n') ? "" : "\n");
}

int main() {
  const std::size_t batch = 4, length = 1000, features = 96, size = batch * length * features;
  const std::vector<float> input = example::wave(size), decays(features, 0.9F);
  std::vector<float> output(size);

  // [doc:stages]
  print("as written", describe(attended));
  const program prepared = prepare(attended);  // simplified; log-add-exp carried as (maximum, sum)
  print("as executors take it", describe(prepared));
  int number = 0;
  for (const program& kernel : split(prepared).programs)
    print("kernel " + std::to_string(++number), describe(kernel));
  print("the plan", explain(plan<attended>(cpu{2}, x = shape<float>(4, 1000, 96), decay = shape<float>(96),
                                           y = shape<float>(4, 1000, 96))));
  run<attended>(cpu{2}, x = view(input.data(), 4, 1000, 96), decay = view(decays.data(), 96),
                y = view(output.data(), 4, 1000, 96));
  // [/doc:stages]

  std::vector<double> expected(size);
  for (std::size_t r = 0; r < batch; ++r)
    for (std::size_t t = 0; t < length; ++t) {
      const std::size_t row = (r * length + t) * features;
      double total = 0.0;
      for (std::size_t k = 0; k < features; ++k) total += std::exp(static_cast<double>(input[row + k]));
      for (std::size_t k = 0; k < features; ++k) {
        const double before = t == 0 ? 0.0 : expected[row - features + k];
        expected[row + k] =
            static_cast<double>(decays[k]) * before + std::exp(static_cast<double>(input[row + k])) / total;
      }
    }
  example::expect_close("the result against a loop in float64", output, expected, 1e-6);
  return example::exit_status();
}
