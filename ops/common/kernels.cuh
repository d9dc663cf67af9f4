#pragma once
#include "cuda_part.hpp"
#include "scandsl/exec/cuda/typed_run.cuh"

/// Private to the ops: the CUDA side of devices.hpp. A program's kernels are one file, for all element types:
/// reading the headers and deriving the program takes as long as one type's kernels.
namespace scandsl::ops {

// CMake says these two for each program (kernels.cu.in, sample.cu.in).
/// The element types with kernels of their own.
template <const program& P> inline constexpr cuda_detail::typed_elements typed_elements_of = {};
/// The operands that hold float32 where the others hold 16-bit elements.
template <fixed_string... Ids> struct named_operands {
  static constexpr bool contain(const name& id) { return ((Ids.value() == id) || ...); }
};
template <const program& P> inline constexpr named_operands<> float32_operands_of;

/// What the operands of P hold in the kernels for elements T.
template <const program& P, class T> struct operand_types {
  template <name Id>
  using of = std::conditional_t<sizeof(T) == 2 && float32_operands_of<P>.contain(Id), float, T>;
};

template <const program& P> struct types_of_program {
  template <class T> using in_kernels_for = operand_types<P, T>;
};

template <const program& P, class C, class T>
void run_typed(const cuda& device, const problem& bound, const iteration_space& space) {
  cuda_detail::run_typed<P, C, operand_types<P, T>>(device, bound, space);
}

template <const program& P>
void run_cuda(const cuda& device, const problem& bound, const iteration_space& space) {
  cuda_detail::with_types<P, typed_elements_of<P>, types_of_program<P>::template in_kernels_for>(
      bound, [&]<class C, class T>(std::type_identity<C>, std::type_identity<T>) {
        run_typed<P, C, T>(device, bound, space);
      });
}
template <const program& P>
void size_cuda(cuda_sizing& device, const problem& bound, const iteration_space& space) {
  device = cuda_detail::with_types<P, typed_elements_of<P>, types_of_program<P>::template in_kernels_for>(
      bound, [&]<class C, class T>(std::type_identity<C>, std::type_identity<T>) {
        return cuda_detail::size_typed<P, C, operand_types<P, T>>(bound, space, device.with_carries);
      });
}

}  // namespace scandsl::ops
