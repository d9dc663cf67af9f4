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

// Of the gradient of a gradient.
inline constexpr tensor<"ddx"> ddx;
inline constexpr tensor<"ddy"> ddy;
inline constexpr tensor<"dddecay"> dddecay;
inline constexpr tensor<"ddinitial_state"> ddinitial_state;
inline constexpr tensor<"ddfinal_state"> ddfinal_state;

}  // namespace gradient_names

/// Checks x and the options as in the forward call, then what goes in and comes out beside them. Throws
/// shape_error and dtype_error.
class gradient_checks {
public:
  gradient_checks(const array& x, int dim, const scan_options& options) : x_(x), state_(x, dim, options) {
    scan_options forward = options;
    forward.final_state.reset();
    check_scan(x, x, dim, forward);
  }
  /// Of x's shape and dtype.
  void rows(const char* operand, const std::optional<array>& given) const {
    if (!given) return;
    require_shape(operand, *given, x_.extents, x_.rank);
    require_dtype(operand, *given, x_.type, x_.type);
  }
  /// Of a state's shape, float32 or of x's dtype.
  void state(const char* operand, const std::optional<array>& given) const {
    if (!given) return;
    require_shape(operand, *given, state_.extents, state_.rank);
    require_dtype(operand, *given, state_dtype(x_.type), x_.type);
  }

private:
  const array& x_;
  state_shape state_;
};

inline void check_scan_gradients(const array& x, int dim, const scan_gradients& gradients,
                                 const scan_options& options) {
  const gradient_checks check(x, dim, options);
  check.rows("y_cotangent", gradients.y_cotangent);
  check.rows("x_gradient", gradients.x_gradient);
  check.state("final_state_cotangent", gradients.final_state_cotangent);
  check.state("initial_state_gradient", gradients.initial_state_gradient);
}

inline void check_scan_gradients(const array& x, int dim, const scan_second_gradients& gradients,
                                 const scan_options& options) {
  const gradient_checks check(x, dim, options);
  check.rows("x_gradient_cotangent", gradients.x_gradient_cotangent);
  check.rows("y_cotangent", gradients.y_cotangent);
  check.rows("y_tangent", gradients.y_tangent);
  check.rows("x_gradient", gradients.x_gradient);
  check.state("initial_state_gradient_cotangent", gradients.initial_state_gradient_cotangent);
  check.state("final_state_cotangent", gradients.final_state_cotangent);
  check.state("final_state_tangent", gradients.final_state_tangent);
  check.state("initial_state_gradient", gradients.initial_state_gradient);
}

/// What is given, as views; what is not stays unbound.
struct gradient_bindings : scan_bindings {
  std::optional<erased_view> dy, dfinal, dx, dinitial;

  gradient_bindings(int dim, const scan_gradients& gradients, const scan_options& options)
      : scan_bindings(options), dy(rows(gradients.y_cotangent, dim)),
        dfinal(state(gradients.final_state_cotangent, options)), dx(rows(gradients.x_gradient, dim)),
        dinitial(state(gradients.initial_state_gradient, options)) {}

protected:
  static std::optional<erased_view> rows(const std::optional<array>& given, int dim) {
    return given ? std::optional(rows_along(*given, dim)) : std::nullopt;
  }
  static std::optional<erased_view> state(const std::optional<array>& given, const scan_options& options) {
    return given ? std::optional(state_view(*given, options.cu_seqlens.has_value())) : std::nullopt;
  }
};

struct second_gradient_bindings : gradient_bindings {
  std::optional<erased_view> ddx, ddinitial, ddy, ddfinal;

  second_gradient_bindings(int dim, const scan_second_gradients& gradients, const scan_options& options)
      : gradient_bindings(dim,
                          {gradients.y_cotangent, gradients.final_state_cotangent, gradients.x_gradient,
                           gradients.initial_state_gradient},
                          options),
        ddx(rows(gradients.x_gradient_cotangent, dim)),
        ddinitial(state(gradients.initial_state_gradient_cotangent, options)),
        ddy(rows(gradients.y_tangent, dim)), ddfinal(state(gradients.final_state_tangent, options)) {}
};

}  // namespace scandsl::ops
