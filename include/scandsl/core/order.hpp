#pragma once

namespace scandsl {

/// The lesser and the greater of two, and what lies nearest to `value` between two bounds: std::min, max and
/// clamp by value, for what the kernels of ops include. With <algorithm> each of their files would take 0.3 s
/// longer to compile.
template <class T> constexpr T smaller(T a, T b) { return b < a ? b : a; }

template <class T> constexpr T larger(T a, T b) { return a < b ? b : a; }

template <class T> constexpr T clamped(T value, T lowest, T highest) {
  return smaller(larger(value, lowest), highest);
}

}  // namespace scandsl
