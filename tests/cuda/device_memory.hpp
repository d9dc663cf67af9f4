#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>

namespace support {

/// Throws what a call of the runtime says, if it failed.
inline void must(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// So many bytes of the GPU's memory, as long as it lives.
struct device_memory {
  void* data = nullptr;
  explicit device_memory(std::size_t bytes) { must(cudaMalloc(&data, bytes)); }
  ~device_memory() { cudaFree(data); }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  float* floats() const { return static_cast<float*>(data); }
};

}  // namespace support
