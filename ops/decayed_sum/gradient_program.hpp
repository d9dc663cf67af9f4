#pragma once
#include "program.hpp"
#include "scandsl/pass/gradient.hpp"

/// The gradients of decayed_sum. A decay that repeats along some of x's axes has one that sums over them:
/// along `repeated` lanes, and along n.
namespace scandsl::ops::decayed_sum_program {

inline constexpr axis<"repeated"> repeated;
inline constexpr auto gradient_without_decay = gradient(program, x, initial_state);
inline constexpr auto gradient_without_decay_per_lane = gradient(program_per_lane, x, initial_state);
inline constexpr auto gradient_per_element = gradient(program);
inline constexpr auto second_gradient = gradient(gradient_per_element);
inline constexpr auto gradient_per_step = gradient(with_decay(decay(b, n), b, repeated));
inline constexpr auto gradient_per_lane = gradient(with_decay(decay(b), b, repeated));

}  // namespace scandsl::ops::decayed_sum_program
