#pragma once

namespace demo {

/// Derives the gradient of logcumsumexp, prints it, and runs it on a large tensor. Returns whether it is as
/// close to float64 as float32 allows.
bool run_derived_gradient();

}  // namespace demo
