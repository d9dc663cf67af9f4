#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "scandsl/core/dtype.hpp"
#include "scandsl/core/error.hpp"
#include "scandsl/exec/cpu/convert.hpp"

// Staging: one pack of W rows ("lanes") moves between strided memory of any dtype and a tile of the compute
// type, where the lanes of one step lie side by side. The kernels see tiles only.

namespace scandsl {

/// Where the lanes of a pack lie: lane l is offsets ? offsets[l] : l * stride elements from lane 0. Only
/// lanes below `valid`, which is in [1, W], exist in memory.
struct lane_map {
  std::int64_t stride;
  const std::int64_t* offsets;
  int valid;

  constexpr std::int64_t offset(int lane) const { return offsets ? offsets[lane] : lane * stride; }
  /// Whether the valid lanes are `distance` elements apart, one after the other.
  constexpr bool apart_by(std::int64_t distance) const {
    if (!offsets) return stride == distance || valid == 1;
    for (int lane = 1; lane < valid; ++lane)
      if (offsets[lane] - offsets[lane - 1] != distance) return false;
    return true;
  }
};

namespace detail::staging {

/// Calls f(std::integral_constant<int, i>) for i in [0, N). Registers in an array need constant indices,
/// which GCC's loop unrolling supplies too late.
template <int N> [[gnu::always_inline]] inline void unroll(auto f) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, N>{});
}

/// Blocks are transposed as integers in registers of 32 bytes at most: recent x86 cores run integer shuffles
/// within 16-byte lanes on two ports, those of floats and of 64-byte registers on one (Ice Lake: 4.8
/// against 2.7 elements a cycle).
template <class C> using word = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;
template <class C, int W> inline constexpr int block_width = std::min(W, static_cast<int>(32 / sizeof(C)));

/// Elements in a 16-byte lane of a register, the whole register where it is smaller.
template <class T, int N> inline constexpr int lane_width = std::min(N, static_cast<int>(16 / sizeof(T)));

/// Elements Index ... of a followed by b.
template <class T, int N, int... Index>
[[gnu::always_inline]] inline vec<T, N> pick(vec<T, N> a, vec<T, N> b) {
#if defined(__GNUC__) && !defined(__clang__)  // nvcc's front end takes no pack in __builtin_shufflevector
  constexpr vec<T, N> indices{static_cast<T>(Index)...};
  return __builtin_shuffle(a, b, indices);
#else
  return __builtin_shufflevector(a, b, Index...);
#endif
}

/// The lower (Half = 0) or upper (1) halves of the 16-byte lanes, an element of a and one of b in turn.
template <class T, int N, int Half, int... I>
[[gnu::always_inline]] inline vec<T, N> interleave(vec<T, N> a, vec<T, N> b,
                                                   std::integer_sequence<int, I...>) {
  constexpr int lane = lane_width<T, N>;
  return pick<T, N, (I / lane * lane + Half * lane / 2 + I % lane / 2 + I % 2 * N)...>(a, b);
}

/// The lower (Half = 0) or upper (1) half of a, followed by that of b.
template <class T, int N, int Half, int... I>
[[gnu::always_inline]] inline vec<T, N> join_halves(vec<T, N> a, vec<T, N> b,
                                                    std::integer_sequence<int, I...>) {
  return pick<T, N, (I % (N / 2) + Half * N / 2 + I / (N / 2) * N)...>(a, b);
}

/// Transposes an N x N matrix, one register a row: each stage is a perfect shuffle of the rows, so log2(N)
/// of them bring row i, column j to row j, column i.
template <class T, int N> [[gnu::always_inline]] inline void transpose(vec<T, N> (&rows)[N]) {
  constexpr auto all = std::make_integer_sequence<int, N>{};
  constexpr int lane = lane_width<T, N>;
  vec<T, N> next[N];
  if constexpr (lane < N) {
    static_assert(2 * lane == N);
    unroll<lane>([&](auto i) __attribute__((always_inline)) {
      next[i] = join_halves<T, N, 0>(rows[i], rows[i + lane], all);
      next[i + lane] = join_halves<T, N, 1>(rows[i], rows[i + lane], all);
    });
    unroll<N>([&](auto i) __attribute__((always_inline)) { rows[i] = next[i]; });
  }
  unroll<std::bit_width(unsigned{lane}) - 1>([&](auto) __attribute__((always_inline)) {
    unroll<N / 2>([&](auto pair) __attribute__((always_inline)) {
      constexpr int group = pair / (lane / 2) * lane, i = pair % (lane / 2);
      next[group + 2 * i] = interleave<T, N, 0>(rows[group + i], rows[group + i + lane / 2], all);
      next[group + 2 * i + 1] = interleave<T, N, 1>(rows[group + i], rows[group + i + lane / 2], all);
    });
    unroll<N>([&](auto i) __attribute__((always_inline)) { rows[i] = next[i]; });
  });
}

/// A bfloat16 tile moves two steps to a word, which halves the shuffles.
template <class C, class T>
inline constexpr bool moves_pairs = std::conjunction_v<std::is_same<C, float>, std::is_same<T, bfloat16>>;

/// Steps of a block: as many as fill the registers.
template <class C, int W, class T>
inline constexpr int block_steps = (moves_pairs<C, T> ? 2 : 1) * block_width<C, W>;

/// Reads a block of all W rows, so that the stores fill whole lines of the tile.
template <class C, int W, class T>
[[gnu::always_inline]] inline void gather_block(C* tile, std::int64_t pitch, const T* const* rows,
                                                std::int64_t first_step) {
  constexpr int N = block_width<C, W>;
  using words = vec<word<C>, N>;
  words block[W / N][N];
  unroll<W / N>([&](auto group) __attribute__((always_inline)) {
    unroll<N>([&](auto i) __attribute__((always_inline)) {
      const T* const from = rows[group * N + i] + first_step;
      if constexpr (moves_pairs<C, T>)
        block[group][i] = load_raw<words>(from);
      else
        block[group][i] = std::bit_cast<words>(load<C, N>(from));
    });
    transpose<word<C>, N>(block[group]);
  });
  unroll<N>([&](auto i) __attribute__((always_inline)) {
    unroll<W / N>([&](auto group) __attribute__((always_inline)) {
      if constexpr (moves_pairs<C, T>) {
        store_raw(tile + 2 * i * pitch + group * N, block[group][i] << 16);
        store_raw(tile + (2 * i + 1) * pitch + group * N, block[group][i] & 0xffff0000U);
      } else {
        store_raw(tile + i * pitch + group * N, block[group][i]);
      }
    });
  });
}

/// Bytes of two blocks of a row where words move unchanged or as pairs, and so may stream; 0 elsewhere.
template <class C, int W, class T>
inline constexpr int streaming_bytes =
    std::is_same_v<C, T> || moves_pairs<C, T> ? 2 * block_steps<C, W, T> * static_cast<int>(sizeof(T)) : 0;

/// Writes `Blocks` blocks of the first `count` rows: two fill whole lines of float32.
template <class C, int W, int Blocks, bool Streaming, class T>
[[gnu::always_inline]] inline void scatter_block(const C* tile, std::int64_t pitch, T* const* rows,
                                                 std::int64_t first_step, int count) {
  constexpr int N = block_width<C, W>;
  using words = vec<word<C>, N>;
  words block[Blocks][N];
  unroll<Blocks>([&](auto part) __attribute__((always_inline)) {
    unroll<N>([&](auto i) __attribute__((always_inline)) {
      const C* const from = tile + (part * N + i) * (moves_pairs<C, T> ? 2 : 1) * pitch;
      if constexpr (moves_pairs<C, T>) {
        const auto even = round_to_upper_half<N>(load_raw<vec<float, N>>(from));
        const auto odd = round_to_upper_half<N>(load_raw<vec<float, N>>(from + pitch));
        block[part][i] = (even >> 16) | (odd & 0xffff0000U);
      } else {
        block[part][i] = load_raw<words>(from);
      }
    });
    transpose<word<C>, N>(block[part]);
  });
  const auto store_row = [&](auto i) __attribute__((always_inline)) {
    unroll<Blocks>([&](auto part) __attribute__((always_inline)) {
      T* const to = rows[i] + first_step + part * block_steps<C, W, T>;
      if constexpr (Streaming)
        store_streaming(to, block[part][i]);
      else if constexpr (moves_pairs<C, T>)
        store_raw(to, block[part][i]);
      else
        store<C, N>(to, std::bit_cast<vec<C, N>>(block[part][i]));
    });
  };
  if (count >= N)  // apart, because a condition on each row makes GCC spread the shuffles over the branches
    unroll<N>(store_row);
  else
    unroll<N>([&](auto i) __attribute__((always_inline)) {
      if (i < count) store_row(i);
    });
}

/// The steps are side by side; the last block overlaps its neighbour where `steps` is no multiple.
template <class C, int W, class T>
void gather_rows(C* tile, std::int64_t pitch, const T* const* rows, std::int64_t steps) {
  constexpr int length = block_steps<C, W, T>;
  for (std::int64_t t = 0; t < steps; t += length) {
    const std::int64_t first = std::min(t, steps - length);
    gather_block<C, W>(tile + first * pitch, pitch, rows, first);
  }
}

template <class C, int W, int Blocks, bool Streaming, class T>
void scatter_rows(const C* tile, std::int64_t pitch, T* const* rows, int valid, std::int64_t steps) {
  constexpr int length = Blocks * block_steps<C, W, T>;
  for (std::int64_t t = 0; t < steps; t += length) {
    const std::int64_t first = std::min(t, steps - length);
    for (int l = 0; l < valid; l += block_width<C, W>)
      scatter_block<C, W, Blocks, Streaming>(tile + first * pitch + l, pitch, rows + l, first, valid - l);
  }
}

/// Calls f(first, std::integral_constant<int, size>) for pieces of sizes that are powers of two, W at most,
/// which together cover [0, count).
template <int W> [[gnu::always_inline]] inline void for_pieces(int count, auto f) {
  if (count & W) f(count / (2 * W) * (2 * W), std::integral_constant<int, W>{});
  if constexpr (W > 1) for_pieces<W / 2>(count, f);
}

/// The lanes lie side by side.
template <class C, int W, class T>
void gather_adjacent(C* tile, std::int64_t pitch, const T* source, int valid, std::int64_t step,
                     std::int64_t steps) {
  if (valid == W) {
    for (std::int64_t t = 0; t < steps; ++t) store_raw(tile + t * pitch, load<C, W>(source + t * step));
    return;
  }
  for (std::int64_t t = 0; t < steps; ++t) {
    store_raw(tile + t * pitch, splat<C, W>(load<C, 1>(source + t * step)[0]));
    for_pieces<W / 2>(
        valid, [=]<int N>(int l, std::integral_constant<int, N>) __attribute__((always_inline)) {
          store_raw(tile + t * pitch + l, load<C, N>(source + t * step + l));
        });
  }
}

template <class C, int W, class T>
void scatter_adjacent(const C* tile, std::int64_t pitch, T* target, int valid, std::int64_t step,
                      std::int64_t steps, [[maybe_unused]] bool streaming) {
  if constexpr (std::is_same_v<C, T> && W * sizeof(T) == line_bytes) {
    if (streaming && valid == W && begins_lines(target, step * static_cast<std::int64_t>(sizeof(T)))) {
      for (std::int64_t t = 0; t < steps; ++t)
        store_streaming(target + t * step, load_raw<vec<C, W>>(tile + t * pitch));
      return fence_streaming();
    }
  }
  if (valid == W) {
    for (std::int64_t t = 0; t < steps; ++t)
      store<C, W>(target + t * step, load_raw<vec<C, W>>(tile + t * pitch));
    return;
  }
  for (std::int64_t t = 0; t < steps; ++t)
    for_pieces<W / 2>(
        valid, [=]<int N>(int l, std::integral_constant<int, N>) __attribute__((always_inline)) {
          store<C, N>(target + t * step + l, load_raw<vec<C, N>>(tile + t * pitch + l));
        });
}

/// The lanes are one element.
template <class C, int W, class T>
void gather_single(C* tile, std::int64_t pitch, const T* source, std::int64_t step, std::int64_t steps) {
  for (std::int64_t t = 0; t < steps; ++t)
    store_raw(tile + t * pitch, splat<C, W>(load<C, 1>(source + t * step)[0]));
}

template <class C, int W, class T>
void gather(C* tile, std::int64_t pitch, const T* source, const lane_map& lanes, std::int64_t step,
            std::int64_t steps) {
  constexpr int length = block_steps<C, W, T>;
  if (lanes.apart_by(0)) return gather_single<C, W>(tile, pitch, source + lanes.offset(0), step, steps);
  if (lanes.apart_by(1))
    return gather_adjacent<C, W>(tile, pitch, source + lanes.offset(0), lanes.valid, step, steps);

  const T* rows[W];
  for (int l = 0; l < W; ++l) rows[l] = source + lanes.offset(l < lanes.valid ? l : 0);
  if ((step == 1 || step == -1) && steps >= length) {
    const std::int64_t last = steps - 1;
    if (step == -1) {  // the same rows, read from their other ends into a tile that runs backwards
      for (const T*& row : rows) row -= last;
      tile += last * pitch;
      pitch = -pitch;
    }
    return gather_rows<C, W>(tile, pitch, rows, steps);
  }
  for (std::int64_t t = 0; t < steps; ++t)
    for (int l = 0; l < W; ++l) tile[t * pitch + l] = load<C, 1>(rows[l] + t * step)[0];
}

template <class C, int W, class T>
void scatter(const C* tile, std::int64_t pitch, T* target, const lane_map& lanes, std::int64_t step,
             std::int64_t steps, bool streaming) {
  constexpr int length = block_steps<C, W, T>;
  if (lanes.apart_by(1))
    return scatter_adjacent<C, W>(tile, pitch, target + lanes.offset(0), lanes.valid, step, steps, streaming);

  T* rows[W];
  for (int l = 0; l < W; ++l) rows[l] = target + lanes.offset(l < lanes.valid ? l : 0);
  if ((step == 1 || step == -1) && steps >= length) {
    const std::int64_t last = steps - 1;
    if (step == -1) {
      for (T*& row : rows) row -= last;
      tile += last * pitch;
      pitch = -pitch;
    }
    if constexpr (streaming_bytes<C, W, T> == line_bytes) {
      if (streaming && steps % (2 * length) == 0 && std::all_of(rows, rows + lanes.valid, is_line_aligned)) {
        scatter_rows<C, W, 2, true>(tile, pitch, rows, lanes.valid, steps);
        return fence_streaming();
      }
    }
    if (steps >= 2 * length) return scatter_rows<C, W, 2, false>(tile, pitch, rows, lanes.valid, steps);
    return scatter_rows<C, W, 1, false>(tile, pitch, rows, lanes.valid, steps);
  }
  for (std::int64_t t = 0; t < steps; ++t)
    for (int l = 0; l < lanes.valid; ++l)
      store<C, 1>(rows[l] + t * step, load_raw<vec<C, 1>>(tile + t * pitch + l));
}

}  // namespace detail::staging

/// Reads a pack: tile[t * pitch + l] = C(source[lanes.offset(l) + t * step]) for t in [0, steps), l in [0,
/// W); the lanes past lanes.valid repeat lane 0. `source` points at lane 0 of step 0; `step`, in elements,
/// may have any sign. Reads no element outside the valid lanes.
template <class C, int W>
void gather_pack(C* tile, std::int64_t pitch, const void* source, dtype type, const lane_map& lanes,
                 std::int64_t step, std::int64_t steps) {
  visit_dtype(type, [&]<class T>(std::type_identity<T>) {
    detail::staging::gather<C, W>(tile, pitch, static_cast<const T*>(source), lanes, step, steps);
  });
}

/// Writes a pack: target[lanes.offset(l) + t * step] = tile[t * pitch + l] for t in [0, steps), l in
/// [0, lanes.valid), each rounded once, to nearest even. `target` points at lane 0 of step 0. Throws
/// dtype_error for an integer target. `streaming` lets whole aligned lines bypass the caches, which pays for
/// an output much larger than they are (1.3 to 3 times the bandwidth, as each line is then not read first).
template <class C, int W>
void scatter_pack(const C* tile, std::int64_t pitch, void* target, dtype type, const lane_map& lanes,
                  std::int64_t step, std::int64_t steps, bool streaming = false) {
  visit_dtype(type, [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_integral_v<T>)
      throw dtype_error("an output of a floating-point type", name_of(type),
                        "give the output a floating dtype");
    else
      detail::staging::scatter<C, W>(tile, pitch, static_cast<T*>(target), lanes, step, steps, streaming);
  });
}

}  // namespace scandsl
