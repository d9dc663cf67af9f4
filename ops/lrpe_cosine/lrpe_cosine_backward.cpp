#include "../common/devices.hpp"
#include "gradient_program.hpp"
#include "operands.hpp"
#include "scandsl/ops/lrpe_cosine.hpp"

namespace scandsl::ops {
namespace {

using namespace lrpe_cosine_program;
inline constexpr tensor<"dx"> dx;
inline constexpr tensor<"dy"> dy;
inline constexpr tensor<"dtheta"> dtheta;

template <class Device>
void run_backward(Device& device, const array& input, const array& angles, const lrpe_gradients& gradients,
                  const lrpe_options& options) {
  const lrpe_operands operands(input, angles, options);
  operands.check_gradients(gradients);
  const bool by_theta = gradients.theta_gradient.has_value();
  if (!by_theta && !gradients.x_gradient) return;
  const auto cotangent = dy = operands.y(gradients.y_cotangent);
  const auto run = [&]<const scandsl::program & P>(ref<P>, const auto&... bindings) {
    run_on<P>(device, theta = operands.theta(), cotangent, offset = operands.offset(), bindings...);
  };
  const auto positions_given = positions = operands.positions();
  const auto how = has_positions = operands.has_positions();
  const auto which = act = operands.act();
  const auto given = x = operands.x(input);
  if (!by_theta) {
    const auto wanted = dx = operands.x(*gradients.x_gradient);
    switch (operands.kind(false)) {
    case lrpe_kind::plain: return run(ref<plain_dx>{}, wanted);
    case lrpe_kind::silu: return run(ref<with_silu_dx>{}, wanted, given);
    case lrpe_kind::choices: return run(ref<with_choices_dx>{}, wanted, given, positions_given, how, which);
    case lrpe_kind::softmax_features: return run(ref<softmax_features_dx>{}, wanted, given);
    case lrpe_kind::softmax_features_given:
      return run(ref<softmax_features_given_dx>{}, wanted, given, positions_given, how);
    case lrpe_kind::softmax_sequence: return run(ref<softmax_sequence_dx>{}, wanted, given);
    case lrpe_kind::softmax_sequence_given:
      return run(ref<softmax_sequence_given_dx>{}, wanted, given, positions_given, how);
    }
  }
  const auto wanted = dx =
      gradients.x_gradient ? std::optional(operands.x(*gradients.x_gradient)) : std::nullopt;
  const auto wanted_too = dtheta = operands.theta_as_it_is(*gradients.theta_gradient);
  const auto run_shared = [&]<const scandsl::program & P>(ref<P>, const auto&... bindings) {
    run_on<P>(device, theta = operands.theta_as_it_is(angles), cotangent, offset = operands.offset(), given,
              wanted, wanted_too, positions_given, how, bindings...);
  };
  switch (operands.kind(true)) {
  case lrpe_kind::plain: return run(ref<plain_dtheta>{}, wanted, wanted_too, given);
  case lrpe_kind::silu: return run(ref<with_silu_dtheta>{}, wanted, wanted_too, given);
  case lrpe_kind::choices: return run_shared(ref<with_choices_dtheta>{}, which);
  case lrpe_kind::softmax_features: return run(ref<softmax_features_dtheta>{}, wanted, wanted_too, given);
  case lrpe_kind::softmax_features_given: return run_shared(ref<softmax_features_given_dtheta>{});
  case lrpe_kind::softmax_sequence: return run(ref<softmax_sequence_dtheta>{}, wanted, wanted_too, given);
  case lrpe_kind::softmax_sequence_given: return run_shared(ref<softmax_sequence_given_dtheta>{});
  }
}

}  // namespace

void lrpe_cosine_backward(const cpu& device, const array& input, const array& angles,
                          const lrpe_gradients& gradients, const lrpe_options& options) {
  run_backward(device, input, angles, gradients, options);
}
void lrpe_cosine_backward(const cuda& device, const array& input, const array& angles,
                          const lrpe_gradients& gradients, const lrpe_options& options) {
  run_backward(device, input, angles, gradients, options);
}
void lrpe_cosine_backward(cuda_sizing& device, const array& input, const array& angles,
                          const lrpe_gradients& gradients, const lrpe_options& options) {
  run_backward(device, input, angles, gradients, options);
}

}  // namespace scandsl::ops
