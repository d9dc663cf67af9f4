#include "cuda/on_gpu.cuh"
#include "cuda/rows_programs.hpp"

namespace rows {

template <const program& P, class T> void run_on_gpu(const problem& host) { gpu::run_all_of<P, T>(host); }
namespace {
struct decays_in_float32 {
  template <name Id> using of = std::conditional_t<Id == decay.id, float, bfloat16>;
};
}  // namespace
void run_mixed_on_gpu(const problem& host) {
  gpu::run_over_copies<long_decay, cuda_detail::approximate, decays_in_float32>(host);
}
bool run_with_little_memory(const problem& host) {
  const iteration_space space = validate(decay_gradient, host, works_in_place<decay_gradient>());
  gpu::device_copies copies(decay_gradient, host);
  const auto bytes_on = [&](const cuda_device& device) {
    return cuda_detail::size_typed<decay_gradient, float, cuda_detail::uniform_types<float>>(
               copies.bound, space, false, device)
        .bytes;
  };
  // A device of one multiprocessor is busy with a walk.
  const bool walks = std::getenv("SCANDSL_TEST_WALKS") != nullptr;
  const std::int64_t wanted = bytes_on(gpu::planned_device()), little = walks ? wanted : bytes_on({1, 1});
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(little)) != cudaSuccess) throw std::bad_alloc();
  cuda_detail::run_typed<decay_gradient, float, cuda_detail::uniform_types<float>>(
      cuda{nullptr, {memory, little}}, copies.bound, space, gpu::planned_device());
  copies.fetch();
  cudaFree(memory);
  return wanted > little;
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
template void run_on_gpu<long_softmax, float>(const problem&);
template void run_on_gpu<long_softmax, bfloat16>(const problem&);
template void run_on_gpu<long_shift, float>(const problem&);
template void run_on_gpu<log_gradient, float>(const problem&);
template void run_on_gpu<log_gradient, bfloat16>(const problem&);
template void run_on_gpu<decay_gradient, float>(const problem&);
template void run_on_gpu<decay_gradient, bfloat16>(const problem&);
template void run_on_gpu<lane_decay_gradient, float>(const problem&);
template void run_on_gpu<started_lane_decay_gradient, bfloat16>(const problem&);
template void run_on_gpu<gradient_in_chunks, float>(const problem&);
template void run_on_gpu<two_decays, float>(const problem&);
template void run_on_gpu<weighted_log_gradient, float>(const problem&);
template void run_on_gpu<carried_gradient, float>(const problem&);
template void run_on_gpu<softmax_gradient, float>(const problem&);
template void run_on_gpu<carried_along_rows, bfloat16>(const problem&);
template void run_on_gpu<gradient_along_rows, float>(const problem&);
template void run_on_gpu<carried_along_lanes, bfloat16>(const problem&);
template void run_on_gpu<gradient_along_lanes, float>(const problem&);

}  // namespace rows
