#pragma once
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/exec/cuda_executor.hpp"
#include "scandsl/ops/scan_gradients.hpp"
#include "scandsl/ops/scan_options.hpp"

namespace scandsl::ops {

struct decayed_sum_options : scan_options {
  bool log_decay = false;  ///< decay holds log(a): a = exp(decay)
};

/// h_t = a_t h_{t-1} + x_t along `dim`, y = h (exclusive: y_t = h_{t-1}).
///
/// x, y: the same shape of any rank, any strides; float32, float64, bfloat16 or float16, y of x's dtype.
/// decay: any shape that broadcasts against x (per element, per head, one number: rank 0); of x's dtype or
/// float32. Arithmetic in float32 (float64 for float64), rounded once. An absent initial state is 0. Throws
/// index_error (dim), shape_error, dtype_error, argument_error (null memory, cu_seqlens), overlap_error,
/// before anything is written.
void decayed_sum(const cpu& device, const array& x, const array& decay, int dim, const array& y,
                 const decayed_sum_options& options = {});

/// The same on the GPU, with device memory: launches on the device's stream and returns at once. The values
/// of cu_seqlens are not looked at. Throws cuda_error too. With memory in device.carries the call leaves
/// carries for the gradient there. The last one launches nothing and says how much workspace the call needs,
/// and, with_carries, how much memory for carries (0: it leaves none).
void decayed_sum(const cuda& device, const array& x, const array& decay, int dim, const array& y,
                 const decayed_sum_options& options = {});
void decayed_sum(cuda_sizing& device, const array& x, const array& decay, int dim, const array& y,
                 const decayed_sum_options& options = {});

struct decayed_sum_gradients : scan_gradients {
  std::optional<array> decay_gradient;  ///< written: of decay's shape and dtype, summed over what repeats
};

/// The gradient of decayed_sum, derived from its program: dx = r with r_t = dy_t + a_{t+1} r_{t+1}, da_t =
/// h_{t-1} r_t, of a decay's logarithm a da. Sums over what decay repeats along are in float32 (float64 for
/// float64) and of a fixed order.
///
/// `options` are those of the forward call (its final_state is not looked at). Shapes, dtypes and errors as
/// in the forward call; x_gradient must not overlap what is read, unless it is the very view of y_cotangent
/// or x. On the GPU the call begins with the carries in device.carries, which the forward call on the same
/// operands left there: give them where cuda_sizing asks both calls for as many bytes.
void decayed_sum_backward(const cpu& device, const array& x, const array& decay, int dim,
                          const decayed_sum_gradients& gradients, const decayed_sum_options& options = {});
void decayed_sum_backward(const cuda& device, const array& x, const array& decay, int dim,
                          const decayed_sum_gradients& gradients, const decayed_sum_options& options = {});
void decayed_sum_backward(cuda_sizing& device, const array& x, const array& decay, int dim,
                          const decayed_sum_gradients& gradients, const decayed_sum_options& options = {});

struct decayed_sum_second_gradients : scan_second_gradients {
  std::optional<array> decay_gradient_cotangent;  ///< of decay's shape and dtype
  std::optional<array> decay_gradient;  ///< written: of x's shape, not summed over what decay repeats along;
                                        ///< of decay's dtype or float32 (float64 for float64)
};

/// The backward pass of decayed_sum_backward, derived once more; it gives the tangent of decayed_sum too.
/// `options` and errors as there.
void decayed_sum_double_backward(const cpu& device, const array& x, const array& decay, int dim,
                                 const decayed_sum_second_gradients& gradients,
                                 const decayed_sum_options& options = {});
void decayed_sum_double_backward(const cuda& device, const array& x, const array& decay, int dim,
                                 const decayed_sum_second_gradients& gradients,
                                 const decayed_sum_options& options = {});
void decayed_sum_double_backward(cuda_sizing& device, const array& x, const array& decay, int dim,
                                 const decayed_sum_second_gradients& gradients,
                                 const decayed_sum_options& options = {});

}  // namespace scandsl::ops
