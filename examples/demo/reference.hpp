#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "baseline.hpp"

/// What the workloads compute, in float64 from the inputs as they are stored.
namespace demo {

struct sum_of_exponentials {  // in float64 the inputs here cannot overflow it
  double total = 0.0;
  double next(double x) { return std::log(total += std::exp(x)); }
};
struct sum_of_values {
  double total = 0.0;
  double next(double x) { return total += x; }
};

/// The largest difference of y from the scan of x along the middle dimension, relative where the value is
/// above 1. The scan restarts every `chunk` positions and runs from each chunk's end where `reverse`.
template <class State, class T>
double largest_error(baseline::extents shape, std::int64_t chunk, bool reverse, const T* x, const T* y) {
  double largest = 0.0;
  constexpr std::int64_t block = 512;
#pragma omp parallel for collapse(2) schedule(static) reduction(max : largest)
  for (std::int64_t o = 0; o < shape.outer; ++o)
    for (std::int64_t first = 0; first < shape.inner; first += block) {
      const std::int64_t lanes = std::min(block, shape.inner - first);
      std::vector<State> states;
      for (std::int64_t step = 0; step < shape.length; ++step) {
        if (step % chunk == 0) states.assign(static_cast<std::size_t>(lanes), State{});
        const std::int64_t begin = step / chunk * chunk, end = std::min(begin + chunk, shape.length);
        const std::int64_t t = reverse ? end - 1 - (step - begin) : step;
        const std::int64_t row = (o * shape.length + t) * shape.inner + first;
        for (std::int64_t i = 0; i < lanes; ++i) {
          const double expected = states[static_cast<std::size_t>(i)].next(static_cast<double>(x[row + i]));
          const double difference = std::abs(static_cast<double>(y[row + i]) - expected);
          // Written so that a NaN counts as infinitely far.
          const double relative = difference / std::max(1.0, std::abs(expected));
          if (!(relative <= largest)) largest = std::isnan(relative) ? INFINITY : relative;
        }
      }
    }
  return largest;
}

}  // namespace demo
