#pragma once

/// Marks functions that run on the host and, under nvcc, on the device. The one thing here that only a macro
/// can do.
#ifdef __CUDACC__
#define SCANDSL_HD __host__ __device__ __forceinline__
#else
#define SCANDSL_HD inline
#endif
