#pragma once
#include "common/operands.hpp"
#include "results.hpp"

/// What the scans' kernels share. Each op is three kernels: the op, its backward pass (<op>_backward) and the
/// backward pass of that (<op>_double_backward).
namespace scandsl::binding {

/// The operands and options that every scan has, checked.
struct scan_call {
  const Tensor& tensor;
  array x;
  int dim;
  ops::scan_options options;

  scan_call(const char* operand, const Tensor& scanned, std::int64_t along, bool reverse, bool exclusive,
            const optional_tensor& initial_state, const optional_tensor& cu_seqlens)
      : tensor(scanned), x(array_of(operand, scanned)),
        dim(ops::normalised_dim(x, narrow_dim(along), operand)) {
    require_same_device("initial_state", initial_state, operand, scanned);
    require_same_device("cu_seqlens", cu_seqlens, operand, scanned);
    options.reverse = reverse;
    options.exclusive = exclusive;
    options.initial_state = array_of("initial_state", initial_state);
    options.cu_seqlens = array_of("cu_seqlens", cu_seqlens);
    ops::check_scan(x, x, dim, options, operand);
  }

  /// Memory for a final state.
  Tensor new_state() const {
    const ops::state_shape shape(x, dim, options);
    return allocate({shape.extents, static_cast<std::size_t>(shape.rank)},
                    torch_dtype(ops::state_dtype(x.type)), tensor);
  }
};

}  // namespace scandsl::binding
