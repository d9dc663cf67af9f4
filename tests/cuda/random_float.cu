#include "cuda/random_on_gpu.cuh"

namespace random_programs {

runs float_on_gpu() { return compile_for_gpu<float, float>(float_seeds{}); }

}  // namespace random_programs
