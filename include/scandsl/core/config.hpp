#pragma once

/// Marks functions that run on the host and, under nvcc, on the device; SCANDSL_INLINE those that are inlined
/// whatever a compiler thinks of it. The one thing here that only a macro can do.
#ifdef __CUDACC__
#define SCANDSL_HD __host__ __device__ __forceinline__
#define SCANDSL_INLINE SCANDSL_HD
#else
#define SCANDSL_HD inline
#define SCANDSL_INLINE [[gnu::always_inline]] inline
#endif
