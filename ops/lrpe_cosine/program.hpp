#pragma once
#include "scandsl/expr/activations.hpp"
#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"

namespace scandsl::ops::lrpe_cosine_program {

inline constexpr axis<"b"> b;
inline constexpr axis<"n"> n;
inline constexpr axis<"h"> h;
inline constexpr axis<"d"> d;
inline constexpr axis<"part"> part;  ///< of y: the cosines, then the sines
inline constexpr axis<"theta_h"> theta_h;
inline constexpr axis<"theta_d"> theta_d;
inline constexpr tensor<"x"> x;
inline constexpr tensor<"theta"> theta;
inline constexpr integer_tensor<"positions"> positions;
inline constexpr integer_scalar<"offset"> offset;
inline constexpr integer_scalar<"has_positions"> has_positions;
inline constexpr integer_scalar<"act"> act;  ///< a number of lrpe_activation

template <class Value, class Position, class Theta>
constexpr auto encode(Value value, Position position, Theta angle_of_one) {
  return contiguous_along(op<"lrpe_cosine">(out<"y">(b, n, h, part, d) =
                                                stack(part, value * cos_of_product(position, angle_of_one),
                                                      value * sin_of_product(position, angle_of_one))),
                          d);
}

// What has programs of its own is what models are trained with; everything else is one program with choices.

inline constexpr auto input = x(b, n, h, d);
inline constexpr auto chosen =
    select(act == 1, relu(input), select(act == 2, sigmoid(input), select(act == 3, silu(input), input)));

inline constexpr auto counted = index(n) + offset;
inline constexpr auto given = select(has_positions != 0, value_or(positions(b, n), 0), counted);

inline constexpr auto per_feature = theta(h, d);
/// Of a theta with one head, or one feature, for all: its gradient sums over them.
inline constexpr auto shared =
    theta(theta_h[index(h) % extent(theta_h)], theta_d[index(d) % extent(theta_d)]);

inline constexpr auto over_features = softmax(over(d), input);
inline constexpr auto over_sequence = softmax(over(n), input);

inline constexpr auto plain = encode(input, counted, per_feature);
inline constexpr auto with_silu = encode(silu(input), counted, per_feature);
inline constexpr auto with_choices = encode(chosen, given, per_feature);
inline constexpr auto softmax_features = encode(over_features, counted, per_feature);
inline constexpr auto softmax_features_given = encode(over_features, given, per_feature);
inline constexpr auto softmax_sequence = reductions_apart(encode(over_sequence, counted, per_feature));
inline constexpr auto softmax_sequence_given = encode(over_sequence, given, per_feature);

}  // namespace scandsl::ops::lrpe_cosine_program
