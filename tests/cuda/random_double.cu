#include "cuda/random_on_gpu.cuh"

namespace random_programs {

runs double_on_gpu() { return compile_for_gpu<double, double>(double_seeds{}); }

}  // namespace random_programs
