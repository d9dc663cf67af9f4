#include "scandsl/ops/logcumsumexp.hpp"

#include "../common/devices.hpp"
#include "../common/operands.hpp"
#include "program.hpp"

namespace scandsl::ops {
namespace {

using namespace names;

template <class Device>
void run_op(Device& device, const array& input, int dim, const array& output, const scan_options& options) {
  const int along = normalised_dim(input, dim);
  check_scan(input, output, along, options);
  require_dtype("y", output, input.type, input.type);
  const scan_bindings bound(options);
  run_on<logcumsumexp_program::program>(device, x = rows_along(input, along), y = rows_along(output, along),
                                        reverse = options.reverse, exclusive = options.exclusive,
                                        initial_state = bound.initial, final_state = bound.final,
                                        cu_seqlens = bound.offsets);
}

}  // namespace

void logcumsumexp(const cpu& device, const array& input, int dim, const array& output,
                  const scan_options& options) {
  run_op(device, input, dim, output, options);
}
void logcumsumexp(const cuda& device, const array& input, int dim, const array& output,
                  const scan_options& options) {
  run_op(device, input, dim, output, options);
}
void logcumsumexp(cuda_sizing& device, const array& input, int dim, const array& output,
                  const scan_options& options) {
  run_op(device, input, dim, output, options);
}

}  // namespace scandsl::ops
