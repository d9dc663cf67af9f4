#pragma once
#include <algorithm>
#include <limits>

#include "scandsl/torch/kernel.hpp"
#include "scandsl/torch/tensor.hpp"

/// What all ops' kernels share. Operands come first, then options; backward passes take cotangents before
/// them, and behind them `wanted`, which says of each result whether it is computed. Results are lists
/// without what is not wanted.
namespace scandsl::binding {

inline int narrow_dim(std::int64_t dim) {
  return static_cast<int>(
      std::clamp<std::int64_t>(dim, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
}

/// Results in the order of the schema: each wanted one is allocated, and where it lies is told.
class result_list {
public:
  explicit result_list(const std::vector<bool>& wanted) : wanted_(wanted) {}

  /// The memory of the next result, nothing where it is not wanted.
  template <class Allocate> std::optional<array> make(const char* name, Allocate&& allocate) {
    if (!wanted_.at(index_++)) return std::nullopt;
    tensors_.push_back(allocate());
    return array_of(name, tensors_.back(), true);
  }
  std::optional<array> like(const char* name, const optional_tensor& tensor) {
    return make(name, [&] { return allocate_like(tensor.value()); });
  }
  tensor_list& tensors() { return tensors_; }

private:
  const std::vector<bool>& wanted_;
  std::size_t index_ = 0;
  tensor_list tensors_;
};

}  // namespace scandsl::binding
