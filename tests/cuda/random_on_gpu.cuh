#pragma once
#include "cuda/on_gpu.cuh"
#include "cuda/random_programs.hpp"

namespace random_programs {

/// The programs of the seeds, with the kernels for elements T and arithmetic in C.
template <class C, class T, unsigned... Seed> runs compile_for_gpu(seeds<Seed...>) {
  constexpr auto one = []<unsigned S>(std::integral_constant<unsigned, S>) {
    constexpr const program& p = generate::random_program<S>;
    const auto run = [](const cpu&, const problem& bound) {
      gpu::run_over_copies<generate::random_program<S>, C, cuda_detail::uniform_types<T>>(bound);
    };
    return exec_test::compiled{&p, run, run};
  };
  return {one(std::integral_constant<unsigned, Seed>{})...};
}

}  // namespace random_programs
