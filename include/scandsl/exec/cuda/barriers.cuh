#pragma once
#include <cstdint>

/// How threads wait for each other, beyond what the language has: a block's first ones, launches that
/// overlap, the blocks of a cluster.
namespace scandsl::cuda_detail {

// ---- barriers of a block's first threads; a kernel may have others beside them

/// Waits for `threads` threads.
__device__ __forceinline__ void wait_for_all(int threads) {
  asm volatile("bar.sync 0, %0;" ::"r"(threads) : "memory");
}
/// ... and says whether any of them said so.
__device__ __forceinline__ bool any_of_all(int threads, bool mine) {
  std::uint32_t any;
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.or.pred q, 0, %2, p; selp.u32 %0, 1, 0, q; }"
               : "=r"(any)
               : "r"(static_cast<std::uint32_t>(mine)), "r"(threads)
               : "memory");
  return any != 0;
}

// ---- launches that overlap: one may begin while the one before it ends, and waits where it needs its
// results

__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_last() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ---- the blocks of a cluster. Before compute capability 9.0 there are none: such kernels are not launched
// there.

__device__ __forceinline__ int block_of_cluster() {
  std::uint32_t rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return static_cast<int>(rank);
}
/// The barrier of all threads of a cluster, in two halves. What a thread wrote before publish_in_cluster()
/// and its arrival is there for all behind the wait; other writes are not waited for.
__device__ __forceinline__ void publish_in_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
#endif
}
__device__ __forceinline__ void arrive_at_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}
/// Where what lies at `mine` in the shared memory of this block lies in that of another.
template <class T> __device__ __forceinline__ T* in_block_of_cluster(T* mine, int rank) {
  std::uint64_t other = reinterpret_cast<std::uint64_t>(mine);
#if __CUDA_ARCH__ >= 900
  asm("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(other), "r"(rank));
#endif
  return reinterpret_cast<T*>(other);
}

}  // namespace scandsl::cuda_detail
