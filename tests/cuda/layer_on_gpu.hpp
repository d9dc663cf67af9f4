#pragma once
#include "../examples/layer.hpp"

/// The layer of examples/layer.hpp, compiled for the GPU in one file and for the host in another.
namespace layer_on_gpu {

using namespace scandsl;

/// Runs P on the GPU with the kernels for elements T, over copies of operands in host memory.
template <const program& P, class T> void run_on_gpu(const problem& host);

}  // namespace layer_on_gpu
