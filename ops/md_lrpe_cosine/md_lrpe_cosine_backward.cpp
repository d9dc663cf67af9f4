#include "../common/devices.hpp"
#include "gradient_program.hpp"
#include "operands.hpp"
#include "scandsl/ops/md_lrpe_cosine.hpp"

namespace scandsl::ops {
namespace {

namespace names = md_lrpe_cosine_program;
inline constexpr tensor<"dx"> dx;
inline constexpr tensor<"dy"> dy;
inline constexpr tensor<"dtheta"> dtheta;

template <class Device>
void run_backward(Device& device, const array& input, const array& theta, std::span<const std::int64_t> shape,
                  const lrpe_gradients& gradients, const md_lrpe_options& options) {
  const token_grid grid(shape, options.extra_tokens);
  const md_lrpe_operands operands(input, theta, grid, options);
  operands.check_gradients(theta, gradients, options);
  const auto cotangent = dy = operands.y(gradients.y_cotangent);
  const auto wanted = dx =
      gradients.x_gradient ? std::optional(as_it_is(*gradients.x_gradient)) : std::nullopt;
  const auto run = [&]<const scandsl::program & P>(ref<P>, const auto&... bindings) {
    run_on<P>(device, cotangent, wanted, names::theta = as_it_is(theta), names::sizes = grid.sizes(),
              names::strides = grid.strides(), names::extra_tokens = options.extra_tokens, bindings...);
  };
  if (gradients.theta_gradient)
    run(ref<names::dx_dtheta>{}, names::x = as_it_is(input), dtheta = as_it_is(*gradients.theta_gradient));
  else if (gradients.x_gradient && options.angles)
    run_on<names::dx_from_angles>(device, cotangent, wanted, names::angles = as_it_is(*options.angles));
  else if (gradients.x_gradient)
    run(ref<names::dx_alone>{});
}

}  // namespace

void md_lrpe_cosine_backward(const cpu& device, const array& x, const array& theta,
                             std::span<const std::int64_t> shape, const lrpe_gradients& gradients,
                             const md_lrpe_options& options) {
  run_backward(device, x, theta, shape, gradients, options);
}
void md_lrpe_cosine_backward(const cuda& device, const array& x, const array& theta,
                             std::span<const std::int64_t> shape, const lrpe_gradients& gradients,
                             const md_lrpe_options& options) {
  run_backward(device, x, theta, shape, gradients, options);
}
void md_lrpe_cosine_backward(cuda_sizing& device, const array& x, const array& theta,
                             std::span<const std::int64_t> shape, const lrpe_gradients& gradients,
                             const md_lrpe_options& options) {
  run_backward(device, x, theta, shape, gradients, options);
}

}  // namespace scandsl::ops
