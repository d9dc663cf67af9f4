#include <scandsl/ops/logcumsumexp.hpp>
#include <scandsl/scandsl.hpp>

#include "check.hpp"

using namespace scandsl;
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;

// [doc:program]
constexpr auto running_sum = op<"running_sum">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n)));
// [/doc:program]

constexpr std::int64_t height = 3, length = 11, width = 7;  // a tensor [height, length, width], row-major
constexpr std::size_t size = std::size_t{height * length * width};

/// Running sums along the middle dimension, by a loop; from the back where `reversed`.
std::vector<double> expected_sums(const std::vector<float>& input, bool reversed) {
  std::vector<double> result(size);
  for (std::int64_t i = 0; i < height; ++i)
    for (std::int64_t k = 0; k < width; ++k) {
      double sum = 0.0;
      for (std::int64_t step = 0; step < length; ++step) {
        const std::int64_t t = reversed ? length - 1 - step : step;
        const auto at = static_cast<std::size_t>((i * length + t) * width + k);
        result[at] = sum += static_cast<double>(input[at]);
      }
    }
  return result;
}

int main() {
  const std::vector<float> input = example::wave(size);
  std::vector<float> output(size);

  // [doc:middle]
  // The scan along the middle dimension of [height, length, width]: b stands for the other two. No transpose,
  // no copy.
  const dims others = {{height, length * width}, {width, 1}};
  const dim along = {length, width};
  run<running_sum>(cpu{}, x = view(input.data(), others, along), y = view(output.data(), others, along));
  // [/doc:middle]
  example::expect_close("along the middle dimension", output, expected_sums(input, false), 1e-6);

  // [doc:backward]
  // A negative stride walks memory backward: the same program, from the last position to the first.
  const std::int64_t end = (length - 1) * width;
  const dim back = {length, -width};
  run<running_sum>(cpu{}, x = view(input.data() + end, others, back),
                   y = view(output.data() + end, others, back));
  // [/doc:backward]
  example::expect_close("with negative strides", output, expected_sums(input, true), 1e-6);

  // [doc:half]
  // Storage may be bfloat16 or float16; sums are carried in float32 and rounded once, when they are stored.
  std::vector<bfloat16> rounded(size);
  run<running_sum>(cpu{}, x = view(input.data(), others, along), y = view(rounded.data(), others, along));
  // [/doc:half]
  std::vector<float> widened;
  for (const bfloat16 value : rounded) widened.push_back(static_cast<float>(value));
  example::expect_close("stored as bfloat16", widened, expected_sums(input, false), 1.0 / 256);

  // [doc:array]
  // The prebuilt ops take shapes and types at run time, and the number of the dimension to scan.
  ops::logcumsumexp(cpu{}, array::of(input.data(), {height, length, width}), 1,
                    array::of(output.data(), {height, length, width}));
  // [/doc:array]
  std::vector<float> powers;
  for (const float value : input) powers.push_back(std::exp(value));
  std::vector<double> logs = expected_sums(powers, false);
  for (double& value : logs) value = std::log(value);
  example::expect_close("logcumsumexp along dimension 1", output, logs, 1e-5);
  return example::exit_status();
}
