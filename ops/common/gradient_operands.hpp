#pragma once
#include "operands.hpp"
#include "program_names.hpp"
#include "scandsl/ops/scan_gradients.hpp"

/// Private to the ops: the operands of their backward programs.
namespace scandsl::ops {

/// The names that gradient() gives to what it adds.
namespace gradient_names {

using namespace names;
inline constexpr tensor<"dx"> dx;
inline constexpr tensor<"dy"> dy;
inline constexpr tensor<"ddecay"> ddecay;
inline constexpr tensor<"dinitial_state"> dinitial_state;
inline constexpr tensor<"dfinal_state"> dfinal_state;

}  // namespace gradient_names

/// Checks x, the options as in the forward call, and what goes in and comes out. Throws shape_error and
/// dtype_error.
inline void check_scan_gradients(const array& x, int dim, const scan_gradients& gradients,
                                 const scan_options& options) {
  scan_options forward = options;
  forward.final_state.reset();
  check_scan(x, x, dim, forward);
  const state_shape state(x, dim, options);
  const auto check_rows = [&](const char* operand, const std::optional<array>& given) {
    if (!given) return;
    require_shape(operand, *given, x.extents, x.rank);
    require_dtype(operand, *given, x.type, x.type);
  };
  const auto check_state = [&](const char* operand, const std::optional<array>& given) {
    if (!given) return;
    require_shape(operand, *given, state.extents, state.rank);
    require_dtype(operand, *given, state_dtype(x.type), x.type);
  };
  check_rows("y_cotangent", gradients.y_cotangent);
  check_rows("x_gradient", gradients.x_gradient);
  check_state("final_state_cotangent", gradients.final_state_cotangent);
  check_state("initial_state_gradient", gradients.initial_state_gradient);
}

/// What is given, as views; what is not stays unbound.
struct gradient_bindings : scan_bindings {
  std::optional<erased_view> dy, dfinal, dx, dinitial;

  gradient_bindings(int dim, const scan_gradients& gradients, const scan_options& options)
      : scan_bindings(options) {
    const bool packed = options.cu_seqlens.has_value();
    if (gradients.y_cotangent) dy = rows_along(*gradients.y_cotangent, dim);
    if (gradients.x_gradient) dx = rows_along(*gradients.x_gradient, dim);
    if (gradients.final_state_cotangent) dfinal = state_view(*gradients.final_state_cotangent, packed);
    if (gradients.initial_state_gradient) dinitial = state_view(*gradients.initial_state_gradient, packed);
  }
};

}  // namespace scandsl::ops
