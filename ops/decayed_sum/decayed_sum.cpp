#include "scandsl/ops/decayed_sum.hpp"

#include "../common/devices.hpp"
#include "../common/operands.hpp"
#include "program.hpp"

namespace scandsl::ops {
namespace {

/// `given` with the shape of x: missing and single dimensions repeat (stride 0).
array broadcast(const array& given, const array& x) {
  array wide = given;
  wide.rank = x.rank;
  const int missing = x.rank - given.rank;
  bool fits = missing >= 0;
  for (int i = 0; fits && i < x.rank; ++i) {
    const bool there = i >= missing && (given.extents[i - missing] != 1 || x.extents[i] == 1);
    fits = !there || given.extents[i - missing] == x.extents[i];
    wide.extents[i] = x.extents[i];
    wide.strides[i] = there ? given.strides[i - missing] : 0;
  }
  if (!fits)
    throw shape_error(message("a decay that broadcasts against x of shape ", shape_text(x.extents, x.rank)),
                      shape_text(given.extents, given.rank),
                      "align trailing dimensions; each is x's extent or 1");
  return wide;
}

using namespace decayed_sum_program;

template <class Device>
void run_op(Device& device, const array& input, const array& decays, int dim, const array& output,
            const decayed_sum_options& options) {
  const int along = normalised_dim(input, dim);
  check_scan(input, output, along, options);
  require_dtype("y", output, input.type, input.type);
  require_dtype("decay", decays, dtype::float32, input.type);
  const scan_bindings bound(options);
  run_on<program>(device, x = rows_along(input, along), decay = rows_along(broadcast(decays, input), along),
                  y = rows_along(output, along), reverse = options.reverse, exclusive = options.exclusive,
                  log_decay = options.log_decay, initial_state = bound.initial, final_state = bound.final,
                  cu_seqlens = bound.offsets);
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
