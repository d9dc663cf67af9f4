#pragma once
#include "devices.hpp"
#include "scandsl/exec/cuda/run.cuh"

/// Private to the ops: the CUDA side of devices.hpp. Each element type of each program is a file of its own,
/// so that they compile side by side.
namespace scandsl::ops {

template <const program& P, class C, class T>
std::int64_t launch_typed(const cuda& device, const problem& bound, const iteration_space& space, bool dry) {
  return dry ? cuda_detail::run_typed<P, C, cuda_detail::uniform_types<T>, true>(device, bound, space)
             : cuda_detail::run_typed<P, C, cuda_detail::uniform_types<T>, false>(device, bound, space);
}

/// The element types with kernels of their own: CMake says it for each program (dispatch.cu.in).
template <const program& P> inline constexpr cuda_detail::typed_elements typed_elements_of = {};

template <const program& P> void run_cuda(const cuda& device, const problem& bound) {
  const iteration_space space = validate(P, bound, works_in_place<P>(), false);
  cuda_detail::with_types<P, typed_elements_of<P>>(
      bound, [&]<class C, class T>(std::type_identity<C>, std::type_identity<T>) {
        return launch_typed<P, C, T>(device, bound, space, false);
      });
}
template <const program& P> std::int64_t size_cuda(const problem& bound) {
  const iteration_space space = make_iteration_space(P, bound);
  return cuda_detail::with_types<P, typed_elements_of<P>>(
      bound, [&]<class C, class T>(std::type_identity<C>, std::type_identity<T>) {
        return launch_typed<P, C, T>(cuda{nullptr}, bound, space, true);
      });
}

}  // namespace scandsl::ops
