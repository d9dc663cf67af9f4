#include "../common/devices.hpp"
#include "../common/gradient_operands.hpp"
#include "broadcast.hpp"
#include "gradient_program.hpp"
#include "scandsl/ops/decayed_sum.hpp"

namespace scandsl::ops {
namespace {

using namespace decayed_sum_program;
using namespace gradient_names;

void check(const array& input, const array& decays, int dim, const decayed_sum_second_gradients& gradients,
           const decayed_sum_options& options) {
  check_scan_gradients(input, dim, gradients, options);
  require_dtype("decay", decays, dtype::float32, input.type);
  if (gradients.decay_gradient_cotangent) {
    require_shape("decay_gradient_cotangent", *gradients.decay_gradient_cotangent, decays.extents,
                  decays.rank);
    require_dtype("decay_gradient_cotangent", *gradients.decay_gradient_cotangent, decays.type, decays.type);
  }
  if (gradients.decay_gradient) {
    require_shape("decay_gradient", *gradients.decay_gradient, input.extents, input.rank);
    require_dtype("decay_gradient", *gradients.decay_gradient, decays.type, state_dtype(input.type));
  }
}

template <class Device>
void run_double_backward(Device& device, const array& input, const array& decays, int dim,
                         const decayed_sum_second_gradients& gradients, const decayed_sum_options& options) {
  const int along = normalised_dim(input, dim);
  check(input, decays, along, gradients, options);
  const second_gradient_bindings bound(along, gradients, options);
  std::optional<erased_view> decay_cotangent, decay_gradient;
  if (const auto& given = gradients.decay_gradient_cotangent)
    decay_cotangent = rows_along(broadcast("decay_gradient_cotangent", *given, input), along);
  if (const auto& given = gradients.decay_gradient) decay_gradient = rows_along(*given, along);
  run_on<second_gradient>(
      device, x = rows_along(input, along), decay = rows_along(broadcast("decay", decays, input), along),
      ddx = bound.ddx, dddecay = decay_cotangent, ddinitial_state = bound.ddinitial, dy = bound.dy,
      dfinal_state = bound.dfinal, ddy = bound.ddy, ddfinal_state = bound.ddfinal, dx = bound.dx,
      ddecay = decay_gradient, dinitial_state = bound.dinitial, reverse = options.reverse,
      exclusive = options.exclusive, log_decay = options.log_decay, initial_state = bound.initial,
      cu_seqlens = bound.offsets);
}

}  // namespace

void decayed_sum_double_backward(const cpu& device, const array& input, const array& decays, int dim,
                                 const decayed_sum_second_gradients& gradients,
                                 const decayed_sum_options& options) {
  run_double_backward(device, input, decays, dim, gradients, options);
}
void decayed_sum_double_backward(const cuda& device, const array& input, const array& decays, int dim,
                                 const decayed_sum_second_gradients& gradients,
                                 const decayed_sum_options& options) {
  run_double_backward(device, input, decays, dim, gradients, options);
}
void decayed_sum_double_backward(cuda_sizing& device, const array& input, const array& decays, int dim,
                                 const decayed_sum_second_gradients& gradients,
                                 const decayed_sum_options& options) {
  run_double_backward(device, input, decays, dim, gradients, options);
}

}  // namespace scandsl::ops
