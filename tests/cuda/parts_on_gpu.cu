#include "cuda/on_gpu.cuh"
#include "cuda/parts_programs.hpp"

namespace parts {

template <const program& P, class T> int run_on_gpu(const problem& host, int multiprocessors) {
  cuda_device device = gpu::planned_device();
  if (multiprocessors > 0) device.multiprocessors = multiprocessors;
  gpu::run_all_of<P, T>(host, device);
  using kernel = cuda_detail::kernel_for<P, 0, gpu::compute_for<T>, cuda_detail::uniform_types<T>>;
  const program& first = kernel_program<P, 0>;
  const problem part = kernel_problem(P, host, first, make_iteration_space(P, host),
                                      cuda_detail::scratch_dtype<typename kernel::compute>);
  const cuda_kernel_plan plan =
      plan_cuda_kernel(first, kernel_table<P, 0>, part, make_iteration_space(first, part),
                       cuda_detail::tile_shape<kernel>(), device);
  return plan.parts.count_of_grades;
}
template int run_on_gpu<log_total, float>(const problem&, int);
template int run_on_gpu<log_total, bfloat16>(const problem&, int);
template int run_on_gpu<faded, float>(const problem&, int);
template int run_on_gpu<faded, bfloat16>(const problem&, int);
template int run_on_gpu<squares, float>(const problem&, int);
template int run_on_gpu<squares, bfloat16>(const problem&, int);
template int run_on_gpu<of_all, float>(const problem&, int);
template int run_on_gpu<of_all, double>(const problem&, int);
template int run_on_gpu<of_all, bfloat16>(const problem&, int);
template int run_on_gpu<of_three, float>(const problem&, int);
template int run_on_gpu<of_parts, float>(const problem&, int);
template int run_on_gpu<of_inner, float>(const problem&, int);
template int run_on_gpu<shares, float>(const problem&, int);
template int run_on_gpu<shares, bfloat16>(const problem&, int);

}  // namespace parts
