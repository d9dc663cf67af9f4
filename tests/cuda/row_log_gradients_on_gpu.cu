#include "cuda/rows_on_gpu.cuh"

namespace rows {

template void run_on_gpu<log_gradient, float>(const problem&);
template void run_on_gpu<log_gradient, bfloat16>(const problem&);
template void run_on_gpu<weighted_log_gradient, float>(const problem&);
template void run_on_gpu<carried_gradient, float>(const problem&);
template void run_on_gpu<log_chunks_gradient, bfloat16>(const problem&);

}  // namespace rows
