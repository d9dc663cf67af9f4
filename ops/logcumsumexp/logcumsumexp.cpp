#include "scandsl/ops/logcumsumexp.hpp"

#include "../common/operands.hpp"
#include "../common/program_names.hpp"
#include "scandsl/ir/lower.hpp"

namespace scandsl::ops {
namespace {

using namespace names;

constexpr auto scanned = scan(log_add_exp,
                              over(n)
                                  .reversed(reverse)
                                  .exclusive(exclusive)
                                  .restart_at(cu_seqlens(segment))
                                  .starting_from(value_or(initial_state(segment, b), -inf)),
                              x(b, n));
constexpr auto program =
    op<"logcumsumexp">(out<"y">(b, n) = scanned, out<"final_state">(segment, b).optional() = last(scanned));

}  // namespace

void logcumsumexp(const cpu& device, const array& input, int dim, const array& output,
                  const scan_options& options) {
  const int along = normalised_dim(input, dim);
  check_scan(input, output, along, options);
  require_dtype("y", output, input.type, input.type);
  const scan_bindings bound(options);
  run<program>(device, x = rows_along(input, along), y = rows_along(output, along), reverse = options.reverse,
               exclusive = options.exclusive, initial_state = bound.initial, final_state = bound.final,
               cu_seqlens = bound.offsets);
}

}  // namespace scandsl::ops
