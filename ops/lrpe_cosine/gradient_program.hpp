#pragma once
#include "program.hpp"
#include "scandsl/pass/gradient.hpp"

/// The gradients of lrpe_cosine by x alone, and by x and theta.
namespace scandsl::ops::lrpe_cosine_program {

inline constexpr auto plain_dx = gradient(plain, x);
inline constexpr auto with_silu_dx = gradient(with_silu, x);
inline constexpr auto with_choices_dx = gradient(with_choices, x);
inline constexpr auto softmax_features_dx = gradient(softmax_features, x);
inline constexpr auto softmax_features_given_dx = gradient(softmax_features_given, x);
inline constexpr program softmax_sequence_dx = reductions_apart(gradient(softmax_sequence, x));
inline constexpr auto softmax_sequence_given_dx = gradient(softmax_sequence_given, x);

inline constexpr auto plain_dtheta = gradient(plain);
inline constexpr auto with_silu_dtheta = gradient(with_silu);
inline constexpr auto with_choices_dtheta = gradient(encode(chosen, given, shared));
inline constexpr auto softmax_features_dtheta = gradient(encode(over_features, given, shared));
inline constexpr auto softmax_sequence_dtheta = gradient(encode(over_sequence, given, shared));

}  // namespace scandsl::ops::lrpe_cosine_program
