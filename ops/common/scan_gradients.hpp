#pragma once
#include <optional>

#include "scandsl/core/view.hpp"

namespace scandsl::ops {

/// What every scan op's backward takes and gives beside its operands. Absent cotangents count as 0; an absent
/// gradient is not written.
struct scan_gradients {
  std::optional<array> y_cotangent;            ///< of y's shape and dtype, any strides (expanded ones too)
  std::optional<array> final_state_cotangent;  ///< of the final state's shape; float32, or of x's dtype
  std::optional<array> x_gradient;             ///< written: of x's shape and dtype
  std::optional<array>
      initial_state_gradient;  ///< written: of the initial state's shape; float32 or x's dtype
};

/// What the backward pass of a scan op's backward pass takes and gives. Absent cotangents count as 0; an
/// absent result is not written. With J the derivative of (y, final state) by (x, initial state), w the
/// cotangents of the former and v those of the gradients, the gradients by w are J v: a tangent, for which w
/// may be absent. Those by x and the initial state are the derivative of <w, J v>, the Hessian times v.
struct scan_second_gradients {
  std::optional<array> x_gradient_cotangent;  ///< of x's shape and dtype
  std::optional<array>
      initial_state_gradient_cotangent;  ///< of the initial state's shape; float32 or x's dtype
  std::optional<array> y_cotangent, final_state_cotangent;  ///< as in the backward pass
  std::optional<array> y_tangent,
      final_state_tangent;  ///< written: of the shape and dtype of what they are of
  std::optional<array> x_gradient, initial_state_gradient;  ///< written, as in the backward pass
};

}  // namespace scandsl::ops
