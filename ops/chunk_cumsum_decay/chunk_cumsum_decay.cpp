#include "scandsl/ops/chunk_cumsum_decay.hpp"

#include "../common/operands.hpp"
#include "../common/program_names.hpp"
#include "scandsl/ir/lower.hpp"

namespace scandsl::ops {
namespace {

using namespace names;

constexpr tensor<"log_decay"> log_decay;
constexpr scalar<"chunk_size"> chunk_size;
constexpr auto program = op<"chunk_cumsum_decay">(out<"y">(b, n) = scan(plain_sum,
                                                                        over(n)
                                                                            .reversed(reverse)
                                                                            .exclusive(exclusive)
                                                                            .restart_every(chunk_size)
                                                                            .restart_at(cu_seqlens(segment)),
                                                                        log_decay(b, n)));

}  // namespace

void chunk_cumsum_decay(const cpu& device, const array& input, const array& output,
                        const chunk_cumsum_options& options) {
  const int along = normalised_dim(input, options.dim, "log_decay");
  if (options.chunk_size < 1)
    throw argument_error("chunk_size of at least 1", message(options.chunk_size),
                         "give the positions in a chunk");
  scan_options scanning;
  scanning.cu_seqlens = options.cu_seqlens;
  check_scan(input, output, along, scanning, "log_decay");
  require_dtype("y", output, input.type, dtype::float32);
  run<program>(device, log_decay = rows_along(input, along), y = rows_along(output, along),
               reverse = options.reverse, exclusive = options.exclusive, chunk_size = options.chunk_size,
               cu_seqlens = scan_bindings(scanning).offsets);
}

}  // namespace scandsl::ops
