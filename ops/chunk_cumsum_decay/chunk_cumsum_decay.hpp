#pragma once
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/exec/cuda_executor.hpp"
#include "scandsl/ops/scan_options.hpp"

namespace scandsl::ops {

struct chunk_cumsum_options {
  int dim = 1;
  std::int64_t chunk_size = 128;    ///< at least 1
  bool reverse = false;             ///< from each chunk's end to its start, added in that order
  bool exclusive = false;           ///< the sum before each position
  std::optional<array> cu_seqlens;  ///< int32 or int64 [S + 1]: packed sequences, each with chunks of its own
};

/// The cumulative sum along `dim` that restarts every chunk_size positions, counted from position 0 (of the
/// sequence) in both directions; the last chunk may be short.
///
/// log_decay, y: the same shape of any rank, any strides; float32, float64, bfloat16 or float16; y of
/// log_decay's dtype or float32. Arithmetic in float32 (float64 for float64), rounded once. Throws
/// index_error (dim), shape_error, dtype_error, argument_error (chunk_size < 1, null memory, cu_seqlens),
/// overlap_error, before anything is written.
void chunk_cumsum_decay(const cpu& device, const array& log_decay, const array& y,
                        const chunk_cumsum_options& options = {});

/// The same on the GPU, with device memory: launches on the device's stream and returns at once. The values
/// of cu_seqlens are not looked at. Throws cuda_error too. The last one launches nothing and says how much
/// workspace the call needs.
void chunk_cumsum_decay(const cuda& device, const array& log_decay, const array& y,
                        const chunk_cumsum_options& options = {});
void chunk_cumsum_decay(cuda_sizing& device, const array& log_decay, const array& y,
                        const chunk_cumsum_options& options = {});

/// The gradient of chunk_cumsum_decay, derived from its program: the same sum of y's cotangent, the other
/// way.
///
/// y_cotangent: of y's shape and dtype, any strides (expanded ones too). log_decay_gradient is written: of
/// log_decay's shape and dtype. `options` are those of the forward call. Errors as in the forward call.
void chunk_cumsum_decay_backward(const cpu& device, const array& y_cotangent, const array& log_decay_gradient,
                                 const chunk_cumsum_options& options = {});
void chunk_cumsum_decay_backward(const cuda& device, const array& y_cotangent,
                                 const array& log_decay_gradient, const chunk_cumsum_options& options = {});
void chunk_cumsum_decay_backward(cuda_sizing& device, const array& y_cotangent,
                                 const array& log_decay_gradient, const chunk_cumsum_options& options = {});

}  // namespace scandsl::ops
