#include "scandsl/exec/cpu/driver.hpp"

// What goes around the stages of all programs of the library (shared_driver.hpp).
namespace scandsl::cpu_detail {

template void run_kernel(const kernel_set<float>&, const problem&, const iteration_space&, int);
template void run_kernel(const kernel_set<double>&, const problem&, const iteration_space&, int);

}  // namespace scandsl::cpu_detail
