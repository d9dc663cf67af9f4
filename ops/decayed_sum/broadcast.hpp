#pragma once
#include "../common/operands.hpp"

/// Private to decayed_sum: decays that broadcast against x.
namespace scandsl::ops {

/// `given` with the shape of x: missing and single dimensions repeat (stride 0). Throws shape_error.
inline array broadcast(const char* operand, const array& given, const array& x) {
  array wide = given;
  wide.rank = x.rank;
  const int missing = x.rank - given.rank;
  bool fits = missing >= 0;
  for (int i = 0; fits && i < x.rank; ++i) {
    const bool there = i >= missing && (given.extents[i - missing] != 1 || x.extents[i] == 1);
    fits = !there || given.extents[i - missing] == x.extents[i];
    wide.extents[i] = x.extents[i];
    wide.strides[i] = there ? given.strides[i - missing] : 0;
  }
  if (!fits)
    throw shape_error(
        message("a ", operand, " that broadcasts against x of shape ", shape_text(x.extents, x.rank)),
        shape_text(given.extents, given.rank), "align trailing dimensions; each is x's extent or 1");
  return wide;
}

/// Whether `given` repeats along dimension i of x.
inline bool repeats(const array& given, const array& x, int i) {
  const int at = i - (x.rank - given.rank);
  return x.extents[i] != 1 && (at < 0 || given.extents[at] == 1);
}

/// A wide decay on the axes of a program: (b, n), or (b) where it repeats along the scanned dimension.
inline erased_view decays_along(const array& wide, int dim, bool per_lane) {
  erased_view view = rows_along(wide, dim);
  if (per_lane) {
    view.rank = 1;
    view.axis[1] = dims{};
  }
  return view;
}

}  // namespace scandsl::ops
