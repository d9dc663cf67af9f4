#include "cuda/on_gpu.cuh"
#include "cuda/parts_programs.hpp"

namespace parts {

template <const program& P, class T> void run_on_gpu(const problem& host) { gpu::run_all_of<P, T>(host); }
template void run_on_gpu<log_total, float>(const problem&);
template void run_on_gpu<log_total, bfloat16>(const problem&);
template void run_on_gpu<faded, float>(const problem&);
template void run_on_gpu<faded, bfloat16>(const problem&);
template void run_on_gpu<squares, float>(const problem&);
template void run_on_gpu<squares, bfloat16>(const problem&);
template void run_on_gpu<of_all, float>(const problem&);
template void run_on_gpu<of_all, double>(const problem&);
template void run_on_gpu<of_all, bfloat16>(const problem&);
template void run_on_gpu<shares, float>(const problem&);
template void run_on_gpu<shares, bfloat16>(const problem&);

}  // namespace parts
