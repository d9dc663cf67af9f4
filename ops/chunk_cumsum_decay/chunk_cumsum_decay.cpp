#include "scandsl/ops/chunk_cumsum_decay.hpp"

#include "../common/devices.hpp"
#include "../common/operands.hpp"
#include "program.hpp"

namespace scandsl::ops {
namespace {

using namespace chunk_cumsum_decay_program;

template <class Device>
void run_op(Device& device, const array& input, const array& output, const chunk_cumsum_options& options) {
  const int along = normalised_dim(input, options.dim, "log_decay");
  check_chunk_size(options.chunk_size);
  scan_options scanning;
  scanning.cu_seqlens = options.cu_seqlens;
  check_scan(input, output, along, scanning, "log_decay");
  require_dtype("y", output, input.type, dtype::float32);
  run_on<program>(device, log_decay = rows_along(input, along), y = rows_along(output, along),
                  reverse = options.reverse, exclusive = options.exclusive, chunk_size = options.chunk_size,
                  cu_seqlens = scan_bindings(scanning).offsets);
}

}  // namespace

void chunk_cumsum_decay(const cpu& device, const array& input, const array& output,
                        const chunk_cumsum_options& options) {
  run_op(device, input, output, options);
}
void chunk_cumsum_decay(const cuda& device, const array& input, const array& output,
                        const chunk_cumsum_options& options) {
  run_op(device, input, output, options);
}
void chunk_cumsum_decay(cuda_sizing& device, const array& input, const array& output,
                        const chunk_cumsum_options& options) {
  run_op(device, input, output, options);
}

}  // namespace scandsl::ops
