#pragma once

/// scandsl: associative scans with elementwise stages around them, from one description to a running program.
/// This header is the whole of it but CUDA.
#include "scandsl/core/view.hpp"
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/expr/activations.hpp"
#include "scandsl/expr/equation.hpp"
#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/describe.hpp"
#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/jvp.hpp"
