#pragma once
#include "cuda/on_gpu.cuh"
#include "cuda/rows_programs.hpp"

/// For the files that compile the programs, a few each: for all of them in one nvcc took more than 21 GiB of
/// memory.
namespace rows {

template <const program& P, class T> void run_on_gpu(const problem& host) { gpu::run_all_of<P, T>(host); }

}  // namespace rows
