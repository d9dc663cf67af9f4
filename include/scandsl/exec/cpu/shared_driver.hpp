#pragma once
#include "scandsl/exec/cpu/driver.hpp"

/// For libraries of many files that run programs on the CPU: who includes this leaves the driver to the one
/// file of the library that includes driver.hpp and says `template void run_kernel(...)` for both
/// types.
namespace scandsl::cpu_detail {

extern template void run_kernel(const kernel_set<float>&, const problem&, const iteration_space&, int);
extern template void run_kernel(const kernel_set<double>&, const problem&, const iteration_space&, int);

}  // namespace scandsl::cpu_detail
