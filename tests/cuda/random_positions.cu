#include "cuda/random_positions.hpp"

#include "cuda/on_gpu.cuh"

namespace random_positions {
namespace {

template <const program& P> compiled compile() {
  return {&P, [](const problem& host) { gpu::run_all_of<P, float>(host); }};
}

}  // namespace

std::vector<compiled> programs() {
  return {compile<generate::program_of_positions<4>>(), compile<generate::program_of_positions<12>>(),
          compile<generate::program_of_positions<14>>()};
}
std::vector<compiled> gradients() { return {compile<gradient_of_gathers>()}; }

}  // namespace random_positions
