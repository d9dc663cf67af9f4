#include <algorithm>

#include "scandsl/ops/linear_cross_entropy.hpp"

#include "results.hpp"

namespace scandsl::binding {
namespace {

/// The operands and options of a call, checked as far as the op does not.
struct loss_call {
  const Tensor& tensor;
  array x, weight, target;
  ops::linear_cross_entropy_options options;
  ScalarType sums;

  loss_call(const Tensor& input, const Tensor& matrix, const Tensor& classes, const optional_tensor& bias,
            const optional_tensor& class_weight, std::int64_t ignore_index, double label_smoothing,
            double z_loss, std::optional<double> softcap, std::int64_t reduction,
            std::optional<ScalarType> accumulate)
      : tensor(input), x(array_of("x", input)), weight(array_of("weight", matrix)),
        target(array_of("target", classes)),
        sums(x.type == dtype::float64 ? ScalarType::Double : ScalarType::Float) {
    require_same_device("weight", matrix, "x", input);
    require_same_device("target", classes, "x", input);
    require_same_device("bias", bias, "x", input);
    require_same_device("class_weight", class_weight, "x", input);
    options.bias = array_of("bias", bias);
    options.class_weight = array_of("class_weight", class_weight);
    options.ignore_index = ignore_index;
    options.label_smoothing = label_smoothing;
    options.z_loss = z_loss;
    options.softcap = softcap;
    options.reduction = static_cast<ops::loss_reduction>(reduction);
    if (accumulate) options.accumulate = dtype_of("accumulate", *accumulate);
  }

  Tensor new_number() const { return allocate({}, sums, tensor); }
  /// For one number a token.
  Tensor new_tokens() const {
    return allocate({x.extents, static_cast<std::size_t>(x.rank > 0 ? x.rank - 1 : 0)}, sums, tensor);
  }
  /// The loss, and with it lse, whose memory the options then have.
  tensor_list new_losses(bool return_lse) {
    tensor_list results = {options.reduction == ops::loss_reduction::none ? new_tokens() : new_number()};
    if (return_lse) {
      results.push_back(new_tokens());
      options.lse = array_of("lse", results[1], true);
    }
    return results;
  }
};

ops::linear_cross_entropy_gradients new_gradients(result_list& results, const Tensor& x, const Tensor& weight,
                                                  const optional_tensor& bias) {
  ops::linear_cross_entropy_gradients gradients;
  gradients.x_gradient = results.like("x_gradient", x);
  gradients.weight_gradient = results.like("weight_gradient", weight);
  gradients.bias_gradient = results.like("bias_gradient", bias);
  return gradients;
}

tensor_list forward(const Tensor& x, const Tensor& weight, const Tensor& target, const optional_tensor& bias,
                    const optional_tensor& class_weight, std::int64_t ignore_index, double label_smoothing,
                    double z_loss, std::optional<double> softcap, std::int64_t reduction,
                    std::optional<ScalarType> accumulate, bool return_lse) {
  loss_call call(x, weight, target, bias, class_weight, ignore_index, label_smoothing, z_loss, softcap,
                 reduction, accumulate);
  tensor_list results = call.new_losses(return_lse);
  const array loss = array_of("loss", results[0], true);
  run_where(x, [&](auto& device) {
    ops::linear_cross_entropy(device, call.x, call.weight, call.target, loss, call.options);
  });
  return results;
}

/// The shape of the memory in which a call keeps its last chunk's logits' gradient, whole cache lines a row.
/// Empty where calls keep none.
std::vector<std::int64_t> kept_shape(const Tensor& x, const Tensor& weight, const Tensor& target,
                                     const optional_tensor& bias, const optional_tensor& class_weight,
                                     std::int64_t ignore_index, double label_smoothing, double z_loss,
                                     std::optional<double> softcap, std::int64_t reduction,
                                     std::optional<ScalarType> accumulate, bool /*return_lse*/,
                                     const std::vector<bool>& wanted) {
  const loss_call call(x, weight, target, bias, class_weight, ignore_index, label_smoothing, z_loss, softcap,
                       reduction, accumulate);
  ops::linear_cross_entropy_gradients gradients;
  const auto plan_for = [&](std::size_t operand, const std::optional<array>& like, std::optional<array>& to) {
    if (!wanted.at(operand) || !like) return;
    to = like;
    to->data = nullptr;
  };
  plan_for(0, call.x, gradients.x_gradient);
  plan_for(1, call.weight, gradients.weight_gradient);
  plan_for(2, call.options.bias, gradients.bias_gradient);
  const auto shape = [&](auto&& device) -> std::vector<std::int64_t> {
    const auto plan = ops::plan_linear_cross_entropy(device, call.x, call.weight, gradients, call.options);
    if (!plan.keeps_logits_gradient) return {};
    return {plan.tokens_a_chunk, plan.logits_row};
  };
  if (!x.is_cuda()) return shape(cpu{});
  const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
  cuda_sizing sizing;
  return shape(sizing);
}

/// The V columns of memory of kept_shape that are the logits' gradient.
array logits_gradient_of(const Tensor& kept, const array& weight, bool writable) {
  array logits = array_of("logits_gradient", kept, writable);
  if (logits.rank == 2 && weight.rank == 2)
    logits.extents[1] = std::min(logits.extents[1], weight.extents[0]);
  return logits;
}

/// The results of forward, then `pending`, then, where there are several chunks, the gradients that are
/// wanted, which `complete` completes.
tensor_list with_logits_gradient(const Tensor& x, const Tensor& weight, const Tensor& target,
                                 const optional_tensor& bias, const optional_tensor& class_weight,
                                 std::int64_t ignore_index, double label_smoothing, double z_loss,
                                 std::optional<double> softcap, std::int64_t reduction,
                                 std::optional<ScalarType> accumulate, bool return_lse,
                                 const Tensor& logits_gradient, const std::vector<bool>& wanted) {
  loss_call call(x, weight, target, bias, class_weight, ignore_index, label_smoothing, z_loss, softcap,
                 reduction, accumulate);
  require_same_device("logits_gradient", logits_gradient, "x", x);
  tensor_list all = call.new_losses(return_lse);
  all.push_back(call.new_number());
  const array loss = array_of("loss", all[0], true), pending = array_of("pending", all.back(), true);
  const array kept = logits_gradient_of(logits_gradient, call.weight, true);
  const bool in_chunks = kept.rank == 2 && kept.extents[0] < call.target.count();
  const std::vector<bool> made = in_chunks ? wanted : std::vector<bool>(wanted.size());
  result_list results(made);
  const ops::linear_cross_entropy_gradients earlier = new_gradients(results, x, weight, bias);
  run_where(x, [&](auto& device) {
    ops::linear_cross_entropy_with_logits_gradient(device, call.x, call.weight, call.target, loss, kept,
                                                   pending, call.options, earlier);
  });
  all.insert(all.end(), results.tensors().begin(), results.tensors().end());
  return all;
}

/// The second pass over the gradients that with_logits_gradient left, in place.
void complete(const Tensor& x, const Tensor& weight, const Tensor& logits_gradient, const Tensor& factor,
              const Tensor& pending, const tensor_list& gradients, const std::vector<bool>& wanted) {
  require_same_device("weight", weight, "x", x);
  require_same_device("logits_gradient", logits_gradient, "x", x);
  require_same_device("factor", factor, "x", x);
  require_same_device("pending", pending, "x", x);
  ops::linear_cross_entropy_gradients earlier;
  std::size_t next = 0;
  const auto take = [&](std::size_t operand, const char* name, std::optional<array>& to) {
    if (!wanted.at(operand)) return;
    require_same_device(name, gradients.at(next), "x", x);
    to = array_of(name, gradients[next++], true);
  };
  take(0, "x_gradient", earlier.x_gradient);
  take(1, "weight_gradient", earlier.weight_gradient);
  take(2, "bias_gradient", earlier.bias_gradient);
  const array features = array_of("x", x), rows = array_of("weight", weight);
  const array kept = logits_gradient_of(logits_gradient, rows, false);
  const array by = array_of("factor", factor), missing = array_of("pending", pending);
  run_where(x, [&](auto& device) {
    ops::linear_cross_entropy_products(device, features, rows, kept, earlier, by, missing);
  });
}

tensor_list products(const Tensor& x, const Tensor& weight, const optional_tensor& bias,
                     const Tensor& logits_gradient, const Tensor& factor, const Tensor& pending,
                     const std::vector<bool>& wanted) {
  require_same_device("weight", weight, "x", x);
  require_same_device("logits_gradient", logits_gradient, "x", x);
  require_same_device("factor", factor, "x", x);
  require_same_device("pending", pending, "x", x);
  result_list results(wanted);
  const ops::linear_cross_entropy_gradients gradients = new_gradients(results, x, weight, bias);
  const array features = array_of("x", x), rows = array_of("weight", weight);
  const array kept = logits_gradient_of(logits_gradient, rows, false);
  const array by = array_of("factor", factor), missing = array_of("pending", pending);
  run_where(x, [&](auto& device) {
    ops::linear_cross_entropy_products(device, features, rows, kept, gradients, by, missing);
  });
  return results.tensors();
}

/// The results of forward, then `pending` where it is asked for, then the gradients that are wanted.
tensor_list with_gradients(const Tensor& x, const Tensor& weight, const Tensor& target,
                           const optional_tensor& bias, const optional_tensor& class_weight,
                           std::int64_t ignore_index, double label_smoothing, double z_loss,
                           std::optional<double> softcap, std::int64_t reduction,
                           std::optional<ScalarType> accumulate, bool return_lse, bool leave_pending,
                           const std::vector<bool>& wanted) {
  loss_call call(x, weight, target, bias, class_weight, ignore_index, label_smoothing, z_loss, softcap,
                 reduction, accumulate);
  tensor_list all = call.new_losses(return_lse);
  const array loss = array_of("loss", all[0], true);
  std::optional<array> pending;
  if (leave_pending) {
    all.push_back(call.new_number());
    pending = array_of("pending", all.back(), true);
  }
  result_list results(wanted);
  const ops::linear_cross_entropy_gradients gradients = new_gradients(results, x, weight, bias);
  run_where(x, [&](auto& device) {
    ops::linear_cross_entropy_with_gradients(device, call.x, call.weight, call.target, loss, gradients,
                                             call.options, pending);
  });
  all.insert(all.end(), results.tensors().begin(), results.tensors().end());
  return all;
}

tensor_list backward(const optional_tensor& loss_cotangent, const optional_tensor& lse_cotangent,
                     const Tensor& x, const Tensor& weight, const Tensor& target, const optional_tensor& bias,
                     const optional_tensor& class_weight, std::int64_t ignore_index, double label_smoothing,
                     double z_loss, std::optional<double> softcap, std::int64_t reduction,
                     std::optional<ScalarType> accumulate, bool /*return_lse*/,
                     const std::vector<bool>& wanted) {
  const loss_call call(x, weight, target, bias, class_weight, ignore_index, label_smoothing, z_loss, softcap,
                       reduction, accumulate);
  result_list results(wanted);
  ops::linear_cross_entropy_gradients gradients = new_gradients(results, x, weight, bias);
  gradients.loss_cotangent = array_of("loss_cotangent", loss_cotangent);
  gradients.lse_cotangent = array_of("lse_cotangent", lse_cotangent);
  run_where(x, [&](auto& device) {
    ops::linear_cross_entropy_backward(device, call.x, call.weight, call.target, gradients, call.options);
  });
  return results.tensors();
}

/// In place. Which gradient is whose does not matter here.
void scale(const tensor_list& gradients, const Tensor& factor, const optional_tensor& pending) {
  std::optional<array> arrays[3];
  for (std::size_t i = 0; i < std::min<std::size_t>(gradients.size(), 3); ++i)
    arrays[i] = array_of("a gradient", gradients[i], true);
  const ops::linear_cross_entropy_gradients scaled{{}, {}, arrays[0], arrays[1], arrays[2]};
  const array by = array_of("factor", factor);
  const std::optional<array> missing = array_of("pending", pending);
  run_where(factor, [&](auto& device) { ops::scale_gradients(device, scaled, by, missing); });
}

const kernels registered(
    "scandsl",
    {
        {"linear_cross_entropy(Tensor x, Tensor weight, Tensor target, Tensor? bias, Tensor? class_weight, "
         "int ignore_index, float label_smoothing, float z_loss, float? softcap, int reduction, "
         "ScalarType? accumulate, bool return_lse) -> Tensor[]",
         boxed<forward>},
        {"linear_cross_entropy_with_gradients(Tensor x, Tensor weight, Tensor target, Tensor? bias, "
         "Tensor? class_weight, int ignore_index, float label_smoothing, float z_loss, float? softcap, "
         "int reduction, ScalarType? accumulate, bool return_lse, bool leave_pending, bool[] wanted) -> "
         "Tensor[]",
         boxed<with_gradients>},
        {"linear_cross_entropy_kept_shape(Tensor x, Tensor weight, Tensor target, Tensor? bias, "
         "Tensor? class_weight, int ignore_index, float label_smoothing, float z_loss, float? softcap, "
         "int reduction, ScalarType? accumulate, bool return_lse, bool[] wanted) -> int[]",
         boxed<kept_shape>},
        {"linear_cross_entropy_with_logits_gradient(Tensor x, Tensor weight, Tensor target, Tensor? bias, "
         "Tensor? class_weight, int ignore_index, float label_smoothing, float z_loss, float? softcap, "
         "int reduction, ScalarType? accumulate, bool return_lse, Tensor(a!) logits_gradient, bool[] wanted) "
         "-> "
         "Tensor[]",
         boxed<with_logits_gradient>},
        {"linear_cross_entropy_complete(Tensor x, Tensor weight, Tensor logits_gradient, Tensor factor, "
         "Tensor pending, Tensor(a!)[] gradients, bool[] wanted) -> ()",
         boxed<complete>},
        {"linear_cross_entropy_products(Tensor x, Tensor weight, Tensor? bias, Tensor logits_gradient, "
         "Tensor factor, Tensor pending, bool[] wanted) -> Tensor[]",
         boxed<products>},
        {"linear_cross_entropy_backward(Tensor? loss_cotangent, Tensor? lse_cotangent, Tensor x, "
         "Tensor weight, Tensor target, Tensor? bias, Tensor? class_weight, int ignore_index, "
         "float label_smoothing, float z_loss, float? softcap, int reduction, ScalarType? accumulate, "
         "bool return_lse, bool[] wanted) -> Tensor[]",
         boxed<backward>},
        {"linear_cross_entropy_scale(Tensor(a!)[] gradients, Tensor factor, Tensor? pending) -> ()",
         boxed<scale>},
    });

}  // namespace
}  // namespace scandsl::binding
