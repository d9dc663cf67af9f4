#pragma once
#include "scandsl/core/view.hpp"
#include "scandsl/exec/cuda_executor.hpp"

/// Private to the op: gradients times a number that is in the device's memory.
namespace scandsl::ops {

/// values *= *factor * *pending, in one rounding; pending may be null. Where the product is 1, nothing is
/// read or written. Both are float32, float64 for float64.
void scale(const cuda& device, const erased_view& values, const void* factor, const void* pending);

}  // namespace scandsl::ops
