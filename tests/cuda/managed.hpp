#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>

namespace support {

/// Allocates memory that the host and the GPU reach at the same address.
template <class T> struct managed {
  using value_type = T;

  managed() = default;
  template <class U> managed(const managed<U>&) {}
  T* allocate(std::size_t count) {
    void* data = nullptr;
    if (const cudaError_t status = cudaMallocManaged(&data, count * sizeof(T)); status != cudaSuccess)
      throw std::runtime_error(cudaGetErrorString(status));
    return static_cast<T*>(data);
  }
  void deallocate(T* data, std::size_t) { cudaFree(data); }
  friend bool operator==(const managed&, const managed&) { return true; }
};

}  // namespace support
