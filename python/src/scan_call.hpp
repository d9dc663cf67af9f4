#pragma once
#include <utility>

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

/// Calls scan(device). On a GPU it leaves carries where gradient(sizing), which says what the backward pass
/// needs, has a use for them: in a tensor behind `results`.
template <class Scan, class Gradient>
void run_leaving_carries(const Tensor& x, tensor_list& results, Scan&& scan, Gradient&& gradient) {
  if (!x.is_cuda()) return run_where(x, scan);
  on_gpu(x, [&](cuda& device) {
    cuda_sizing left{.with_carries = true};
    scan(left);
    if (left.carry_bytes > 0) {
      cuda_sizing found{.with_carries = true};
      gradient(found);
      if (found.carry_bytes == left.carry_bytes) {
        results.push_back(allocate({&left.carry_bytes, 1}, ScalarType::Byte, x));
        device.carries = {results.back().data_ptr(), left.carry_bytes};
      }
    }
    scan(std::as_const(device));
  });
}
/// Calls gradient(device) with carries that the scan left, if any.
template <class Gradient>
void run_with_carries(const Tensor& x, const optional_tensor& carries, Gradient&& gradient) {
  if (!carries) return run_where(x, gradient);
  on_gpu(x, [&](cuda& device) {
    cuda_sizing found{.with_carries = true};
    gradient(found);
    if (found.carry_bytes == carries->numel()) device.carries = {carries->data_ptr(), found.carry_bytes};
    gradient(std::as_const(device));
  });
}

}  // namespace scandsl::binding
