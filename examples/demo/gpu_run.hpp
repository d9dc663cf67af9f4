#pragma once
#include <string>

#include "baseline.hpp"

/// The programs of the demonstration on the GPU: what nvcc compiles of it.
namespace demo {

std::string gpu_name();

/// Medians of calls by the GPU's clock, in milliseconds: of the program, and of a copy of the same bytes
/// within the GPU's memory.
struct gpu_times {
  double ours, copy;
};

/// Scans x, in host memory, along the middle dimension, and brings y back. T is float or bfloat16.
template <class T> gpu_times logcumsumexp_on_gpu(baseline::extents sizes, const T* x, T* y);
/// ... in chunks of workload::chunk_size.
template <class T> gpu_times chunk_cumsum_on_gpu(baseline::extents sizes, bool backward, const T* x, T* y);

}  // namespace demo
