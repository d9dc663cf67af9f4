#include "cuda/random_on_gpu.cuh"

namespace random_programs {

runs float16_on_gpu() { return compile_for_gpu<cuda_detail::approximate, float16>(float16_seeds{}); }

}  // namespace random_programs
