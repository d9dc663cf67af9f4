#pragma once
#include "scandsl/scandsl.hpp"
#include "scandsl/torch/program_op.hpp"

/// What the file of one's own torch op includes: the language, and torch_op<program>.
