#include "cuda/rows_on_gpu.cuh"

namespace rows {

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
template void run_on_gpu<decay_gradient, float>(const problem&);
template void run_on_gpu<decay_gradient, bfloat16>(const problem&);
template void run_on_gpu<lane_decay_gradient, float>(const problem&);
template void run_on_gpu<started_lane_decay_gradient, bfloat16>(const problem&);
template void run_on_gpu<gradient_in_chunks, float>(const problem&);

}  // namespace rows
