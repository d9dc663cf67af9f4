#include "scandsl/ops/chunk_cumsum_decay.hpp"

#include "../common/operands.hpp"
#include "../common/program_names.hpp"
#include "scandsl/ir/lower.hpp"

namespace scandsl::ops {
namespace {

using namespace names;

constexpr scalar<"chunk_size"> chunk_size;
constexpr auto program = op<"chunk_cumsum_decay">(out<"y">(b, n) = scan(plain_sum,
                                                                        over(n)
                                                                            .reversed(reverse)
                                                                            .exclusive(exclusive)
                                                                            .restart_every(chunk_size)
                                                                            .restart_at(cu_seqlens(segment)),
                                                                        x(b, n)));

}  // namespace

void chunk_cumsum_decay(const cpu& device, const array& log_decay, const array& output,
                        const chunk_cumsum_options& options) {
  const int along = normalised_dim(log_decay, options.dim);
  if (options.chunk_size < 1)
    throw argument_error("chunk_size of at least 1", message(options.chunk_size),
                         "give the positions in a chunk");
  scan_options scanning;
  scanning.cu_seqlens = options.cu_seqlens;
  check_scan(log_decay, output, along, scanning);
  require_dtype("y", output, log_decay.type, dtype::float32);
  run<program>(device, x = rows_along(log_decay, along), y = rows_along(output, along),
               reverse = options.reverse, exclusive = options.exclusive, chunk_size = options.chunk_size,
               cu_seqlens = scan_bindings(scanning).offsets);
}

}  // namespace scandsl::ops
