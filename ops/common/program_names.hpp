#pragma once
#include "scandsl/expr/operators.hpp"

/// The names that the scan ops' programs share: any rank is two axes, b standing for all dimensions but the
/// scanned n.
namespace scandsl::ops::names {

inline constexpr axis<"b"> b;
inline constexpr axis<"n"> n;
inline constexpr axis<"segment"> segment;
inline constexpr tensor<"x"> x;
inline constexpr tensor<"y"> y;
inline constexpr tensor<"decay"> decay;
inline constexpr tensor<"initial_state"> initial_state;
inline constexpr tensor<"final_state"> final_state;
inline constexpr tensor<"cu_seqlens"> cu_seqlens;
inline constexpr scalar<"reverse"> reverse;
inline constexpr scalar<"exclusive"> exclusive;

}  // namespace scandsl::ops::names
