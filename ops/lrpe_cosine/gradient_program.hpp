#pragma once
#include "program.hpp"
#include "scandsl/pass/gradient.hpp"

/// The gradients of lrpe_cosine by x alone, and by x and theta.
namespace scandsl::ops::lrpe_cosine_program {

template <class... By> constexpr program gradient_of(const program& p, By... by) {
  return contiguous_along(gradient(p, by...), d);
}

inline constexpr auto plain_dx = gradient_of(plain, x);
inline constexpr auto with_silu_dx = gradient_of(with_silu, x);
inline constexpr auto with_choices_dx = gradient_of(with_choices, x);
inline constexpr auto softmax_features_dx = gradient_of(softmax_features, x);
inline constexpr auto softmax_features_given_dx = gradient_of(softmax_features_given, x);
inline constexpr auto softmax_sequence_dx = reductions_apart(gradient_of(softmax_sequence, x));
inline constexpr auto softmax_sequence_given_dx = gradient_of(softmax_sequence_given, x);

inline constexpr auto plain_dtheta = gradient_of(plain);
inline constexpr auto with_silu_dtheta = gradient_of(with_silu);
inline constexpr auto with_choices_dtheta = gradient_of(encode(chosen, given, shared));
inline constexpr auto softmax_features_dtheta = gradient_of(softmax_features);
inline constexpr auto softmax_features_given_dtheta = gradient_of(encode(over_features, given, shared));
/// Theta's sum along the sequence is then taken where x's gradient is written, and costs nothing more.
inline constexpr auto softmax_sequence_dtheta = reductions_apart(gradient_of(softmax_sequence));
inline constexpr auto softmax_sequence_given_dtheta = gradient_of(encode(over_sequence, given, shared));

}  // namespace scandsl::ops::lrpe_cosine_program
