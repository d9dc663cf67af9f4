#pragma once
#include "../common/program_names.hpp"
#include "scandsl/ir/lower.hpp"

namespace scandsl::ops::logcumsumexp_program {

using namespace names;

inline constexpr auto scanned = scan(log_add_exp,
                                     over(n)
                                         .reversed(reverse)
                                         .exclusive(exclusive)
                                         .restart_at(cu_seqlens(segment))
                                         .starting_from(value_or(initial_state(segment, b), -inf)),
                                     x(b, n));
inline constexpr auto program =
    op<"logcumsumexp">(out<"y">(b, n) = scanned, out<"final_state">(segment, b).optional() = last(scanned));

}  // namespace scandsl::ops::logcumsumexp_program
