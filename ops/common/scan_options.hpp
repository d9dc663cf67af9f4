#pragma once
#include <optional>

#include "scandsl/core/view.hpp"

namespace scandsl::ops {

/// What every scan op takes beside its operands.
///
/// States have the shape of x without the scanned dimension; with packed sequences, a leading dimension S is
/// added. All positions of a dimension count from 0.
struct scan_options {
  bool reverse = false;                ///< from the last position (of each sequence) to the first
  bool exclusive = false;              ///< y_t is the state before t; the final state is unaffected
  std::optional<array> initial_state;  ///< the carry at the start; float32, or of x's dtype
  std::optional<array> final_state;    ///< written: the carry at the end; float32 (float64 for float64)
  std::optional<array> cu_seqlens;  ///< int32 or int64 [S + 1], from 0 to the scanned extent, not decreasing
};

}  // namespace scandsl::ops
