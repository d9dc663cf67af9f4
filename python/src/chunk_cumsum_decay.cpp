#include "scandsl/ops/chunk_cumsum_decay.hpp"

#include "scan_call.hpp"

namespace scandsl::binding {
namespace {

ops::chunk_cumsum_options options_of(const scan_call& call, std::int64_t chunk_size) {
  ops::check_chunk_size(chunk_size);
  return {call.dim, chunk_size, call.options.reverse, call.options.exclusive, call.options.cu_seqlens};
}

/// The sums of `summed`, which is log_decay or a tangent of it, in a tensor like log_decay.
Tensor sums(const Tensor& summed, const Tensor& log_decay, const optional_tensor& cu_seqlens,
            std::int64_t dim, std::int64_t chunk_size, bool reverse, bool exclusive,
            std::optional<ScalarType> out_dtype) {
  const scan_call call("log_decay", summed, dim, reverse, exclusive, std::nullopt, cu_seqlens);
  const ops::chunk_cumsum_options options = options_of(call, chunk_size);
  const ScalarType type = out_dtype.value_or(log_decay.scalar_type());
  if (type != ScalarType::Float && type != log_decay.scalar_type())
    throw dtype_error(message("out_dtype None, float32 or the dtype of log_decay, ", name_of(call.x.type)),
                      toString(type), "convert the result");
  const Tensor result = allocate_like(log_decay, type);
  const array y = array_of("y", result, true);
  run_where(log_decay, [&](auto& device) { ops::chunk_cumsum_decay(device, call.x, y, options); });
  return result;
}

tensor_list forward(const Tensor& log_decay, const optional_tensor& cu_seqlens, std::int64_t dim,
                    std::int64_t chunk_size, bool reverse, bool exclusive,
                    std::optional<ScalarType> out_dtype) {
  return {sums(log_decay, log_decay, cu_seqlens, dim, chunk_size, reverse, exclusive, out_dtype)};
}

/// The op is linear, so its derivatives do not depend on log_decay; here it gives the shape and the dtype.
tensor_list backward(const optional_tensor& y_cotangent, const Tensor& log_decay,
                     const optional_tensor& cu_seqlens, std::int64_t dim, std::int64_t chunk_size,
                     bool reverse, bool exclusive, std::optional<ScalarType> /*out_dtype*/,
                     const std::vector<bool>& wanted) {
  const scan_call call("log_decay", log_decay, dim, reverse, exclusive, std::nullopt, cu_seqlens);
  const ops::chunk_cumsum_options options = options_of(call, chunk_size);
  result_list results(wanted);
  const auto gradient = results.like("log_decay_gradient", log_decay);
  const auto cotangent = array_of("y_cotangent", y_cotangent);
  if (gradient && cotangent)
    run_where(log_decay, [&](auto& device) {
      ops::chunk_cumsum_decay_backward(device, *cotangent, *gradient, options);
    });
  return results.tensors();
}

tensor_list double_backward(const optional_tensor& log_decay_gradient_cotangent,
                            const optional_tensor& /*y_cotangent*/, const Tensor& log_decay,
                            const optional_tensor& cu_seqlens, std::int64_t dim, std::int64_t chunk_size,
                            bool reverse, bool exclusive, std::optional<ScalarType> out_dtype,
                            const std::vector<bool>& wanted) {
  tensor_list results;
  if (wanted.at(0))
    results.push_back(sums(log_decay_gradient_cotangent.value(), log_decay, cu_seqlens, dim, chunk_size,
                           reverse, exclusive, out_dtype));
  if (wanted.at(1)) {
    results.push_back(allocate_like(log_decay));
    torch::stable::zero_(results.back());
  }
  return results;
}

const kernels registered(
    "scandsl",
    {
        {"chunk_cumsum_decay(Tensor log_decay, Tensor? cu_seqlens=None, int dim=1, SymInt chunk_size=128, "
         "bool reverse=False, bool exclusive=False, ScalarType? out_dtype=None) -> Tensor[]",
         boxed<forward>},
        {"chunk_cumsum_decay_backward(Tensor? y_cotangent, Tensor log_decay, Tensor? cu_seqlens, "
         "int dim, SymInt chunk_size, bool reverse, bool exclusive, ScalarType? out_dtype, bool[] wanted) -> "
         "Tensor[]",
         boxed<backward>},
        {"chunk_cumsum_decay_double_backward(Tensor? log_decay_gradient_cotangent, Tensor? y_cotangent, "
         "Tensor log_decay, Tensor? cu_seqlens, "
         "int dim, SymInt chunk_size, bool reverse, bool exclusive, ScalarType? out_dtype, bool[] wanted) -> "
         "Tensor[]",
         boxed<double_backward>},
    });

}  // namespace
}  // namespace scandsl::binding
