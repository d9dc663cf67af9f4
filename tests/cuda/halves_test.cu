#include <cmath>

#include "cuda/on_gpu.cuh"
#include "exec/executed.hpp"
#include "scandsl/ir/lower.hpp"
#include "support/catch.hpp"

using namespace exec_test;

namespace {

constexpr axis<"n"> n;
constexpr tensor<"x"> x;

inline constexpr auto functions_of_halves = op<"functions_of_halves">(
    out<"exp">(n) = exp(x(n)), out<"log">(n) = log(x(n)), out<"log1p">(n) = log1p(x(n)),
    out<"expm1">(n) = expm1(x(n)), out<"tanh">(n) = tanh(x(n)), out<"sigmoid">(n) = sigmoid(x(n)),
    out<"softplus">(n) = softplus(x(n)), out<"sqrt">(n) = sqrt(x(n)), out<"silu">(n) = silu(x(n)),
    out<"mish">(n) = mish(x(n)), out<"logaddexp">(n) = logaddexp(x(n), 1.0),
    out<"exp_difference">(n) = exp_difference(x(n), 1.0), out<"gelu">(n) = gelu(x(n)),
    out<"relu">(n) = relu(x(n)),
    out<"cosine">(n) = select(abs(x(n)) <= 1.0, cos_of_product(16777213.0, x(n)), 0.0),
    out<"sine">(n) = select(abs(x(n)) <= 1.0, sin_of_product(4099.0, x(n)), 0.0));

inline constexpr auto slopes_of_halves =
    op<"slopes_of_halves">(out<"silu_derivative">(n) = silu_derivative(x(n)));

/// P with the kernels for T, whose arithmetic is approximate.
template <const program& P, class T> compiled compiled_for() {
  const auto run = [](const cpu&, const problem& bound) {
    gpu::run_over_copies<P, cuda_detail::approximate, cuda_detail::uniform_types<T>>(bound);
  };
  return {&P, run, nullptr};
}

/// Every number of the type but those below the least normal float32.
template <class T> std::vector<double> every_number() {
  std::vector<double> numbers;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    T each;
    each.bits = static_cast<std::uint16_t>(bits);
    const double value = static_cast<float>(each);
    if (value == 0 || !(std::fabs(value) < 0x1p-126)) numbers.push_back(value);
  }
  return numbers;
}

}  // namespace

// exp errs by 2^-21 + |x| 2^-24 of its value, and 88 is the greatest x that does not overflow; the others by
// less.
TEST_CASE("functions of every 16-bit number", "[cuda][dtype]") {
  constexpr double error = 0x1p-21 + 88 * 0x1p-24;
  const auto check_all = [&](const compiled& program_, dtype type, std::vector<double> numbers) {
    operands given;
    const auto count = static_cast<std::int64_t>(numbers.size());
    given.inputs["x"] = {std::move(numbers), {count}};
    given.usual = type;
    CHECK(mismatch(program_, given, error) == "");
  };
  check_all(compiled_for<functions_of_halves, bfloat16>(), dtype::bfloat16, every_number<bfloat16>());
  check_all(compiled_for<functions_of_halves, float16>(), dtype::float16, every_number<float16>());
  check_all(compiled_for<slopes_of_halves, bfloat16>(), dtype::bfloat16, every_number<bfloat16>());
  check_all(compiled_for<slopes_of_halves, float16>(), dtype::float16, every_number<float16>());
}
