#include "../common/devices.hpp"
#include "../common/gradient_operands.hpp"
#include "gradient_program.hpp"
#include "scandsl/ops/logcumsumexp.hpp"

namespace scandsl::ops {
namespace {

using namespace gradient_names;

template <class Device>
void run_backward(Device& device, const array& input, int dim, const scan_gradients& gradients,
                  const scan_options& options) {
  const int along = normalised_dim(input, dim);
  check_scan_gradients(input, along, gradients, options);
  const gradient_bindings bound(along, gradients, options);
  run_on<logcumsumexp_program::gradient_program>(
      device, x = rows_along(input, along), dy = bound.dy, dfinal_state = bound.dfinal, dx = bound.dx,
      dinitial_state = bound.dinitial, reverse = options.reverse, exclusive = options.exclusive,
      initial_state = bound.initial, cu_seqlens = bound.offsets);
}

}  // namespace

void logcumsumexp_backward(const cpu& device, const array& input, int dim, const scan_gradients& gradients,
                           const scan_options& options) {
  run_backward(device, input, dim, gradients, options);
}
void logcumsumexp_backward(const cuda& device, const array& input, int dim, const scan_gradients& gradients,
                           const scan_options& options) {
  run_backward(device, input, dim, gradients, options);
}
void logcumsumexp_backward(cuda_sizing& device, const array& input, int dim, const scan_gradients& gradients,
                           const scan_options& options) {
  run_backward(device, input, dim, gradients, options);
}

}  // namespace scandsl::ops
