#pragma once
#include "scandsl/pass/prepare.hpp"
#include "scandsl/pass/rotation.hpp"

/// The kernel programs' schedules for a GPU. Its threads hold a few steps of the walk and take memory in the
/// order of its addresses: rather than once for all positions of an axis along which memory is far apart,
/// sines and cosines are computed step by step, along an axis on which they rotate.
namespace scandsl {

template <const program& P, int K>
inline constexpr int cuda_axis =
    axis_to_rotate_along(kernel_program<P, K>) >= 0 ? axis_to_rotate_along(kernel_program<P, K>)
                                                    : kernels_of<P>.walked_axis[K];
template <const program& P, int K>
inline constexpr schedule cuda_schedule = make_schedule(kernel_program<P, K>, cuda_axis<P, K>);
template <const program& P, int K>
inline constexpr walk_table cuda_table = make_walk_table(kernel_program<P, K>, cuda_schedule<P, K>);

}  // namespace scandsl
