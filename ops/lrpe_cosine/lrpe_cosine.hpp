#pragma once
#include <cstdint>
#include <optional>

#include "scandsl/core/view.hpp"
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/exec/cuda_executor.hpp"

namespace scandsl::ops {

/// What is applied to x before it is turned.
enum class lrpe_activation { none, relu, sigmoid, silu, softmax };

struct lrpe_options {
  std::int64_t offset = 0;         ///< of position 0: decoding goes on from here
  std::optional<array> positions;  ///< int32 or int64 [n] or [b, n], in place of offset + index
  lrpe_activation act = lrpe_activation::none;
  int act_dim = -1;  ///< of softmax: -1 (or 3) the features, 1 the sequence
};

/// Linearised relative positional encoding: with f = act(x) and angle = position * theta, y is f cos(angle)
/// and behind it f sin(angle), along the last dimension.
///
/// x: [b, n, h, d], any strides; float32, float64, bfloat16 or float16. y: [b, n, h, 2 d], of x's dtype.
/// theta: [h, d], [h, 1] or [1, d]; float32, or of x's dtype. The product is exact: cosines and sines are
/// within 2e-6 of their values. Arithmetic in float32 (float64 for float64), rounded once. Throws
/// shape_error, dtype_error, argument_error (null memory, positions beyond 2^31 without float64), index_error
/// (act_dim), overlap_error, before anything is written.
void lrpe_cosine(const cpu& device, const array& x, const array& theta, const array& y,
                 const lrpe_options& options = {});

/// The same on the GPU, with device memory: launches on the device's stream and returns at once. Throws
/// cuda_error too. The last one launches nothing and says how much workspace the call needs.
void lrpe_cosine(const cuda& device, const array& x, const array& theta, const array& y,
                 const lrpe_options& options = {});
void lrpe_cosine(cuda_sizing& device, const array& x, const array& theta, const array& y,
                 const lrpe_options& options = {});

/// What the backward of an encoding takes and gives beside its operands. An absent gradient is not written.
struct lrpe_gradients {
  array y_cotangent;                    ///< of y's shape and dtype
  std::optional<array> x_gradient;      ///< written: of x's shape and dtype
  std::optional<array> theta_gradient;  ///< written: of theta's shape and dtype
};

/// The gradient of lrpe_cosine, derived from its program. `options` are those of the forward call; shapes,
/// dtypes and errors too. Sums are in float32 (float64 for float64) and of a fixed order.
void lrpe_cosine_backward(const cpu& device, const array& x, const array& theta,
                          const lrpe_gradients& gradients, const lrpe_options& options = {});
void lrpe_cosine_backward(const cuda& device, const array& x, const array& theta,
                          const lrpe_gradients& gradients, const lrpe_options& options = {});
void lrpe_cosine_backward(cuda_sizing& device, const array& x, const array& theta,
                          const lrpe_gradients& gradients, const lrpe_options& options = {});

}  // namespace scandsl::ops
