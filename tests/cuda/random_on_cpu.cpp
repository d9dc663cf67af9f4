#include "cuda/random_programs.hpp"

namespace random_programs {
namespace {

template <class C, unsigned... Seed> runs compile_for_cpu(seeds<Seed...>) {
  constexpr auto one = []<unsigned S>(std::integral_constant<unsigned, S>) {
    constexpr const program& p = generate::random_program<S>;
    const auto run = [](const cpu& device, const problem& bound) {
      const iteration_space space = validate(p, bound, works_in_place<generate::random_program<S>>());
      cpu_detail::run_as<generate::random_program<S>, C>(device, bound, space);
    };
    return exec_test::compiled{&p, run, run};
  };
  return {one(std::integral_constant<unsigned, Seed>{})...};
}

}  // namespace

runs float_on_cpu() { return compile_for_cpu<float>(float_seeds{}); }
// Of 16 bits are operands only.
runs bfloat16_on_cpu() { return compile_for_cpu<float>(bfloat16_seeds{}); }
runs float16_on_cpu() { return compile_for_cpu<float>(float16_seeds{}); }
runs double_on_cpu() { return compile_for_cpu<double>(double_seeds{}); }

}  // namespace random_programs
