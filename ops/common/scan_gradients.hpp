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

}  // namespace scandsl::ops
