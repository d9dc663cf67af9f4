#include "cuda/random_on_gpu.cuh"

namespace random_programs {

runs gradients_on_gpu() {
  return {compile_one<gradient_of_decayed_sum, float, float>(),
          compile_one<gradient_of_log_sum, float, float>()};
}

}  // namespace random_programs
