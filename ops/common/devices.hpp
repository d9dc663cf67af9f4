#pragma once
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/exec/cuda_executor.hpp"

/// Private to the ops: one way to run a program on every device.
namespace scandsl::ops {

/// What the CUDA part of the library defines for every op's program (kernels.cuh); where it is built without
/// CUDA, these throw cuda_error. The second gives the bytes of workspace.
template <const program& P> void run_cuda(const cuda& device, const problem& bound);
template <const program& P> std::int64_t size_cuda(const problem& bound);

template <const program& P, class... B> void run_on(const cpu& device, const B&... bindings) {
  run<P>(device, bindings...);
}
template <const program& P, class... B> void run_on(const cuda& device, const B&... bindings) {
  run_cuda<P>(device, bind<P>(bindings...));
}
template <const program& P, class... B> void run_on(cuda_sizing& device, const B&... bindings) {
  device.bytes = size_cuda<P>(bind<P>(bindings...));
}

}  // namespace scandsl::ops
