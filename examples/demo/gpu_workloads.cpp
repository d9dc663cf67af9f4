#include "gpu_workloads.hpp"

#include <memory>

#include "gpu_run.hpp"
#include "reference.hpp"
#include "text.hpp"
#include "workload.hpp"

namespace demo {
namespace {

using namespace workload;

/// Runs one workload: call(x, y) on the GPU. Prints its line and says whether the result is as exact as it
/// may be.
template <class State, class T, class Call>
bool measure(const char* op_name, const char* shape, const char* along, extents sizes, std::int64_t restart,
             bool backward, Call call) {
  const auto count = static_cast<std::size_t>(sizes.count());
  const auto from = std::make_unique_for_overwrite<T[]>(count),
             to = std::make_unique_for_overwrite<T[]>(count);
  baseline::fill(from.get(), sizes.count());
  const gpu_times times = call(from.get(), to.get());
  const double error = largest_error<State>(sizes, restart, backward, from.get(), to.get());
  std::printf("%-13s %-19s %-10s %-8s %8.3f %8.3f %5.2f %8.0f  %.1e\n", op_name, shape, along, type_name<T>,
              times.ours, times.copy, times.copy / times.ours,
              2e-6 * static_cast<double>(count * sizeof(T)) / times.ours, error);
  std::fflush(stdout);
  return error <= allowed<T>;
}

template <class T> bool measure_all() {
  bool good = true;
  for (const bool by_rows : {true, false}) {
    const extents sizes = by_rows ? rows : columns;
    good &= measure<sum_of_exponentials, T>(
        "logcumsumexp", "[12, 2048, 2048]", by_rows ? "2" : "1", sizes, sizes.length, false,
        [&](const T* from, T* to) { return logcumsumexp_on_gpu(sizes, from, to); });
  }
  for (const bool backward : {false, true})
    good &= measure<sum_of_values, T>(
        "chunk cumsum", "[4, 8192, 16, 128]", backward ? "1, reverse" : "1", chunks, chunk_size, backward,
        [&](const T* from, T* to) { return chunk_cumsum_on_gpu(chunks, backward, from, to); });
  return good;
}

}  // namespace

bool run_workloads_on_gpu() {
  heading("4. The same programs on the GPU: " + gpu_name());
  std::puts(
      "Times in milliseconds by the GPU's clock. The copy moves the same bytes within the GPU's memory; "
      "`of copy` is\n"
      "its time over ours.\n");
  std::printf("%-13s %-19s %-10s %-8s %8s %8s %5s\n", "", "", "", "", "ours", "copy", "of");
  std::printf("%-13s %-19s %-10s %-8s %8s %8s %5s %8s  %s\n", "op", "shape", "along", "type", "ms", "ms",
              "copy", "GB/s", "error");
  const bool in_float32 = measure_all<float>(), in_bfloat16 = measure_all<bfloat16>();
  return in_float32 && in_bfloat16;
}

}  // namespace demo
