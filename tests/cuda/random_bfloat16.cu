#include "cuda/random_on_gpu.cuh"

namespace random_programs {

runs bfloat16_on_gpu() { return compile_for_gpu<cuda_detail::approximate, bfloat16>(bfloat16_seeds{}); }

}  // namespace random_programs
