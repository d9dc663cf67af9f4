#pragma once
#include <cstdint>

#include "scandsl/exec/cuda/barriers.cuh"
#include "scandsl/exec/cuda/kernel.cuh"

/// What the blocks of a look-back (lookback.cuh) tell each other: words in device memory that say themselves
/// whether they are there; and inside a block, barriers at which one side arrives and the other waits.
namespace scandsl::cuda_detail {

/// Where states are published: all zero at launch. A state's words are 64 bits each, 32 of value and 32 that
/// say what it is, so that no fence is needed between a value and its flag.
struct lookback_arguments {
  std::uint32_t* ticket = nullptr;
  std::uint64_t* words = nullptr;
  std::int64_t tiles = 1;  ///< of one row
  std::int64_t rows = 1;
};
/// What is published of a tile.
enum class tile_state {
  own,     ///< what it comes to; of a row's first tile: with what the row begins with
  before,  ///< what precedes it in its row
  past,    ///< the scan's state past it, where states may overflow
};

/// What a published word says of itself.
enum class published : std::uint32_t {
  nothing = 0,  ///< yet
  state = 1,
  overflowed = 2,  ///< no state: combined, it might make a NaN that the scan in order does not make
};

__device__ __forceinline__ std::uint64_t load_published(const std::uint64_t* from) {
  std::uint64_t word;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  return word;
}
__device__ __forceinline__ void store_published(std::uint64_t* to, std::uint32_t value, published what) {
  const std::uint64_t word = static_cast<std::uint64_t>(what) << 32 | value;
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}
template <class C> inline constexpr int words_of = static_cast<int>(sizeof(C) / 4);
template <class C> __device__ __forceinline__ std::uint32_t word_of(C value, int which) {
  if constexpr (sizeof(C) == 4)
    return __float_as_uint(static_cast<float>(value));
  else
    return static_cast<std::uint32_t>(which == 0 ? __double2loint(value) : __double2hiint(value));
}
template <class C> __device__ __forceinline__ C from_words(const std::uint32_t (&word)[words_of<C>]) {
  if constexpr (sizeof(C) == 4)
    return C(__uint_as_float(word[0]));
  else
    return __hiloint2double(static_cast<int>(word[1]), static_cast<int>(word[0]));
}

// ---- named barriers between a block's threads and its messenger: one side arrives, the other waits

template <int Threads> __device__ __forceinline__ void arrive_at(int id) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(Threads) : "memory");
}
template <int Threads> __device__ __forceinline__ void wait_at(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(Threads) : "memory");
}

}  // namespace scandsl::cuda_detail
