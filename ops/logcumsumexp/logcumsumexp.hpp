#pragma once
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/exec/cuda_executor.hpp"
#include "scandsl/ops/scan_gradients.hpp"
#include "scandsl/ops/scan_options.hpp"

namespace scandsl::ops {

/// y_t = log(sum over s <= t of exp(x_s)) along `dim`, over the whole floating-point range: a prefix of -inf
/// gives -inf, and from a +inf on y is +inf.
///
/// x, y: the same shape of any rank, any strides; float32, float64, bfloat16 or float16, y of x's dtype.
/// Arithmetic in float32 (float64 for float64), rounded once. `dim` may be negative. An absent initial state
/// is -inf. Throws index_error (dim), shape_error, dtype_error, argument_error (null memory, cu_seqlens),
/// overlap_error, before anything is written.
void logcumsumexp(const cpu& device, const array& x, int dim, const array& y,
                  const scan_options& options = {});

/// The same on the GPU, with device memory: launches on the device's stream and returns at once. The values
/// of cu_seqlens are not looked at. Throws cuda_error too. With memory in device.carries the call leaves
/// carries for the gradient there. The last one launches nothing and says how much workspace the call needs,
/// and, with_carries, how much memory for carries (0: it leaves none).
void logcumsumexp(const cuda& device, const array& x, int dim, const array& y,
                  const scan_options& options = {});
void logcumsumexp(cuda_sizing& device, const array& x, int dim, const array& y,
                  const scan_options& options = {});

/// The gradient of logcumsumexp, derived from its program: dx_t = exp(x_t - y_t) r_t with r_t = dy_t +
/// exp(y_t - y_{t+1}) r_{t+1}. It needs x and no y. Positions and initial states of -inf have gradient 0,
/// also where y is -inf.
///
/// `options` are those of the forward call (its final_state is not looked at). Shapes, dtypes and errors as
/// in the forward call; x_gradient must not overlap what is read, unless it is the very view of y_cotangent
/// or x. On the GPU the call begins with the carries in device.carries, which the forward call on the same
/// operands left there: give them where cuda_sizing asks both calls for as many bytes.
void logcumsumexp_backward(const cpu& device, const array& x, int dim, const scan_gradients& gradients,
                           const scan_options& options = {});
void logcumsumexp_backward(const cuda& device, const array& x, int dim, const scan_gradients& gradients,
                           const scan_options& options = {});
void logcumsumexp_backward(cuda_sizing& device, const array& x, int dim, const scan_gradients& gradients,
                           const scan_options& options = {});

/// The backward pass of logcumsumexp_backward, derived once more; it gives the tangent of logcumsumexp too.
/// `options` and errors as there.
void logcumsumexp_double_backward(const cpu& device, const array& x, int dim,
                                  const scan_second_gradients& gradients, const scan_options& options = {});
void logcumsumexp_double_backward(const cuda& device, const array& x, int dim,
                                  const scan_second_gradients& gradients, const scan_options& options = {});
void logcumsumexp_double_backward(cuda_sizing& device, const array& x, int dim,
                                  const scan_second_gradients& gradients, const scan_options& options = {});

}  // namespace scandsl::ops
