#include "cuda/rows_on_gpu.cuh"

namespace rows {

template void run_on_gpu<long_softmax, float>(const problem&);
template void run_on_gpu<long_softmax, bfloat16>(const problem&);
template void run_on_gpu<long_shift, float>(const problem&);
template void run_on_gpu<softmax_gradient, float>(const problem&);
template void run_on_gpu<two_decays, float>(const problem&);

}  // namespace rows
