#pragma once
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace scandsl::cpu_detail {

/// The threads that OpenMP would use; 1 without OpenMP.
inline int available_threads() {
#ifdef _OPENMP
  return omp_in_parallel() ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

/// Calls f(index, thread) for index in [0, count), each thread taking one contiguous part: the same part
/// every time, so that what a thread left in its cache is there when it comes again. f must not throw.
template <class F> void parallel_for(std::int64_t count, int threads, F&& f) {
  const std::int64_t used = count < threads ? count : threads;
  if (used <= 1) {
    for (std::int64_t i = 0; i < count; ++i) f(i, 0);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(static_cast<int>(used))
#endif
  for (std::int64_t part = 0; part < used; ++part)
    for (std::int64_t i = count * part / used; i < count * (part + 1) / used; ++i)
      f(i, static_cast<int>(part));
}

}  // namespace scandsl::cpu_detail
