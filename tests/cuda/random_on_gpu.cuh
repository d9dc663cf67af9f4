#pragma once
#include "cuda/on_gpu.cuh"
#include "cuda/random_programs.hpp"

namespace random_programs {

/// P with the kernels for elements T and arithmetic in C.
template <const program& P, class C, class T> exec_test::compiled compile_one() {
  const auto run = [](const cpu&, const problem& bound) {
    using types = cuda_detail::uniform_types<T>;
    const iteration_space space = validate(P, bound, works_in_place<P>());
    const auto workspace_on = [&](const cuda_device& device) {
      return cuda_detail::size_typed<P, C, types>(bound, space, false, device).bytes;
    };
    look_backs += workspace_on(gpu::planned_device()) > workspace_on(cuda_device{0, 1});
    gpu::run_over_copies<P, C, types>(bound);
  };
  return {&P, run, run};
}
template <class C, class T, unsigned... Seed> runs compile_for_gpu(seeds<Seed...>) {
  return {compile_one<generate::random_program<Seed>, C, T>()...};
}

}  // namespace random_programs
