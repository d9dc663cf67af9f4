#pragma once
#include "cuda/on_gpu.cuh"
#include "cuda/random_programs.hpp"

namespace random_programs {

/// The programs of the seeds, with the kernels for elements T and arithmetic in C.
template <class C, class T, unsigned... Seed> runs compile_for_gpu(seeds<Seed...>) {
  constexpr auto one = []<unsigned S>(std::integral_constant<unsigned, S>) {
    constexpr const program& p = generate::random_program<S>;
    const auto run = [](const cpu&, const problem& bound) {
      using types = cuda_detail::uniform_types<T>;
      const iteration_space space = validate(p, bound, works_in_place<generate::random_program<S>>());
      const auto workspace_on = [&](const cuda_device& device) {
        return cuda_detail::size_typed<generate::random_program<S>, C, types>(bound, space, false, device)
            .bytes;
      };
      look_backs += workspace_on(gpu::planned_device()) > workspace_on(cuda_device{0, 1});
      gpu::run_over_copies<generate::random_program<S>, C, types>(bound);
    };
    return exec_test::compiled{&p, run, run};
  };
  return {one(std::integral_constant<unsigned, Seed>{})...};
}

}  // namespace random_programs
