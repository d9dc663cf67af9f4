#pragma once
#include <scandsl/scandsl.hpp>

/// A layer of a model, as one op: silu, a cosine encoding of the position, a decayed sum of both of its parts
/// over the sequence, and a gate.
namespace layer_op {

using namespace scandsl;

inline constexpr axis<"b"> b;
inline constexpr axis<"n"> n;
inline constexpr axis<"h"> h;
inline constexpr axis<"d"> d;
inline constexpr axis<"part"> part;  ///< of the encoding: the cosines, then the sines
inline constexpr tensor<"x"> x;
inline constexpr tensor<"g"> g;
inline constexpr tensor<"theta"> theta;
inline constexpr tensor<"decay"> decay;
inline constexpr scalar<"chunk"> chunk;
inline constexpr tensor<"y"> y;
inline constexpr tensor<"dy"> dy;
inline constexpr tensor<"dx"> dx;
inline constexpr tensor<"dg"> dg;

// [doc:layer]
inline constexpr auto angle = theta(h, d);
inline constexpr auto turned = stack(part, silu(x(b, n, h, d)) * cos_of_product(index(n), angle),
                                     silu(x(b, n, h, d)) * sin_of_product(index(n), angle));
inline constexpr auto kept = scan(decayed_sum, over(n).restart_every(value_or(chunk, 0)), decay(h), turned);
inline constexpr auto layer = op<"layer">(out<"y">(b, n, h, part, d) = sigmoid(g(b, n, h, d)) * kept);
inline constexpr auto dlayer = gradient(layer, x, g);
// [/doc:layer]

}  // namespace layer_op
