#include "scandsl/ops/lrpe_cosine.hpp"

#include "encoding_call.hpp"

namespace scandsl::binding {
namespace {

ops::lrpe_options options_of(const Tensor& x, const Tensor& theta, const optional_tensor& positions,
                             std::int64_t offset, std::int64_t act, std::int64_t act_dim) {
  require_same_device("theta", theta, "x", x);
  require_same_device("positions", positions, "x", x);
  return {offset, array_of("positions", positions), static_cast<ops::lrpe_activation>(act),
          narrow_dim(act_dim)};
}

tensor_list forward(const Tensor& x, const Tensor& theta, const optional_tensor& positions,
                    std::int64_t offset, std::int64_t act, std::int64_t act_dim) {
  const ops::lrpe_options options = options_of(x, theta, positions, offset, act, act_dim);
  const array input = array_of("x", x), angles = array_of("theta", theta);
  const Tensor result = allocate_encoded(x, input);
  const array y = array_of("y", result, true);
  run_where(x, [&](auto& device) { ops::lrpe_cosine(device, input, angles, y, options); });
  return {result};
}

tensor_list backward(const optional_tensor& y_cotangent, const Tensor& x, const Tensor& theta,
                     const optional_tensor& positions, std::int64_t offset, std::int64_t act,
                     std::int64_t act_dim, const std::vector<bool>& wanted) {
  const ops::lrpe_options options = options_of(x, theta, positions, offset, act, act_dim);
  result_list results(wanted);
  ops::lrpe_gradients gradients;
  gradients.y_cotangent = array_of("y_cotangent", y_cotangent.value());
  gradients.x_gradient = results.like("x_gradient", x);
  gradients.theta_gradient = results.like("theta_gradient", theta);
  const array input = array_of("x", x), angles = array_of("theta", theta);
  run_where(x, [&](auto& device) { ops::lrpe_cosine_backward(device, input, angles, gradients, options); });
  return results.tensors();
}

const kernels
    registered("scandsl",
               {
                   {"lrpe_cosine(Tensor x, Tensor theta, Tensor? positions=None, SymInt offset=0, int act=0, "
                    "int act_dim=-1) -> Tensor[]",
                    boxed<forward>},
                   {"lrpe_cosine_backward(Tensor? y_cotangent, Tensor x, Tensor theta, Tensor? positions, "
                    "SymInt offset, int act, int act_dim, bool[] wanted) -> Tensor[]",
                    boxed<backward>},
               });

}  // namespace
}  // namespace scandsl::binding
