#pragma once
#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"

namespace scandsl::ops::md_lrpe_cosine_program {

inline constexpr axis<"b"> b;
inline constexpr axis<"h"> h;
inline constexpr axis<"t"> t;        ///< tokens
inline constexpr axis<"d"> d;        ///< features
inline constexpr axis<"e"> e;        ///< features of one dimension of the grid
inline constexpr axis<"m"> m;        ///< dimensions of the grid
inline constexpr axis<"part"> part;  ///< of y: the cosines, then the sines
inline constexpr tensor<"x"> x;
inline constexpr tensor<"theta"> theta;
inline constexpr tensor<"angles"> angles;
inline constexpr table<"sizes"> sizes;      ///< of the grid
inline constexpr table<"strides"> strides;  ///< tokens from one position to the next, by dimension
inline constexpr integer_scalar<"extra_tokens"> extra_tokens;

// [doc:grid]
/// A token's position along the dimension of the grid that a feature belongs to; 0 of an extra token.
inline constexpr auto dimension_of_feature = index(d) / extent(e);
inline constexpr auto on_grid = (index(t) - extra_tokens) / strides(m[dimension_of_feature]);
inline constexpr auto position = select(index(t) < extra_tokens, 0, on_grid % sizes(m[dimension_of_feature]));
inline constexpr auto theta_of_feature = theta(h, e[index(d) % extent(e)]);
// [/doc:grid]

inline constexpr auto program = contiguous_along(
    op<"md_lrpe_cosine">(out<"y">(b, h, t, part, d) =
                             stack(part, x(b, h, t, d) * cos_of_product(position, theta_of_feature),
                                   x(b, h, t, d) * sin_of_product(position, theta_of_feature))),
    d);
/// (Products of 1: their cosines are quick where they lie near, and keep no local memory on a GPU for those
/// that do not.)
inline constexpr auto from_angles =
    contiguous_along(op<"md_lrpe_cosine">(out<"y">(b, h, t, part, d) =
                                              stack(part, x(b, h, t, d) * cos_of_product(1, angles(h, t, d)),
                                                    x(b, h, t, d) * sin_of_product(1, angles(h, t, d)))),
                     d);
inline constexpr auto make_angles = contiguous_along(
    op<"md_lrpe_angles">(out<"angles">(h, t, d) = angle_of_product(position, theta_of_feature)), d);

}  // namespace scandsl::ops::md_lrpe_cosine_program
