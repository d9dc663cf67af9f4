#pragma once
#include "results.hpp"

/// What the kernels of the positional encodings share.
namespace scandsl::binding {

/// Memory for the encoding of x: the cosines, and behind them the sines. What is wrong with x, the op says.
inline Tensor allocate_encoded(const Tensor& x, const array& input) {
  std::vector<std::int64_t> extents(input.extents, input.extents + input.rank);
  if (!extents.empty()) extents.back() *= 2;
  return allocate({extents.data(), extents.size()}, x.scalar_type(), x);
}

}  // namespace scandsl::binding
