#include "cuda/rows_on_gpu.cuh"

namespace rows {

namespace {
struct decays_in_float32 {
  template <name Id> using of = std::conditional_t<Id == decay.id, float, bfloat16>;
};
}  // namespace
void run_mixed_on_gpu(const problem& host) {
  gpu::run_over_copies<long_decay, cuda_detail::approximate, decays_in_float32>(host);
}
template void run_on_gpu<long_log, float>(const problem&);
template void run_on_gpu<long_log, bfloat16>(const problem&);
template void run_on_gpu<long_decay, float>(const problem&);
template void run_on_gpu<long_decay, bfloat16>(const problem&);
template void run_on_gpu<long_carried, float>(const problem&);
template void run_on_gpu<long_carried, bfloat16>(const problem&);
template void run_on_gpu<long_chunks, float>(const problem&);
template void run_on_gpu<long_total, float>(const problem&);
template void run_on_gpu<long_total, bfloat16>(const problem&);

}  // namespace rows
