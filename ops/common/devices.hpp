#pragma once
#include "cuda_part.hpp"
#include "scandsl/exec/cpu/run.hpp"

/// Private to the ops: one way to run a program on every device.
namespace scandsl::ops {

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
