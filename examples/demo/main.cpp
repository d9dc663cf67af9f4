#include <exception>

#ifdef SCANDSL_DEMO_GPU
#include "gpu_workloads.hpp"
#endif
#include "derived.hpp"
#include "smooth.hpp"
#include "text.hpp"
#include "workloads.hpp"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SERIES.csv OUTPUT_FOLDER\n", argv[0]);
    return 2;
  }
  try {
    const bool smoothed = demo::smooth_record(argv[1], argv[2]);
    bool measured = demo::run_workloads();
    measured &= demo::run_derived_gradient();
#ifdef SCANDSL_DEMO_GPU
    measured &= demo::run_workloads_on_gpu();
#endif
    if (smoothed && measured) return 0;
    std::fprintf(stderr, "a result is further from float64 than it may be\n");
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "demo: %s\n", problem.what());
  }
  return 1;
}
