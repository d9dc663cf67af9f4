#pragma once

#include <array>
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace scandsl {

namespace detail {

inline void append(std::string& text, std::string_view words) { text += words; }
template <class Number>
  requires std::is_arithmetic_v<Number>
void append(std::string& text, Number number) {
  if constexpr (std::is_same_v<Number, char>) {
    text += number;
  } else if constexpr (std::is_floating_point_v<Number>) {
    std::array<char, 32> digits;
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::general, 6);
    text.append(digits.data(), end.ptr);
  } else {
    text += std::to_string(number);
  }
}

}  // namespace detail

/// Joins its arguments, texts and numbers, into one string; real numbers have six digits, as printf's %g has
/// them, in every locale. (Not by a stream: a library that was linked with a C++ library of its own, as some
/// compilers do, may have streams without a locale.)
template <class... Parts> std::string message(const Parts&... parts) {
  std::string text;
  (detail::append(text, parts), ...);
  return text;
}

/// The base of every exception that scandsl throws. A message says what was expected, what came, and what to
/// do; the second constructor writes it from these three.
struct error : std::runtime_error {
  explicit error(const std::string& text) : std::runtime_error(text) {}
  error(const std::string& expected, const std::string& came, const std::string& advice)
      : std::runtime_error("expected " + expected + "; got " + came + "; " + advice) {}
};

/// Extents that do not agree, or a view of the wrong rank.
struct shape_error : error {
  using error::error;
};

/// An element type that the operation does not take.
struct dtype_error : error {
  using error::error;
};

/// A null pointer, or a scalar outside its domain.
struct argument_error : error {
  using error::error;
};

/// A dimension number outside [-rank, rank).
struct index_error : error {
  using error::error;
};

/// A call of the CUDA runtime that failed, or a launch that the device cannot take.
struct cuda_error : error {
  using error::error;
};

/// An output that shares memory with another operand, or with itself.
struct overlap_error : error {
  using error::error;
};

}  // namespace scandsl
