#pragma once
#include "scandsl/core/view.hpp"
#include "scandsl/exec/cuda_executor.hpp"

/// Private to the op: gradients times a number that is in the device's memory, and the numbers 1 and 0 there.
namespace scandsl::ops {

/// values *= *factor * *pending, in one rounding; pending may be null. Where the product is 1, nothing is
/// read or written. Both are float32, float64 for float64.
void scale(const cuda& device, const erased_view& values, const void* factor, const void* pending);

/// float64 for float64, float32 for all other types.
struct one_and_zero {
  const void *one, *zero;
};
/// In the memory of the current device.
one_and_zero one_and_zero_of(dtype type);

}  // namespace scandsl::ops
