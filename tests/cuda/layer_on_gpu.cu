#include "cuda/layer_on_gpu.hpp"

#include "cuda/on_gpu.cuh"

namespace layer_on_gpu {

template <const program& P, class T> void run_on_gpu(const problem& host) { gpu::run_all_of<P, T>(host); }
template void run_on_gpu<layer_op::layer, float>(const problem&);
template void run_on_gpu<layer_op::layer, bfloat16>(const problem&);
template void run_on_gpu<layer_op::dlayer, float>(const problem&);
template void run_on_gpu<layer_op::dlayer, bfloat16>(const problem&);

}  // namespace layer_on_gpu
