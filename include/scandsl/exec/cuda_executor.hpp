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

/// Device memory for the carries of a scan, its states at some positions, which a run of its program leaves
/// there and a run of the program's gradient on the same operands finds. It then does not go through them
/// once more to know. cuda_sizing says how much; memory that a run has no use for is left as it is. Aligned
/// as cudaMalloc's.
struct cuda_carries {
  void* data = nullptr;
  std::int64_t bytes = 0;
};

/// Gives device memory, aligned as cudaMalloc's, that is the run's until the stream is through with it.
/// Memory that is reused in the order of the stream (a tensor of torch's, cudaFreeAsync) may be given back as
/// soon as run returns. Where there is none it throws.
using cuda_allocator = void* (*)(void* context, std::int64_t bytes);

/// The CUDA executor: launches on `stream` (a cudaStream_t; a null pointer is the default stream) of the
/// current device and returns at once. Nothing is waited for and, with a workspace, nothing is allocated, so
/// a run can be captured in a graph.
struct cuda {
  CUstream_st* stream;
  cuda_workspace workspace;
  cuda_allocator allocate = nullptr;
  void* context = nullptr;
  cuda_carries carries = {};

  /// The stream is always named: {} means the CPU.
  explicit cuda(CUstream_st* on, cuda_workspace memory = {}) : stream(on), workspace(memory) {}
  /// Asks for the workspace, allocate(context, bytes), where a run needs one: once, before it launches
  /// anything.
  cuda(CUstream_st* on, cuda_allocator with, void* context_of)
      : stream(on), allocate(with), context(context_of) {}
};

/// An executor that launches nothing: the same call then says in `bytes` how much workspace it needs on the
/// GPU; where with_carries is set, what it needs with memory for carries, and in `carry_bytes` how much of
/// that it fills or finds filled, 0 where none.
struct cuda_sizing {
  std::int64_t bytes = 0;
  bool with_carries = false;
  std::int64_t carry_bytes = 0;
};

}  // namespace scandsl
