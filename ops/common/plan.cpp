#include "scandsl/pass/plan_cuda_kernel.hpp"

// How the kernels of all programs of the library are planned, of which their files have the declaration.
namespace scandsl {

template cuda_kernel_plan plan_cuda_kernel(const program&, const walk_table&, const problem&,
                                           const iteration_space&, const cuda_tile_shape&,
                                           const cuda_device&);

}  // namespace scandsl
