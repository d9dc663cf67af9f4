#include "scandsl/ops/decayed_sum.hpp"

#include "../common/devices.hpp"
#include "../common/operands.hpp"
#include "broadcast.hpp"
#include "program.hpp"

namespace scandsl::ops {
namespace {

using namespace decayed_sum_program;

template <class Device>
void run_op(Device& device, const array& input, const array& decays, int dim, const array& output,
            const decayed_sum_options& options) {
  const int along = normalised_dim(input, dim);
  check_scan(input, output, along, options);
  require_dtype("y", output, input.type, input.type);
  require_dtype("decay", decays, dtype::float32, input.type);
  const scan_bindings bound(options);
  const array wide = broadcast("decay", decays, input);
  const bool per_lane = repeats(decays, input, along);
  const auto run = [&]<const scandsl::program & P>(ref<P>) {
    run_on<P>(device, x = rows_along(input, along), decay = decays_along(wide, along, per_lane),
              y = rows_along(output, along), reverse = options.reverse, exclusive = options.exclusive,
              log_decay = options.log_decay, initial_state = bound.initial, final_state = bound.final,
              cu_seqlens = bound.offsets);
  };
  if (per_lane)
    run(ref<program_per_lane>{});
  else
    run(ref<program>{});
}

}  // namespace

void decayed_sum(const cpu& device, const array& input, const array& decays, int dim, const array& output,
                 const decayed_sum_options& options) {
  run_op(device, input, decays, dim, output, options);
}
void decayed_sum(const cuda& device, const array& input, const array& decays, int dim, const array& output,
                 const decayed_sum_options& options) {
  run_op(device, input, decays, dim, output, options);
}
void decayed_sum(cuda_sizing& device, const array& input, const array& decays, int dim, const array& output,
                 const decayed_sum_options& options) {
  run_op(device, input, decays, dim, output, options);
}

}  // namespace scandsl::ops
