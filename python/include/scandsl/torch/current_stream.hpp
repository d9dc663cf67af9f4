#pragma once
#include <dlfcn.h>

#include "scandsl/core/error.hpp"
#include "scandsl/exec/cuda_executor.hpp"

namespace scandsl::binding {

/// torch's current stream of a CUDA device. The function that says it is in torch's CUDA library, which a
/// torch for CPUs does not have, so it is looked up at run time: one build serves both.
inline CUstream_st* current_stream(int device) {
  using function = int(int, void**);
  static function* const get = [] {
    void* const library = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    void* const found = library == nullptr ? nullptr : dlsym(library, "aoti_torch_get_current_cuda_stream");
    return reinterpret_cast<function*>(found);
  }();
  void* stream = nullptr;
  if (get == nullptr || get(device, &stream) != 0)
    throw cuda_error("a torch with CUDA", "one that gives no stream", "install a build of torch for CUDA");
  return static_cast<CUstream_st*>(stream);
}

}  // namespace scandsl::binding
