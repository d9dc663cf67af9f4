#pragma once
#include <cstdint>

struct CUstream_st;

namespace scandsl {

/// Device memory that a run may use while it is on its stream; workspace_bytes says how much. Contents do not
/// matter, before or between runs.
struct cuda_workspace {
  void* data = nullptr;
  std::int64_t bytes = 0;
};

/// The CUDA executor: launches on `stream` (a cudaStream_t; a null pointer is the default stream) of the
/// current device and returns at once. Nothing is allocated and nothing is waited for, so a run can be
/// captured in a graph.
struct cuda {
  CUstream_st* stream;
  cuda_workspace workspace;

  /// The stream is always named: {} means the CPU.
  explicit cuda(CUstream_st* on, cuda_workspace memory = {}) : stream(on), workspace(memory) {}
};

/// An executor that launches nothing: the same call then says in `bytes` how much workspace it needs on the
/// GPU.
struct cuda_sizing {
  std::int64_t bytes = 0;
};

}  // namespace scandsl
