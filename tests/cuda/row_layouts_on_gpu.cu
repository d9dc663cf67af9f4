#include "cuda/rows_on_gpu.cuh"

namespace rows {

template void run_on_gpu<carried_along_rows, bfloat16>(const problem&);
template void run_on_gpu<gradient_along_rows, float>(const problem&);
template void run_on_gpu<carried_along_lanes, bfloat16>(const problem&);
template void run_on_gpu<gradient_along_lanes, float>(const problem&);

}  // namespace rows
