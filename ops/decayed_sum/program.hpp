#pragma once
#include "../common/program_names.hpp"
#include "scandsl/ir/lower.hpp"

namespace scandsl::ops::decayed_sum_program {

using namespace names;

inline constexpr scalar<"log_decay"> log_decay;

/// The program for a decay that varies along some of x's axes: the lanes, and n.
template <class Decay, class... Lane> constexpr auto with_decay(Decay given, Lane... lane) {
  const auto factor = select(log_decay != 0.0, exp(given), given);
  const auto scanned = scan(scandsl::decayed_sum,
                            over(n)
                                .reversed(reverse)
                                .exclusive(exclusive)
                                .restart_at(cu_seqlens(segment))
                                .starting_from(value_or(initial_state(segment, lane...), 0.0)),
                            factor, x(lane..., n));
  return op<"decayed_sum">(out<"y">(lane..., n) = scanned,
                           out<"final_state">(segment, lane...).optional() = last(scanned));
}

inline constexpr auto program = with_decay(decay(b, n), b);
/// For a decay that is the same all along n: a number for each lane, read once.
inline constexpr auto program_per_lane = with_decay(decay(b), b);

}  // namespace scandsl::ops::decayed_sum_program
