#include "scandsl/ops/logcumsumexp.hpp"

#include "scan_call.hpp"

namespace scandsl::binding {
namespace {

template <bool LeavesCarries>
tensor_list forward(const Tensor& x, const optional_tensor& initial_state, const optional_tensor& cu_seqlens,
                    std::int64_t dim, bool reverse, bool exclusive, bool return_final_state) {
  scan_call call("x", x, dim, reverse, exclusive, initial_state, cu_seqlens);
  tensor_list results = {allocate_like(x)};
  if (return_final_state) {
    results.push_back(call.new_state());
    call.options.final_state = array_of("final_state", results[1], true);
  }
  const array y = array_of("y", results[0], true);
  const auto scan = [&](auto& device) { ops::logcumsumexp(device, call.x, call.dim, y, call.options); };
  if constexpr (LeavesCarries)
    run_leaving_carries(x, results, scan, [&](cuda_sizing& device) {
      ops::scan_gradients gradients;
      gradients.y_cotangent = gradients.x_gradient = y;
      ops::logcumsumexp_backward(device, call.x, call.dim, gradients, call.options);
    });
  else
    run_where(x, scan);
  return results;
}

tensor_list backward_with_carries(const optional_tensor& y_cotangent,
                                  const optional_tensor& final_state_cotangent, const Tensor& x,
                                  const optional_tensor& initial_state, const optional_tensor& cu_seqlens,
                                  std::int64_t dim, bool reverse, bool exclusive, bool /*return_final_state*/,
                                  const std::vector<bool>& wanted, const optional_tensor& carries) {
  const scan_call call("x", x, dim, reverse, exclusive, initial_state, cu_seqlens);
  result_list results(wanted);
  ops::scan_gradients gradients;
  gradients.y_cotangent = array_of("y_cotangent", y_cotangent);
  gradients.final_state_cotangent = array_of("final_state_cotangent", final_state_cotangent);
  gradients.x_gradient = results.like("x_gradient", x);
  gradients.initial_state_gradient = results.like("initial_state_gradient", initial_state);
  run_with_carries(x, carries, [&](auto& device) {
    ops::logcumsumexp_backward(device, call.x, call.dim, gradients, call.options);
  });
  return results.tensors();
}
tensor_list backward(const optional_tensor& y_cotangent, const optional_tensor& final_state_cotangent,
                     const Tensor& x, const optional_tensor& initial_state, const optional_tensor& cu_seqlens,
                     std::int64_t dim, bool reverse, bool exclusive, bool return_final_state,
                     const std::vector<bool>& wanted) {
  return backward_with_carries(y_cotangent, final_state_cotangent, x, initial_state, cu_seqlens, dim, reverse,
                               exclusive, return_final_state, wanted, std::nullopt);
}

tensor_list double_backward(const optional_tensor& x_gradient_cotangent,
                            const optional_tensor& initial_state_gradient_cotangent,
                            const optional_tensor& y_cotangent, const optional_tensor& final_state_cotangent,
                            const Tensor& x, const optional_tensor& initial_state,
                            const optional_tensor& cu_seqlens, std::int64_t dim, bool reverse, bool exclusive,
                            bool /*return_final_state*/, const std::vector<bool>& wanted) {
  const scan_call call("x", x, dim, reverse, exclusive, initial_state, cu_seqlens);
  result_list results(wanted);
  ops::scan_second_gradients gradients;
  gradients.x_gradient_cotangent = array_of("x_gradient_cotangent", x_gradient_cotangent);
  gradients.initial_state_gradient_cotangent =
      array_of("initial_state_gradient_cotangent", initial_state_gradient_cotangent);
  gradients.y_cotangent = array_of("y_cotangent", y_cotangent);
  gradients.final_state_cotangent = array_of("final_state_cotangent", final_state_cotangent);
  gradients.y_tangent = results.like("y_tangent", x);
  gradients.final_state_tangent = results.make("final_state_tangent", [&] { return call.new_state(); });
  gradients.x_gradient = results.like("x_gradient", x);
  gradients.initial_state_gradient = results.like("initial_state_gradient", initial_state);
  run_where(x, [&](auto& device) {
    ops::logcumsumexp_double_backward(device, call.x, call.dim, gradients, call.options);
  });
  return results.tensors();
}

const kernels registered(
    "scandsl",
    {
        {"logcumsumexp(Tensor x, Tensor? initial_state=None, Tensor? cu_seqlens=None, "
         "int dim=-1, bool reverse=False, bool exclusive=False, bool return_final_state=False) -> Tensor[]",
         boxed<forward<false>>},
        {"logcumsumexp_leaving_carries(Tensor x, Tensor? initial_state, Tensor? cu_seqlens, "
         "int dim, bool reverse, bool exclusive, bool return_final_state) -> Tensor[]",
         boxed<forward<true>>},
        {"logcumsumexp_backward_with_carries(Tensor? y_cotangent, Tensor? final_state_cotangent, "
         "Tensor x, Tensor? initial_state, Tensor? cu_seqlens, "
         "int dim, bool reverse, bool exclusive, bool return_final_state, bool[] wanted, Tensor? carries) "
         "-> Tensor[]",
         boxed<backward_with_carries>},
        {"logcumsumexp_backward(Tensor? y_cotangent, Tensor? final_state_cotangent, "
         "Tensor x, Tensor? initial_state, Tensor? cu_seqlens, "
         "int dim, bool reverse, bool exclusive, bool return_final_state, bool[] wanted) -> Tensor[]",
         boxed<backward>},
        {"logcumsumexp_double_backward(Tensor? x_gradient_cotangent, Tensor? "
         "initial_state_gradient_cotangent, "
         "Tensor? y_cotangent, Tensor? final_state_cotangent, "
         "Tensor x, Tensor? initial_state, Tensor? cu_seqlens, "
         "int dim, bool reverse, bool exclusive, bool return_final_state, bool[] wanted) -> Tensor[]",
         boxed<double_backward>},
    });

}  // namespace
}  // namespace scandsl::binding
