#pragma once
#include "scandsl/exec/cuda_executor.hpp"
#include "scandsl/ir/program.hpp"
#include "scandsl/pass/problem.hpp"

/// Private to the ops: what the CUDA part of the library defines for every op's program (kernels.cuh). Where
/// it is built without CUDA, these throw cuda_error.
namespace scandsl::ops {

template <const program& P>
void run_cuda(const cuda& device, const problem& bound, const iteration_space& space);
/// What that needs.
template <const program& P>
void size_cuda(cuda_sizing& device, const problem& bound, const iteration_space& space);

}  // namespace scandsl::ops
