#include "scandsl/ops/decayed_sum.hpp"

#include "scan_call.hpp"

namespace scandsl::binding {
namespace {

ops::decayed_sum_options with_log_decay(const scan_call& call, bool log_decay) {
  return {call.options, log_decay};
}

template <bool LeavesCarries>
tensor_list forward(const Tensor& x, const Tensor& decay, const optional_tensor& initial_state,
                    const optional_tensor& cu_seqlens, std::int64_t dim, bool log_decay, bool reverse,
                    bool exclusive, bool return_final_state) {
  scan_call call("x", x, dim, reverse, exclusive, initial_state, cu_seqlens);
  require_same_device("decay", decay, "x", x);
  const array decays = array_of("decay", decay);
  tensor_list results = {allocate_like(x)};
  if (return_final_state) {
    results.push_back(call.new_state());
    call.options.final_state = array_of("final_state", results[1], true);
  }
  const array y = array_of("y", results[0], true);
  const auto scan = [&](auto& device) {
    ops::decayed_sum(device, call.x, decays, call.dim, y, with_log_decay(call, log_decay));
  };
  if constexpr (LeavesCarries)
    run_leaving_carries(x, results, scan, [&](cuda_sizing& device) {
      ops::decayed_sum_gradients gradients;
      gradients.y_cotangent = gradients.x_gradient = y;
      gradients.decay_gradient = decays;
      gradients.decay_gradient->writable = true;
      ops::decayed_sum_backward(device, call.x, decays, call.dim, gradients, with_log_decay(call, log_decay));
    });
  else
    run_where(x, scan);
  return results;
}

tensor_list backward_with_carries(const optional_tensor& y_cotangent,
                                  const optional_tensor& final_state_cotangent, const Tensor& x,
                                  const Tensor& decay, const optional_tensor& initial_state,
                                  const optional_tensor& cu_seqlens, std::int64_t dim, bool log_decay,
                                  bool reverse, bool exclusive, bool /*return_final_state*/,
                                  const std::vector<bool>& wanted, const optional_tensor& carries) {
  const scan_call call("x", x, dim, reverse, exclusive, initial_state, cu_seqlens);
  const array decays = array_of("decay", decay);
  result_list results(wanted);
  ops::decayed_sum_gradients gradients;
  gradients.y_cotangent = array_of("y_cotangent", y_cotangent);
  gradients.final_state_cotangent = array_of("final_state_cotangent", final_state_cotangent);
  gradients.x_gradient = results.like("x_gradient", x);
  gradients.decay_gradient = results.like("decay_gradient", decay);
  gradients.initial_state_gradient = results.like("initial_state_gradient", initial_state);
  run_with_carries(x, carries, [&](auto& device) {
    ops::decayed_sum_backward(device, call.x, decays, call.dim, gradients, with_log_decay(call, log_decay));
  });
  return results.tensors();
}
tensor_list backward(const optional_tensor& y_cotangent, const optional_tensor& final_state_cotangent,
                     const Tensor& x, const Tensor& decay, const optional_tensor& initial_state,
                     const optional_tensor& cu_seqlens, std::int64_t dim, bool log_decay, bool reverse,
                     bool exclusive, bool return_final_state, const std::vector<bool>& wanted) {
  return backward_with_carries(y_cotangent, final_state_cotangent, x, decay, initial_state, cu_seqlens, dim,
                               log_decay, reverse, exclusive, return_final_state, wanted, std::nullopt);
}

/// `each` of x's shape, summed over what `decay` repeats along, in decay's dtype.
Tensor sum_to_decay(const Tensor& each, const Tensor& decay) {
  const auto sizes = decay.sizes(), wide = each.sizes();
  const std::size_t missing = wide.size() - sizes.size();
  std::vector<std::int64_t> repeated;
  for (std::size_t i = 0; i < wide.size(); ++i)
    if (i < missing || (sizes[i - missing] == 1 && wide[i] != 1))
      repeated.push_back(static_cast<std::int64_t>(i));
  const Tensor total =
      repeated.empty()
          ? each
          : torch::stable::sum(
                each, torch::headeronly::IntHeaderOnlyArrayRef(repeated.data(), repeated.size()), true);
  Tensor result = allocate_like(decay);
  return torch::stable::copy_(result, torch::stable::reshape(total, sizes));
}

tensor_list double_backward(const optional_tensor& x_gradient_cotangent,
                            const optional_tensor& decay_gradient_cotangent,
                            const optional_tensor& initial_state_gradient_cotangent,
                            const optional_tensor& y_cotangent, const optional_tensor& final_state_cotangent,
                            const Tensor& x, const Tensor& decay, const optional_tensor& initial_state,
                            const optional_tensor& cu_seqlens, std::int64_t dim, bool log_decay, bool reverse,
                            bool exclusive, bool /*return_final_state*/, const std::vector<bool>& wanted) {
  const scan_call call("x", x, dim, reverse, exclusive, initial_state, cu_seqlens);
  const array decays = array_of("decay", decay);
  result_list results(wanted);
  ops::decayed_sum_second_gradients gradients;
  gradients.x_gradient_cotangent = array_of("x_gradient_cotangent", x_gradient_cotangent);
  gradients.decay_gradient_cotangent = array_of("decay_gradient_cotangent", decay_gradient_cotangent);
  gradients.initial_state_gradient_cotangent =
      array_of("initial_state_gradient_cotangent", initial_state_gradient_cotangent);
  gradients.y_cotangent = array_of("y_cotangent", y_cotangent);
  gradients.final_state_cotangent = array_of("final_state_cotangent", final_state_cotangent);
  gradients.y_tangent = results.like("y_tangent", x);
  gradients.final_state_tangent = results.make("final_state_tangent", [&] { return call.new_state(); });
  gradients.x_gradient = results.like("x_gradient", x);
  const std::size_t decay_at = results.tensors().size();
  gradients.decay_gradient = results.make(
      "decay_gradient", [&] { return allocate_like(x, torch_dtype(ops::state_dtype(call.x.type))); });
  gradients.initial_state_gradient = results.like("initial_state_gradient", initial_state);
  run_where(x, [&](auto& device) {
    ops::decayed_sum_double_backward(device, call.x, decays, call.dim, gradients,
                                     with_log_decay(call, log_decay));
  });
  if (gradients.decay_gradient) {
    Tensor& gradient = results.tensors()[decay_at];
    gradient = sum_to_decay(gradient, decay);
  }
  return results.tensors();
}

const kernels registered(
    "scandsl",
    {
        {"decayed_sum(Tensor x, Tensor decay, Tensor? initial_state, Tensor? cu_seqlens, int dim, "
         "bool log_decay=False, bool reverse=False, bool exclusive=False, bool return_final_state=False) "
         "-> Tensor[]",
         boxed<forward<false>>},
        {"decayed_sum_leaving_carries(Tensor x, Tensor decay, Tensor? initial_state, Tensor? cu_seqlens, "
         "int dim, bool log_decay, bool reverse, bool exclusive, bool return_final_state) -> Tensor[]",
         boxed<forward<true>>},
        {"decayed_sum_backward_with_carries(Tensor? y_cotangent, Tensor? final_state_cotangent, "
         "Tensor x, Tensor decay, Tensor? initial_state, Tensor? cu_seqlens, "
         "int dim, bool log_decay, bool reverse, bool exclusive, bool return_final_state, bool[] wanted, "
         "Tensor? carries) -> Tensor[]",
         boxed<backward_with_carries>},
        {"decayed_sum_backward(Tensor? y_cotangent, Tensor? final_state_cotangent, "
         "Tensor x, Tensor decay, Tensor? initial_state, Tensor? cu_seqlens, "
         "int dim, bool log_decay, bool reverse, bool exclusive, bool return_final_state, bool[] wanted) -> "
         "Tensor[]",
         boxed<backward>},
        {"decayed_sum_double_backward(Tensor? x_gradient_cotangent, Tensor? decay_gradient_cotangent, "
         "Tensor? initial_state_gradient_cotangent, Tensor? y_cotangent, Tensor? final_state_cotangent, "
         "Tensor x, Tensor decay, Tensor? initial_state, Tensor? cu_seqlens, "
         "int dim, bool log_decay, bool reverse, bool exclusive, bool return_final_state, bool[] wanted) -> "
         "Tensor[]",
         boxed<double_backward>},
    });

}  // namespace
}  // namespace scandsl::binding
