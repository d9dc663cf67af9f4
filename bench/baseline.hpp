#pragma once
#include <cstddef>
#include <cstdint>

#include "scandsl/core/half.hpp"

/// What the library is measured against: a copy of the same number of bytes, and the loops that a good
/// programmer writes without intrinsics. All of them run on every core (OpenMP).
namespace baseline {

/// A contiguous tensor [outer, length, inner] that is scanned along its middle dimension. Rows have inner
/// = 1.
struct extents {
  std::int64_t outer, length, inner;
  std::int64_t count() const { return outer * length * inner; }
};

/// How a loop walks a tensor.
enum class order {
  columns,  ///< one column after the other, the scan innermost: strided where inner > 1
  lanes,    ///< the scan outside, contiguous lanes inside: vectorised where the compiler can
};

/// Copies `bytes`, each thread one contiguous part.
void copy(const void* from, void* to, std::size_t bytes);

/// y_t = log(sum over s <= t of exp(x_s)), carried as (maximum, sum): one std::exp and one std::log an
/// element. T is float or bfloat16; arithmetic in float.
template <class T> void logcumsumexp(extents shape, order walk, const T* x, T* y);

/// Sums that restart every `chunk` positions; from each chunk's end to its start where `reverse`.
template <class T>
void chunk_cumsum(extents shape, order walk, std::int64_t chunk, bool reverse, const T* x, T* y);

/// h_t = a_t h_{t-1} + x_t with one decay for each element, or one for all.
template <class T> void decayed_sum(extents shape, order walk, const T* decay, const T* x, T* y);
template <class T> void decayed_sum(extents shape, order walk, float decay, const T* x, T* y);

/// Fills memory with numbers of about standard normal distribution around `mean`, the same every time.
template <class T> void fill(T* values, std::int64_t count, float mean = 0.0F, float deviation = 1.0F);

}  // namespace baseline
