#pragma once
#include "../common/program_names.hpp"
#include "scandsl/ir/lower.hpp"

namespace scandsl::ops::decayed_sum_program {

using namespace names;

inline constexpr scalar<"log_decay"> log_decay;
inline constexpr auto factor = select(log_decay != 0.0, exp(decay(b, n)), decay(b, n));
inline constexpr auto scanned = scan(scandsl::decayed_sum,
                                     over(n)
                                         .reversed(reverse)
                                         .exclusive(exclusive)
                                         .restart_at(cu_seqlens(segment))
                                         .starting_from(value_or(initial_state(segment, b), 0.0)),
                                     factor, x(b, n));
inline constexpr auto program =
    op<"decayed_sum">(out<"y">(b, n) = scanned, out<"final_state">(segment, b).optional() = last(scanned));

}  // namespace scandsl::ops::decayed_sum_program
