#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

/// What the examples share: values to work on, and the comparison of a result with what it should be.
namespace example {

/// The numbers wave(0), wave(1), ...: smooth, of both signs, the same everywhere.
inline std::vector<float> wave(std::size_t count, double scale = 2.0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(scale * std::sin(0.7 * static_cast<double>(i)));
  return values;
}

inline bool all_passed = true;

/// Prints the largest difference between two sequences, relative for values above 1, and fails the example
/// where it exceeds `tolerance` (or is NaN).
template <class Got, class Expected>
void expect_close(const char* what, const Got& got, const Expected& expected, double tolerance) {
  double largest = 0.0;
  bool close = std::size(got) == std::size(expected);
  for (std::size_t i = 0; close && i < std::size(got); ++i) {
    const double wanted = static_cast<double>(expected[i]);
    const double difference =
        std::abs(static_cast<double>(got[i]) - wanted) / std::max(1.0, std::abs(wanted));
    largest = std::max(largest, difference);
    close = difference <= tolerance;
  }
  std::printf("%-4s %s: off by %.1e\n", close ? "ok" : "BAD", what, largest);
  all_passed = all_passed && close;
}

/// What main returns.
inline int exit_status() { return all_passed ? 0 : 1; }

}  // namespace example
