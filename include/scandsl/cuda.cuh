#pragma once

/// scandsl with its CUDA executor: run<P>(cuda{stream}, ...). For files that nvcc compiles.
#include "scandsl/exec/cuda/plan.cuh"
#include "scandsl/exec/cuda/run.cuh"
#include "scandsl/scandsl.hpp"
