#pragma once
#include "../common/program_names.hpp"
#include "scandsl/ir/lower.hpp"

namespace scandsl::ops::chunk_cumsum_decay_program {

using namespace names;

inline constexpr tensor<"log_decay"> log_decay;
inline constexpr scalar<"chunk_size"> chunk_size;
inline constexpr auto program =
    op<"chunk_cumsum_decay">(out<"y">(b, n) = scan(plain_sum,
                                                   over(n)
                                                       .reversed(reverse)
                                                       .exclusive(exclusive)
                                                       .restart_every(chunk_size)
                                                       .restart_at(cu_seqlens(segment)),
                                                   log_decay(b, n)));

}  // namespace scandsl::ops::chunk_cumsum_decay_program
