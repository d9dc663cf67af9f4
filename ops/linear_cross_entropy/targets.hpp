#pragma once
#include <cstddef>
#include <vector>

#include "arguments.hpp"
#include "products.hpp"

/// Private to the op: targets that are no class.
namespace scandsl::ops {

/// Calls f(position, target) for all tokens.
template <class F> void for_each_target(const array& target, F f) {
  for (std::int64_t i = 0; i < target.count(); ++i) {
    std::int64_t offset = 0, rest = i;
    for (int d = target.rank - 1; d >= 0; --d) {
      offset += rest % target.extents[d] * target.strides[d];
      rest /= target.extents[d];
    }
    f(i, target.type == dtype::int32 ? static_cast<const std::int32_t*>(target.data)[offset]
                                     : static_cast<const std::int64_t*>(target.data)[offset]);
  }
}

/// Throws argument_error on a target that is no class and not ignored, naming the first.
inline void check_targets(const call_arguments& call) {
  for_each_target(*call.target, [&](std::int64_t i, std::int64_t target) {
    if (target != call.options.ignore_index && (target < 0 || target >= call.classes()))
      throw argument_error(message("targets in [0, ", call.classes(), ") or ignore_index, which is ",
                                   call.options.ignore_index),
                           message(target, " at position ", i), "correct it, or mark the token as ignored");
  });
}

/// The same for targets on the GPU, which are copied to the host.
inline void check_targets(const cuda& device, const call_arguments& call) {
  call_arguments on_host = call;
  array& target = *on_host.target;
  std::int64_t first = 0, last = 0;  // the elements that the view spans, relative to its first
  for (int i = 0; i < target.rank; ++i) {
    const std::int64_t reach = (target.extents[i] - 1) * target.strides[i];
    (reach < 0 ? first : last) += reach;
  }
  if (target.count() == 0) return;
  const auto element = static_cast<std::int64_t>(size_of(target.type));
  std::vector<std::byte> copy(static_cast<std::size_t>((last - first + 1) * element));
  cuda_blas::read(device, copy.data(), static_cast<const char*>(target.data) + first * element,
                  static_cast<std::int64_t>(copy.size()));
  target.data = copy.data() - first * element;
  check_targets(on_host);
}

}  // namespace scandsl::ops
