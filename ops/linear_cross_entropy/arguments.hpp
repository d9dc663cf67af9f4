#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "../common/operands.hpp"
#include "matrix.hpp"
#include "scandsl/core/overlap.hpp"
#include "scandsl/ops/linear_cross_entropy.hpp"

/// Private to the op: the arguments of one call, and what can be wrong with them.
namespace scandsl::ops {

struct call_arguments {
  array x, weight;
  std::optional<array> target;  ///< absent where the logits' gradient is known
  std::optional<array> loss;    ///< absent in a backward
  linear_cross_entropy_gradients gradients = {};
  std::optional<array> pending = {};
  linear_cross_entropy_options options = {};
  bool backward = false;  ///< the cotangents are those of gradients
  /// [C, V]: the memory of a chunk, in which that of the last chunk stays. Written with the loss, read
  /// without a target.
  std::optional<array> logits_gradient = {};
  std::optional<array> factor = {};  ///< of its products, beside pending

  std::int64_t tokens() const {
    return std::accumulate(x.extents, x.extents + x.rank - 1, std::int64_t{1}, std::multiplies<>());
  }
  std::int64_t features() const { return x.extents[x.rank - 1]; }
  std::int64_t classes() const { return weight.extents[0]; }
  dtype sums() const { return state_dtype(x.type); }
  bool wants_gradients() const {
    return gradients.x_gradient || gradients.weight_gradient || gradients.bias_gradient || logits_gradient;
  }
  /// Whether it begins at the logits' gradient, so that only the products are left.
  bool is_products() const { return !target; }
  /// Whether each token has a cotangent of its own. Then it is in the gradient of the logits, else in the
  /// factor of the products.
  bool has_token_cotangents() const {
    return backward && (options.reduction == loss_reduction::none || gradients.lse_cotangent ||
                        !gradients.loss_cotangent);
  }
  /// Whether the products lack a factor, which is written to pending.
  bool leaves_factor_pending() const { return pending && !is_products(); }
  /// Whether it is one of two passes, of which the first one takes several chunks.
  bool keeps_last_chunk() const { return logits_gradient && logits_gradient->extents[0] < tokens(); }
  /// Whether what two passes make of x's and the bias' gradients, for all chunks but the last, lacks pending
  /// too, as the weight's does, not only the later factor: divided by the number of tokens before it is
  /// multiplied with a loss scale, float16 would vanish.
  bool earlier_lack_pending() const { return x.type == dtype::float16; }
  dtype accumulate() const { return options.accumulate.value_or(weight.type); }
};

namespace detail {

struct named_operand {
  const char* id;
  const std::optional<array>& given;
  bool is_output;
};

inline std::vector<named_operand> operands_of(const call_arguments& call,
                                              const std::optional<array> (&required)[2]) {
  const bool is_forward = !call.is_products();
  return {{"x", required[0], false},
          {"weight", required[1], false},
          {"target", call.target, false},
          {"bias", call.options.bias, false},
          {"class_weight", call.options.class_weight, false},
          {"loss_cotangent", call.gradients.loss_cotangent, false},
          {"lse_cotangent", call.gradients.lse_cotangent, false},
          {"factor", call.factor, false},
          {"loss", call.loss, true},
          {"lse", call.options.lse, true},
          {"pending", call.pending, is_forward},
          {"logits_gradient", call.logits_gradient, is_forward},
          {"x_gradient", call.gradients.x_gradient, true},
          {"weight_gradient", call.gradients.weight_gradient, true},
          {"bias_gradient", call.gradients.bias_gradient, true}};
}

inline void check_memory(const call_arguments& call) {
  const std::optional<array> required[] = {call.x, call.weight};
  const std::vector<named_operand> all = operands_of(call, required);
  for (const named_operand& each : all) {
    if (!each.given) continue;
    if (each.given->data == nullptr && each.given->count() > 0)
      throw argument_error(message("memory for ", each.id), "a null pointer", "bind allocated memory");
    if (each.is_output && !each.given->writable)
      throw argument_error(message("writable memory for ", each.id), "a view of const",
                           "bind memory that may be written");
  }
  for (const named_operand& out : all) {
    if (!out.given || !out.is_output) continue;
    const footprint mine = footprint_of(rows_of(*out.given, 0));
    if (self_overlaps(mine))
      throw overlap_error(message("distinct memory for each element of ", out.id),
                          "a view whose elements share memory", "write to a dense tensor, then expand it");
    for (const named_operand& other : all)
      if (other.given && &other != &out && overlaps(mine, footprint_of(rows_of(*other.given, 0))))
        throw overlap_error(message(out.id, " apart from ", other.id), "views that share memory",
                            "bind other memory");
  }
}

inline void check_shapes(const call_arguments& call) {
  const array &x = call.x, &weight = call.weight;
  if (x.rank < 1)
    throw shape_error("x of shape [..., D]", "rank 0", "give each token its features as the last dimension");
  if (weight.rank != 2 || weight.extents[1] != call.features())
    throw shape_error(message("weight of shape [V, ", call.features(), "]"),
                      shape_text(weight.extents, weight.rank), "the last dimension of both is the features");
  // Programs number the classes in float32.
  if (weight.extents[0] < 1 || weight.extents[0] > (std::int64_t{1} << 24))
    throw shape_error("from 1 to 2^24 classes", message(weight.extents[0]), "weight is [V, D]");
  const auto shaped = [](const char* id, const std::optional<array>& given, const std::int64_t* extents,
                         int rank) {
    if (given) require_shape(id, *given, extents, rank, "see what linear_cross_entropy takes");
  };
  const int tokens = x.rank - 1;
  const int losses = call.options.reduction == loss_reduction::none ? tokens : 0;
  shaped("target", call.target, x.extents, tokens);
  shaped("loss", call.loss, x.extents, losses);
  shaped("lse", call.options.lse, x.extents, tokens);
  shaped("bias", call.options.bias, weight.extents, 1);
  shaped("class_weight", call.options.class_weight, weight.extents, 1);
  shaped("loss_cotangent", call.gradients.loss_cotangent, x.extents, losses);
  shaped("lse_cotangent", call.gradients.lse_cotangent, x.extents, tokens);
  shaped("x_gradient", call.gradients.x_gradient, x.extents, x.rank);
  shaped("weight_gradient", call.gradients.weight_gradient, weight.extents, 2);
  shaped("bias_gradient", call.gradients.bias_gradient, weight.extents, 1);
  shaped("pending", call.pending, nullptr, 0);
  shaped("factor", call.factor, nullptr, 0);
  std::int64_t logits[] = {call.tokens(), call.classes()};
  if (const std::optional<array>& given = call.logits_gradient; given && given->rank == 2 && logits[0] > 0)
    logits[0] = std::clamp(given->extents[0], std::int64_t{1}, logits[0]);
  shaped("logits_gradient", call.logits_gradient, logits, 2);
}

inline void check_types(const call_arguments& call) {
  require_floating("x", call.x);
  if (call.target && is_floating(call.target->type))
    throw dtype_error("int32 or int64 for target", name_of(call.target->type), "target holds class indices");
  const dtype type = call.x.type, sums = call.sums();
  const auto typed = [](const char* id, const std::optional<array>& given, dtype expected) {
    if (given) require_dtype(id, *given, expected, expected);
  };
  typed("weight", call.weight, type);
  typed("bias", call.options.bias, type);
  typed("class_weight", call.options.class_weight, dtype::float32);
  typed("x_gradient", call.gradients.x_gradient, type);
  typed("weight_gradient", call.gradients.weight_gradient, type);
  typed("bias_gradient", call.gradients.bias_gradient, type);
  typed("loss", call.loss, sums);
  typed("lse", call.options.lse, sums);
  typed("pending", call.pending, sums);
  typed("factor", call.factor, sums);
  typed("logits_gradient", call.logits_gradient, type);
  typed("loss_cotangent", call.gradients.loss_cotangent, sums);
  typed("lse_cotangent", call.gradients.lse_cotangent, sums);
  if (const std::optional<dtype> sum = call.options.accumulate;
      sum && *sum != call.weight.type && *sum != sums)
    throw dtype_error(message(name_of(sums), " or ", name_of(type), " for accumulate"), name_of(*sum),
                      "leave it out for weight's type");
}

inline void check_options(const linear_cross_entropy_options& options) {
  if (!(options.label_smoothing >= 0.0 && options.label_smoothing <= 1.0))
    throw argument_error("label_smoothing in [0, 1]", message(options.label_smoothing), "give a share");
  if (!std::isfinite(options.z_loss))
    throw argument_error("a finite z_loss", message(options.z_loss), "0 is none");
  if (options.softcap && !(*options.softcap > 0.0 && std::isfinite(*options.softcap)))
    throw argument_error("a positive softcap", message(*options.softcap), "leave it out for none");
  if (options.memory_limit < 0)
    throw argument_error("memory_limit of at least 0", message(options.memory_limit), "0 is no limit");
  if (options.tokens_a_chunk < 0)
    throw argument_error("tokens_a_chunk of at least 0", message(options.tokens_a_chunk), "0 chooses");
}

}  // namespace detail

/// What can be wrong with operands that may be without memory. Throws shape_error, dtype_error and
/// argument_error.
inline void check_without_memory(const call_arguments& call) {
  detail::check_shapes(call);
  detail::check_types(call);
  detail::check_options(call.options);
  if (call.gradients.bias_gradient && !call.options.bias && !call.is_products())
    throw argument_error("a bias with bias_gradient", "none", "give the bias of the forward call");
  if (call.pending && call.options.reduction == loss_reduction::none)
    throw argument_error("a reduced loss with pending", "reduction none", "leave pending out");
  if (const std::optional<array>& logits = call.logits_gradient;
      logits && logits->count() > 0 && !merged(*logits)->is_row_major())
    throw argument_error("contiguous rows of logits_gradient",
                         message(shape_text(logits->strides, 2), " for strides"),
                         "allocate it as [N, V], or fewer rows for chunks, or with longer rows");
  if (call.keeps_last_chunk() && !call.gradients.x_gradient && !call.gradients.weight_gradient &&
      !call.gradients.bias_gradient)
    throw argument_error("the gradients that two passes of several chunks are to complete", "none",
                         "give them, or a logits_gradient for all tokens");
  if (call.keeps_last_chunk() && call.gradients.weight_gradient && call.accumulate() != call.weight.type)
    throw argument_error(
        message(name_of(call.weight.type), " for accumulate, in two passes of several chunks"),
        name_of(call.accumulate()), "take linear_cross_entropy_with_gradients");
}

/// Throws shape_error, dtype_error, argument_error and overlap_error.
inline void check_arguments(const call_arguments& call) {
  check_without_memory(call);
  detail::check_memory(call);
}

/// The same for scale_gradients.
inline void check_scaling(const linear_cross_entropy_gradients& gradients, const array& factor,
                          const std::optional<array>& pending) {
  for (const std::optional<array>* each :
       {&gradients.x_gradient, &gradients.weight_gradient, &gradients.bias_gradient}) {
    if (!*each) continue;
    require_floating("a gradient", **each);
    require_dtype("factor", factor, state_dtype((*each)->type), state_dtype((*each)->type));
  }
  for (const array* each : {&factor, pending ? &*pending : &factor}) {
    require_shape("factor, pending", *each, nullptr, 0, "give one number");
    require_dtype("factor, pending", *each, factor.type, factor.type);
  }
}

}  // namespace scandsl::ops
