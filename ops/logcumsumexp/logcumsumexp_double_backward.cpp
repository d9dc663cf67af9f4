#include "../common/devices.hpp"
#include "../common/gradient_operands.hpp"
#include "gradient_program.hpp"
#include "scandsl/ops/logcumsumexp.hpp"

namespace scandsl::ops {
namespace {

using namespace gradient_names;

template <class Device>
void run_double_backward(Device& device, const array& input, int dim, const scan_second_gradients& gradients,
                         const scan_options& options) {
  const int along = normalised_dim(input, dim);
  check_scan_gradients(input, along, gradients, options);
  const second_gradient_bindings bound(along, gradients, options);
  run_on<logcumsumexp_program::second_gradient>(
      device, x = rows_along(input, along), ddx = bound.ddx, ddinitial_state = bound.ddinitial, dy = bound.dy,
      dfinal_state = bound.dfinal, ddy = bound.ddy, ddfinal_state = bound.ddfinal, dx = bound.dx,
      dinitial_state = bound.dinitial, reverse = options.reverse, exclusive = options.exclusive,
      initial_state = bound.initial, cu_seqlens = bound.offsets);
}

}  // namespace

void logcumsumexp_double_backward(const cpu& device, const array& input, int dim,
                                  const scan_second_gradients& gradients, const scan_options& options) {
  run_double_backward(device, input, dim, gradients, options);
}
void logcumsumexp_double_backward(const cuda& device, const array& input, int dim,
                                  const scan_second_gradients& gradients, const scan_options& options) {
  run_double_backward(device, input, dim, gradients, options);
}
void logcumsumexp_double_backward(cuda_sizing& device, const array& input, int dim,
                                  const scan_second_gradients& gradients, const scan_options& options) {
  run_double_backward(device, input, dim, gradients, options);
}

}  // namespace scandsl::ops
