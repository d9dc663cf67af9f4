#include "../common/devices.hpp"
#include "../common/gradient_operands.hpp"
#include "gradient_program.hpp"
#include "scandsl/ops/chunk_cumsum_decay.hpp"

namespace scandsl::ops {
namespace {

using namespace chunk_cumsum_decay_program;
using namespace gradient_names;

template <class Device>
void run_backward(Device& device, const array& cotangent, const array& gradient_values,
                  const chunk_cumsum_options& options) {
  const int along = normalised_dim(gradient_values, options.dim, "log_decay_gradient");
  check_chunk_size(options.chunk_size);
  scan_options scanning;
  scanning.cu_seqlens = options.cu_seqlens;
  check_scan(gradient_values, cotangent, along, scanning, "log_decay_gradient");
  require_dtype("y_cotangent", cotangent, gradient_values.type, dtype::float32);
  run_on<gradient_program>(device, dy = rows_along(cotangent, along),
                           dlog_decay = rows_along(gradient_values, along), reverse = options.reverse,
                           exclusive = options.exclusive, chunk_size = options.chunk_size,
                           cu_seqlens = scan_bindings(scanning).offsets);
}

}  // namespace

void chunk_cumsum_decay_backward(const cpu& device, const array& cotangent, const array& gradient_values,
                                 const chunk_cumsum_options& options) {
  run_backward(device, cotangent, gradient_values, options);
}
void chunk_cumsum_decay_backward(const cuda& device, const array& cotangent, const array& gradient_values,
                                 const chunk_cumsum_options& options) {
  run_backward(device, cotangent, gradient_values, options);
}
void chunk_cumsum_decay_backward(cuda_sizing& device, const array& cotangent, const array& gradient_values,
                                 const chunk_cumsum_options& options) {
  run_backward(device, cotangent, gradient_values, options);
}

}  // namespace scandsl::ops
