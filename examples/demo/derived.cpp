#include "derived.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "text.hpp"
#include "timing.hpp"
#include "workload.hpp"

namespace demo {
namespace {

using namespace workload;

constexpr tensor<"dx"> dx;
constexpr tensor<"dy"> dy;
constexpr auto dlogcumsumexp = gradient(logcumsumexp);

/// The largest difference from the chain rule in float64, relative to the row's largest gradient, over every
/// `stride`-th row.
double largest_error(const float* values, const float* cotangents, const float* gradients,
                     std::int64_t stride) {
  double largest = 0.0;
  const auto length = static_cast<std::size_t>(rows.length);
#pragma omp parallel for reduction(max : largest)
  for (std::int64_t row = 0; row < rows.outer; row += stride) {
    const std::size_t first = static_cast<std::size_t>(row) * length;
    std::vector<double> sums(length), expected(length);
    double sum = 0.0, received = 0.0, size = 0.0, error = 0.0;
    for (std::size_t t = 0; t < length; ++t)
      sums[t] = sum += std::exp(static_cast<double>(values[first + t]));
    for (std::size_t t = length; t-- > 0;) {
      received += static_cast<double>(cotangents[first + t]) / sums[t];
      expected[t] = std::exp(static_cast<double>(values[first + t])) * received;
      size = std::max(size, std::abs(expected[t]));
    }
    for (std::size_t t = 0; t < length; ++t) {
      const double difference = std::abs(static_cast<double>(gradients[first + t]) - expected[t]) / size;
      // Written so that a NaN counts as infinitely far.
      error = difference <= error ? error : std::isnan(difference) ? INFINITY : difference;
    }
    largest = std::max(largest, error);
  }
  return largest;
}

}  // namespace

bool run_derived_gradient() {
  heading("3. The gradient of logcumsumexp, derived");
  std::puts("gradient(logcumsumexp) is a program again, derived from the first. dy is y's cotangent:\n");
  print_block(describe(dlogcumsumexp));
  const auto count = static_cast<std::size_t>(rows.count());
  const auto values = std::make_unique_for_overwrite<float[]>(count),
             cotangents = std::make_unique_for_overwrite<float[]>(count),
             gradients = std::make_unique<float[]>(count);
  baseline::fill(values.get(), rows.count());
  baseline::fill(cotangents.get(), rows.count());
  const auto bound = [&](auto call) {
    return call(x = as_two_axes(values.get(), rows), dy = as_two_axes(cotangents.get(), rows),
                dx = as_two_axes(gradients.get(), rows));
  };
  std::puts("For [12, 2048, 2048] along the last dimension, float32:\n");
  print_block(explain(bound([](auto... bindings) { return plan<dlogcumsumexp>(cpu{}, bindings...); })));
  const double seconds =
      median_seconds(5, [&] { bound([](auto... bindings) { run<dlogcumsumexp>(cpu{}, bindings...); }); });
  const double error = largest_error(values.get(), cotangents.get(), gradients.get(), 16);
  std::printf("%.1f ms; error against float64, relative to each row's largest gradient: %.1e\n",
              1e3 * seconds, error);
  return error <= allowed<float>;
}

}  // namespace demo
