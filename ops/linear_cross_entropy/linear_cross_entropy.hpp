#pragma once
#include <optional>
#include <string>

#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/exec/cuda_executor.hpp"

namespace scandsl::ops {

/// How the losses of the tokens become the result.
enum class loss_reduction {
  none,  ///< not at all: one loss a token, 0 where it is ignored
  mean,  ///< their sum over the sum of the class weights of the tokens that count
  sum,
};

/// How the matrix products are chosen on the GPU. The CPU's BLAS has nothing to choose.
struct product_tuning {
  /// Time what cuBLASLt offers, once in a process for shapes of much the same sizes; without, its first
  /// choice is taken. The call that times waits for the device; inside a graph capture nothing is timed.
  bool times = true;
  /// A file that keeps what was found for later processes; empty: none.
  std::string file;
};

struct linear_cross_entropy_options {
  std::optional<array> bias;          ///< [V], of x's dtype
  std::optional<array> class_weight;  ///< [V], float32; has no gradient
  std::int64_t ignore_index = -100;   ///< tokens with this target do not count
  double label_smoothing = 0.0;       ///< in [0, 1]: the share of the target that is spread over all classes
  double z_loss = 0.0;                ///< adds z_loss lse^2 to the loss of each token that counts
  std::optional<double> softcap;      ///< c > 0: logits z become c tanh(z / c)
  loss_reduction reduction = loss_reduction::mean;
  std::optional<array> lse;         ///< written: log-sum-exp of each token's logits; shape of target
  std::optional<dtype> accumulate;  ///< of the weight's gradient over chunks: float32 or (default) weight's
  /// Bytes of memory beside the operands; 0: what the device has. Of a GPU's, what is free then matters for
  /// calls that need more than 1/256 of it.
  std::int64_t memory_limit = 0;
  std::int64_t tokens_a_chunk = 0;  ///< 0: chosen from the shapes and the memory
  bool check_targets = false;  ///< on the GPU: wait for the targets and check them, as the CPU always does
  product_tuning tuning;
};

/// What a backward takes and gives. An absent cotangent counts as 0; an absent gradient is not computed.
struct linear_cross_entropy_gradients {
  std::optional<array> loss_cotangent;  ///< of the loss' shape, float32 (float64 for float64)
  std::optional<array> lse_cotangent;   ///< of lse's
  std::optional<array> x_gradient, weight_gradient, bias_gradient;  ///< written, as x, weight and bias are
};

/// Cross entropy of the logits x weight^T + bias, which never exist all at once: they are computed for a
/// chunk of tokens at a time, in x's dtype.
///
///   z = x weight^T + bias, with softcap c: c tanh(z / c)
///   q = (1 - label_smoothing) w_target [v = target] + label_smoothing w_v / V,    w = class_weight
///   loss = sum over v of q_v (lse - z_v) + z_loss lse^2,                          lse = log(sum exp(z_v))
///
/// x: [..., D], weight: [V, D], any strides; float32, float64, bfloat16 or float16, all alike. target: int32
/// or int64, x's shape without D. loss, lse: float32 (float64 for float64); loss of target's shape, of rank 0
/// where it is reduced. A batch in which no token counts has the mean NaN and the sum 0.
///
/// Memory beside the operands: plan_linear_cross_entropy. Throws shape_error, dtype_error, argument_error
/// (options, null memory, a target that is no class and not ignore_index) and overlap_error, before anything
/// is written.
void linear_cross_entropy(const cpu& device, const array& x, const array& weight, const array& target,
                          const array& loss, const linear_cross_entropy_options& options = {});

/// The same on the GPU, with device memory. Launches on the device's stream and returns at once, but for what
/// product_tuning and check_targets say. A target that is neither a class nor ignore_index makes its token's
/// loss NaN and nothing else happens. Throws cuda_error too, and argument_error where the workspace is too
/// small. The last one launches nothing and says how much workspace the call needs.
void linear_cross_entropy(const cuda& device, const array& x, const array& weight, const array& target,
                          const array& loss, const linear_cross_entropy_options& options = {});
void linear_cross_entropy(cuda_sizing& device, const array& x, const array& weight, const array& target,
                          const array& loss, const linear_cross_entropy_options& options = {});

/// The loss and its gradients in one pass: three products where the loss alone needs one and a later backward
/// three more. The cotangents are not looked at; those of the losses count as 1. To apply the true one of a
/// reduced loss later: scale_gradients.
///
/// `pending`, of rank 0 and the loss' dtype, is written where it is given: the factor (1 over the mean's
/// denominator) that the gradients then lack. float16 needs it, for a gradient that is divided by the number
/// of tokens before it is multiplied with a loss scale would vanish.
void linear_cross_entropy_with_gradients(const cpu& device, const array& x, const array& weight,
                                         const array& target, const array& loss,
                                         const linear_cross_entropy_gradients& gradients,
                                         const linear_cross_entropy_options& options = {},
                                         const std::optional<array>& pending = {});
void linear_cross_entropy_with_gradients(const cuda& device, const array& x, const array& weight,
                                         const array& target, const array& loss,
                                         const linear_cross_entropy_gradients& gradients,
                                         const linear_cross_entropy_options& options = {},
                                         const std::optional<array>& pending = {});
void linear_cross_entropy_with_gradients(cuda_sizing& device, const array& x, const array& weight,
                                         const array& target, const array& loss,
                                         const linear_cross_entropy_gradients& gradients,
                                         const linear_cross_entropy_options& options = {},
                                         const std::optional<array>& pending = {});

/// Multiplies gradients, in place, by `factor` and by `pending` where it is given, both of rank 0 and read on
/// the device. On the GPU a product of 1 costs a launch and touches no gradient.
void scale_gradients(const cpu& device, const linear_cross_entropy_gradients& gradients, const array& factor,
                     const std::optional<array>& pending = {});
void scale_gradients(const cuda& device, const linear_cross_entropy_gradients& gradients, const array& factor,
                     const std::optional<array>& pending = {});

/// The same in two passes, of which the second begins once it is known how much the loss counts, so that what
/// is multiplied with that is the products' sums. The first gives the loss and the logits' gradient; the
/// second, linear_cross_entropy_products, does the rest.
///
/// logits_gradient: [C, V], of x's dtype, with contiguous rows; whole cache lines a row (a plan's logits_row)
/// make products faster. It is written: the gradient of the sum of the tokens' losses by x weight^T. So is
/// `pending`, of rank 0 and the loss' dtype: the factor that it lacks for the reduced loss, 1 over the mean's
/// denominator, 0 where no token counts.
///
/// C is N, the number of tokens, or less. Then it is the memory of a chunk (a plan's tokens_a_chunk), in
/// which the last chunk's gradient stays, and `earlier` are the gradients that the second pass is to
/// complete, written from the other chunks: they lack how much the loss counts, and `pending` too in float16
/// and in the weight's gradient. With all tokens they are not looked at. options.tokens_a_chunk never is.
/// Throws argument_error for reduction none too, for C < N without `earlier`, and for a weight's gradient
/// that is summed in a wider dtype then.
void linear_cross_entropy_with_logits_gradient(const cpu& device, const array& x, const array& weight,
                                               const array& target, const array& loss,
                                               const array& logits_gradient, const array& pending,
                                               const linear_cross_entropy_options& options = {},
                                               const linear_cross_entropy_gradients& earlier = {});
void linear_cross_entropy_with_logits_gradient(const cuda& device, const array& x, const array& weight,
                                               const array& target, const array& loss,
                                               const array& logits_gradient, const array& pending,
                                               const linear_cross_entropy_options& options = {},
                                               const linear_cross_entropy_gradients& earlier = {});
void linear_cross_entropy_with_logits_gradient(cuda_sizing& device, const array& x, const array& weight,
                                               const array& target, const array& loss,
                                               const array& logits_gradient, const array& pending,
                                               const linear_cross_entropy_options& options = {},
                                               const linear_cross_entropy_gradients& earlier = {});

/// The gradients from that of the logits, alpha being factor * pending, both of rank 0, float32 (float64 for
/// float64) and read on the device:
///
///   x_gradient = alpha logits_gradient weight,    weight_gradient = alpha logits_gradient^T x,
///   bias_gradient = alpha times the sum of logits_gradient over the tokens
///
/// alpha is applied to the sums of the products. x, weight, logits_gradient and pending are those of the
/// first pass; cotangents are not looked at. On the GPU nothing but the choice of products waits.
///
/// Of all tokens: each gradient is rounded once, and logits_gradient serves any number of calls. Of a last
/// chunk: `gradients` are the first pass' `earlier`, all of them, and are completed, which can be done once.
/// What is there is multiplied with what it lacks (a weight's gradient by 0 is 0, whatever it was), and the
/// last chunk's products are added.
void linear_cross_entropy_products(const cpu& device, const array& x, const array& weight,
                                   const array& logits_gradient,
                                   const linear_cross_entropy_gradients& gradients, const array& factor,
                                   const array& pending, const product_tuning& tuning = {});
void linear_cross_entropy_products(const cuda& device, const array& x, const array& weight,
                                   const array& logits_gradient,
                                   const linear_cross_entropy_gradients& gradients, const array& factor,
                                   const array& pending, const product_tuning& tuning = {});
void linear_cross_entropy_products(cuda_sizing& device, const array& x, const array& weight,
                                   const array& logits_gradient,
                                   const linear_cross_entropy_gradients& gradients, const array& factor,
                                   const array& pending, const product_tuning& tuning = {});

/// The gradients for given cotangents, from x, weight and target alone: the logits are computed again. For a
/// vector of cotangents (reduction none), for a cotangent of lse, and for a second backward. `options` are
/// those of the forward call; lse is not looked at.
void linear_cross_entropy_backward(const cpu& device, const array& x, const array& weight,
                                   const array& target, const linear_cross_entropy_gradients& gradients,
                                   const linear_cross_entropy_options& options = {});
void linear_cross_entropy_backward(const cuda& device, const array& x, const array& weight,
                                   const array& target, const linear_cross_entropy_gradients& gradients,
                                   const linear_cross_entropy_options& options = {});
void linear_cross_entropy_backward(cuda_sizing& device, const array& x, const array& weight,
                                   const array& target, const linear_cross_entropy_gradients& gradients,
                                   const linear_cross_entropy_options& options = {});

/// How a call goes: what is held beside the operands, and why.
struct linear_cross_entropy_plan {
  const char* device = "";
  std::int64_t tokens = 0, classes = 0, features = 0;
  dtype type = dtype::float32, accumulate = dtype::float32;
  bool with_gradients = false;
  std::int64_t tokens_a_chunk = 0, chunks = 0;
  std::int64_t logits_row = 0;        ///< elements from one row of logits to the next
  std::int64_t logits_bytes = 0;      ///< of a chunk
  std::int64_t all_logits_bytes = 0;  ///< of all tokens, which never are
  std::int64_t copied_bytes = 0;      ///< operands that the products do not take as they lie, or a wider dW
  std::int64_t memory_bytes = 0;      ///< all of it; on the GPU the workspace
  /// A reduced loss, of one chunk or with a weight's gradient that is summed in its own type:
  /// linear_cross_entropy_with_logits_gradient takes no more memory, and the weight's gradient needs no
  /// scaling. logits_bytes are then kept between the passes.
  bool keeps_logits_gradient = false;
};

/// The plan of a call with these operands, which may be without memory: of the loss, and with gradients where
/// `gradients` has any. The GPU's is for the current device. Throws as the call does.
linear_cross_entropy_plan plan_linear_cross_entropy(const cpu& device, const array& x, const array& weight,
                                                    const linear_cross_entropy_gradients& gradients = {},
                                                    const linear_cross_entropy_options& options = {});
linear_cross_entropy_plan plan_linear_cross_entropy(cuda_sizing& device, const array& x, const array& weight,
                                                    const linear_cross_entropy_gradients& gradients = {},
                                                    const linear_cross_entropy_options& options = {});

/// The plan in words.
std::string explain(const linear_cross_entropy_plan& plan);

}  // namespace scandsl::ops
