#pragma once
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace demo {

/// Times of the same call, made at different moments.
class timings {
public:
  template <class F> void measure(F&& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  double total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }
  /// In seconds; of at least one measurement.
  double median() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

private:
  std::vector<double> seconds;
};

/// The median time of `repetitions` calls, in seconds.
template <class F> double median_seconds(int repetitions, F&& call) {
  timings times;
  for (int i = 0; i < repetitions; ++i) times.measure(call);
  return times.median();
}

/// Says on stderr what is being done: on a terminal one line that changes with every step, elsewhere a line
/// for the whole.
class progress {
public:
  explicit progress(std::string whole) : title(std::move(whole)) {
    std::fflush(stdout);
    if (!is_terminal) std::fprintf(stderr, "... %s\n", title.c_str());
  }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress() { clear(); }

  void step(const char* doing) const {
    if (is_terminal) std::fprintf(stderr, "\r\033[K... %s: %s", title.c_str(), doing);
  }
  void clear() const {
    if (is_terminal) std::fputs("\r\033[K", stderr);
  }

private:
  std::string title;
  bool is_terminal = ::isatty(STDERR_FILENO) != 0;
};

}  // namespace demo
