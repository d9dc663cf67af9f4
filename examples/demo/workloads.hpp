#pragma once

namespace demo {

/// Runs logcumsumexp and the chunk cumsum on the published workloads' shapes and prints how, how fast and how
/// exact. Returns whether every result is as close to float64 as its type allows.
bool run_workloads();

}  // namespace demo
