#pragma once
#include "cuda/device_memory.hpp"

namespace support {

/// Allocates memory that the host and the GPU reach at the same address.
template <class T> struct managed {
  using value_type = T;

  managed() = default;
  template <class U> managed(const managed<U>&) {}
  T* allocate(std::size_t count) {
    void* data = nullptr;
    must(cudaMallocManaged(&data, count * sizeof(T)));
    return static_cast<T*>(data);
  }
  void deallocate(T* data, std::size_t) { cudaFree(data); }
  friend bool operator==(const managed&, const managed&) { return true; }
};

}  // namespace support
