#include "baseline.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace baseline {
namespace {

struct running_sum {
  float sum = 0.0F;
  float next(float x) { return sum += x; }
};
struct running_log_sum {
  float top = -std::numeric_limits<float>::infinity(), sum = 0.0F;
  float next(float x) {
    if (x <= top) {
      sum += std::exp(x - top);
    } else {
      sum = sum * std::exp(top - x) + 1.0F;
      top = x;
    }
    return top + std::log(sum);
  }
};
struct running_decayed_sum {
  float h = 0.0F;
  float next(float decay, float x) { return h = decay * h + x; }
};
struct running_scalar_decayed_sum {
  float decay = 0.0F, h = 0.0F;
  float next(float x) { return h = decay * h + x; }
};

/// Positions low .. high - 1 in chunks, and the positions of each chunk in scan order.
struct walk_order {
  std::int64_t length, chunk;
  bool reverse;

  std::int64_t chunks() const { return (length + chunk - 1) / chunk; }
  std::int64_t begin(std::int64_t c) const { return c * chunk; }
  std::int64_t end(std::int64_t c) const { return std::min(length, (c + 1) * chunk); }
};

template <class State, class T, class... In>
void scan_columns(extents shape, walk_order walk, State start, T* y, const In*... in) {
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t o = 0; o < shape.outer; ++o)
    for (std::int64_t i = 0; i < shape.inner; ++i) {
      const std::int64_t column = o * shape.length * shape.inner + i;
      for (std::int64_t c = 0; c < walk.chunks(); ++c) {
        State state = start;
        if (walk.reverse)
          for (std::int64_t t = walk.end(c) - 1; t >= walk.begin(c); --t)
            y[column + t * shape.inner] = T(state.next(static_cast<float>(in[column + t * shape.inner])...));
        else
          for (std::int64_t t = walk.begin(c); t < walk.end(c); ++t)
            y[column + t * shape.inner] = T(state.next(static_cast<float>(in[column + t * shape.inner])...));
      }
    }
}

template <class State, class T, class... In>
void scan_lanes(extents shape, walk_order walk, State start, T* y, const In*... in) {
  constexpr std::int64_t block = 512;  // lanes whose states stay in the first-level cache
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t o = 0; o < shape.outer; ++o)
    for (std::int64_t first = 0; first < shape.inner; first += block) {
      const std::int64_t lanes = std::min(block, shape.inner - first);
      std::vector<State> states(static_cast<std::size_t>(lanes));
      for (std::int64_t c = 0; c < walk.chunks(); ++c) {
        std::fill(states.begin(), states.end(), start);
        for (std::int64_t step = 0; step < walk.end(c) - walk.begin(c); ++step) {
          const std::int64_t t = walk.reverse ? walk.end(c) - 1 - step : walk.begin(c) + step;
          const std::int64_t row = (o * shape.length + t) * shape.inner + first;
          State* state = states.data();
#pragma omp simd
          for (std::int64_t i = 0; i < lanes; ++i)
            y[row + i] = T(state[i].next(static_cast<float>(in[row + i])...));
        }
      }
    }
}

template <class State, class T, class... In>
void scan(extents shape, order walk, walk_order positions, State start, T* y, const In*... in) {
  if (walk == order::columns)
    scan_columns(shape, positions, start, y, in...);
  else
    scan_lanes(shape, positions, start, y, in...);
}

walk_order forward(extents shape) { return {shape.length, shape.length, false}; }

}  // namespace

void copy(const void* from, void* to, std::size_t bytes) {
  constexpr std::size_t page = 4096;
#pragma omp parallel
  {
    // Parts end at pages, so that no two threads share one.
#ifdef _OPENMP
    const auto threads = static_cast<std::size_t>(omp_get_num_threads());
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
#else
    const std::size_t threads = 1, thread = 0;
#endif
    const std::size_t part = (bytes / threads + page - 1) / page * page;
    const std::size_t begin = std::min(bytes, thread * part), end = std::min(bytes, begin + part);
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                end - begin);
  }
}

template <class T> void logcumsumexp(extents shape, order walk, const T* x, T* y) {
  scan(shape, walk, forward(shape), running_log_sum{}, y, x);
}
template <class T>
void chunk_cumsum(extents shape, order walk, std::int64_t chunk, bool reverse, const T* x, T* y) {
  scan(shape, walk, {shape.length, chunk, reverse}, running_sum{}, y, x);
}
template <class T> void decayed_sum(extents shape, order walk, const T* decay, const T* x, T* y) {
  scan(shape, walk, forward(shape), running_decayed_sum{}, y, decay, x);
}
template <class T> void decayed_sum(extents shape, order walk, float decay, const T* x, T* y) {
  scan(shape, walk, forward(shape), running_scalar_decayed_sum{decay}, y, x);
}

template <class T> void fill(T* values, std::int64_t count, float mean, float deviation) {
  const float scale = deviation / 37837.0F;  // the deviation of a sum of four uniform 16-bit numbers
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) {
    // splitmix64 (Steele, Lea and Flood, 2014) of the position.
    std::uint64_t z = static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    const auto sum = static_cast<int>((z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48));
    values[i] = T(mean + scale * static_cast<float>(sum - 131070));
  }
}

template void logcumsumexp(extents, order, const float*, float*);
template void logcumsumexp(extents, order, const scandsl::bfloat16*, scandsl::bfloat16*);
template void chunk_cumsum(extents, order, std::int64_t, bool, const float*, float*);
template void chunk_cumsum(extents, order, std::int64_t, bool, const scandsl::bfloat16*, scandsl::bfloat16*);
template void decayed_sum(extents, order, const float*, const float*, float*);
template void decayed_sum(extents, order, const scandsl::bfloat16*, const scandsl::bfloat16*,
                          scandsl::bfloat16*);
template void decayed_sum(extents, order, float, const float*, float*);
template void decayed_sum(extents, order, float, const scandsl::bfloat16*, scandsl::bfloat16*);
template void fill(float*, std::int64_t, float, float);
template void fill(scandsl::bfloat16*, std::int64_t, float, float);

}  // namespace baseline
