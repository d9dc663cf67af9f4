#include "gpu_run.hpp"

#include <algorithm>
#include <scandsl/cuda.cuh>
#include <stdexcept>
#include <vector>

#include "workload.hpp"

namespace demo {
namespace {

using namespace workload;

void must(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

class device_memory {
public:
  explicit device_memory(std::size_t bytes) { must(cudaMalloc(&data, bytes)); }
  ~device_memory() { cudaFree(data); }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  void* data = nullptr;
};

class timings {
public:
  timings() {
    must(cudaEventCreate(&start));
    must(cudaEventCreate(&end));
  }
  ~timings() {
    cudaEventDestroy(start);
    cudaEventDestroy(end);
  }
  timings(const timings&) = delete;
  timings& operator=(const timings&) = delete;

  template <class F> void measure(F&& call) {
    must(cudaEventRecord(start));
    call();
    must(cudaEventRecord(end));
    must(cudaEventSynchronize(end));
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, start, end));
    all.push_back(milliseconds);
  }
  double median() const {
    std::vector<float> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

private:
  cudaEvent_t start = nullptr, end = nullptr;
  std::vector<float> all;
};

template <const program& P, class T, class... Scalars>
gpu_times run_and_time(extents sizes, const T* host_x, T* host_y, Scalars... scalars) {
  const std::size_t bytes = static_cast<std::size_t>(sizes.count()) * sizeof(T);
  const device_memory from(bytes), to(bytes);
  must(cudaMemcpy(from.data, host_x, bytes, cudaMemcpyHostToDevice));
  const auto input = as_two_axes(static_cast<const T*>(from.data), sizes);
  const auto output = as_two_axes(static_cast<T*>(to.data), sizes);
  const std::int64_t needed = workspace_bytes<P>(x = input, y = output, scalars...);
  const device_memory workspace(static_cast<std::size_t>(needed) + 1);
  const scandsl::cuda device{nullptr, {workspace.data, needed}};
  const auto own = [&] { run<P>(device, x = input, y = output, scalars...); };
  own();
  must(cudaMemcpy(host_y, to.data, bytes, cudaMemcpyDeviceToHost));
  timings ours, copy;
  for (int round = 0; round < 30; ++round) {  // in turns; each moves more than the cache holds
    copy.measure([&] { must(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDeviceToDevice)); });
    ours.measure(own);
  }
  return {ours.median(), copy.median()};
}

}  // namespace

std::string gpu_name() {
  int index = 0;
  cudaDeviceProp properties{};
  must(cudaGetDevice(&index));
  must(cudaGetDeviceProperties(&properties, index));
  return properties.name;
}

template <class T> gpu_times logcumsumexp_on_gpu(extents sizes, const T* from, T* to) {
  return run_and_time<logcumsumexp>(sizes, from, to);
}
template <class T> gpu_times chunk_cumsum_on_gpu(extents sizes, bool backward, const T* from, T* to) {
  return run_and_time<chunk_cumsum>(sizes, from, to, chunk = chunk_size, reverse = backward);
}
template gpu_times logcumsumexp_on_gpu(extents, const float*, float*);
template gpu_times logcumsumexp_on_gpu(extents, const bfloat16*, bfloat16*);
template gpu_times chunk_cumsum_on_gpu(extents, bool, const float*, float*);
template gpu_times chunk_cumsum_on_gpu(extents, bool, const bfloat16*, bfloat16*);

}  // namespace demo
