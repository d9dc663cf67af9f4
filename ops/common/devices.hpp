#pragma once
#include "cuda_part.hpp"
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/exec/cpu/shared_driver.hpp"

/// Private to the ops: one way to run a program on every device.
namespace scandsl::ops {

template <const program& P, class... B> void run_on(const cpu& device, const B&... bindings) {
  run<P>(device, bindings...);
}
template <const program& P, class... B> void run_on(const cuda& device, const B&... bindings) {
  const problem bound = bind<P>(bindings...);
  run_cuda<P>(device, bound, validate(P, bound, works_in_place<P>(), false));
}
template <const program& P, class... B> void run_on(cuda_sizing& device, const B&... bindings) {
  const problem bound = bind<P>(bindings...);
  size_cuda<P>(device, bound, make_iteration_space(P, bound));
}

}  // namespace scandsl::ops
