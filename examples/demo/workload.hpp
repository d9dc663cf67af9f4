#pragma once
#include <scandsl/scandsl.hpp>

#include "baseline.hpp"

/// What the demonstration measures: programs, shapes, element types and the errors that they may have.
namespace demo::workload {

using namespace scandsl;
using baseline::extents;

inline constexpr axis<"b"> b;
inline constexpr axis<"n"> n;
inline constexpr tensor<"x"> x;
inline constexpr tensor<"y"> y;
inline constexpr scalar<"chunk"> chunk;
inline constexpr scalar<"reverse"> reverse;

inline constexpr auto logcumsumexp = op<"logcumsumexp">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n)));
inline constexpr auto chunk_cumsum = op<"chunk_cumsum">(
    out<"y">(b, n) = scan(plain_sum, over(n).reversed(reverse).restart_every(chunk), x(b, n)));

inline constexpr extents rows = {12 * 2048, 2048, 1}, columns = {12, 2048, 2048},
                         chunks = {4, 8192, 16 * 128};
inline constexpr std::int64_t chunk_size = 128;

/// A tensor [outer, length, inner] as two axes: n is the middle one, b the two others. Nothing is transposed
/// or copied.
template <class T> auto as_two_axes(T* data, extents e) {
  return view(data, dims{{e.outer, e.length * e.inner}, {e.inner, 1}}, dim{e.length, e.inner});
}

template <class T> inline constexpr const char* type_name = "float32";
template <> inline constexpr const char* type_name<bfloat16> = "bfloat16";
// A bfloat16 is rounded once, to 8 bits; in float32 a sum of 128 numbers of both signs may cancel.
template <class T> inline constexpr double allowed = 5e-5;
template <> inline constexpr double allowed<bfloat16> = 1.0 / 256 + 5e-5;

}  // namespace demo::workload
