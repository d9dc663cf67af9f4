#pragma once
#include "scandsl/exec/cuda_executor.hpp"
#include "scandsl/ir/program.hpp"
#include "scandsl/pass/problem.hpp"

/// Private to the ops: what the CUDA part of the library defines for every op's program (kernels.cuh). Where
/// it is built without CUDA, these throw cuda_error.
namespace scandsl::ops {

template <const program& P>
void run_cuda(const cuda& device, const problem& bound, const iteration_space& space);
/// Bytes of workspace.
template <const program& P> std::int64_t size_cuda(const problem& bound, const iteration_space& space);

}  // namespace scandsl::ops
