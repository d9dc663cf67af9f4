#pragma once

namespace demo {

/// Runs the programs of the workloads on the GPU and prints how fast and how exact. Returns whether every
/// result is as close to float64 as its type allows.
bool run_workloads_on_gpu();

}  // namespace demo
