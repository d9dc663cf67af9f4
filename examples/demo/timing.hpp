#pragma once
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace demo {

/// The median time of `repetitions` calls, in seconds.
template <class F> double median_seconds(int repetitions, F&& call) {
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + repetitions / 2, seconds.end());
  return seconds[static_cast<std::size_t>(repetitions / 2)];
}

/// Says on stderr what is being done: one line that changes on a terminal, a line each elsewhere.
class progress {
public:
  progress() = default;
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  ~progress() { clear(); }

  void step(const std::string& what) const {
    std::fflush(stdout);
    std::fprintf(stderr, is_terminal ? "\r\033[K... %s" : "... %s\n", what.c_str());
  }
  void clear() const {
    if (is_terminal) std::fputs("\r\033[K", stderr);
  }

private:
  bool is_terminal = ::isatty(STDERR_FILENO) != 0;
};

}  // namespace demo
