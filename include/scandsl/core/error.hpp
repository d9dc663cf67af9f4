#pragma once

#include <concepts>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string_view>
#include <type_traits>

namespace scandsl {

/// A short text: what does not fit is cut off. (std::string is a twentieth of what files with kernels take to
/// compile.)
class short_text {
public:
  static constexpr std::size_t capacity = 500;

  constexpr short_text() = default;
  template <std::convertible_to<std::string_view> Words> constexpr short_text(const Words& words) {
    append(std::string_view(words));
  }

  constexpr operator std::string_view() const { return {letters, length}; }
  /// A std::string, for those who include it.
  template <class Text>
    requires requires { typename Text::allocator_type; }
  operator Text() const {
    return Text(letters, length);
  }
  constexpr std::string_view view() const { return {letters, length}; }
  constexpr const char* c_str() const { return letters; }
  constexpr bool operator==(const short_text& other) const { return view() == other.view(); }

  constexpr void append(std::string_view words) {
    for (const char letter : words) append(letter);
  }
  constexpr void append(char letter) {
    if (length < capacity) letters[length++] = letter;
  }
  /// Six digits, as printf's %g has them, with a point in every locale.
  void append(double number) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%g", number);
    bool in_point = false;
    for (const char* at = digits; *at != '\0'; ++at) {
      const bool known = std::string_view("+-0123456789einfa").find(*at) != std::string_view::npos;
      if (known || !in_point) append(known ? *at : '.');
      in_point = !known;
    }
  }
  template <std::integral Integer> constexpr void append(Integer number) {
    char digits[24];
    int count = 0;
    // Of a negative number each digit is negative: the least has no opposite.
    bool negative = false;
    if constexpr (std::is_signed_v<Integer>) negative = number < 0;
    do {
      const int digit = static_cast<int>(number % 10);
      digits[count++] = static_cast<char>('0' + (digit < 0 ? -digit : digit));
      number = static_cast<Integer>(number / 10);
    } while (number != 0);
    if (negative) append('-');
    while (count > 0) append(digits[--count]);
  }

private:
  char letters[capacity + 1] = {};
  std::size_t length = 0;
};

/// Joins its arguments, texts and numbers, into one text.
template <class... Parts> short_text message(const Parts&... parts) {
  short_text text;
  [[maybe_unused]] const auto append = [&]<class Part>(const Part& part) {
    if constexpr (std::is_convertible_v<const Part&, std::string_view>)
      text.append(std::string_view(part));
    else if constexpr (std::is_floating_point_v<Part>)
      text.append(static_cast<double>(part));
    else if constexpr (std::is_same_v<Part, bool>)
      text.append(static_cast<int>(part));
    else
      text.append(part);
  };
  (append(parts), ...);
  return text;
}

/// The base of every exception that scandsl throws. A message says what was expected, what came, and what to
/// do; the second constructor writes it from these three.
struct error : std::exception {
  explicit error(const short_text& words) { write(words); }
  error(const short_text& expected, const short_text& came, const short_text& advice) {
    for (const std::string_view part :
         {std::string_view("expected "), expected.view(), std::string_view("; got "), came.view(),
          std::string_view("; "), advice.view()})
      write(part);
  }
  const char* what() const noexcept override { return letters; }

private:
  void write(std::string_view words) {
    for (const char letter : words)
      if (length < 3 * short_text::capacity) letters[length++] = letter;
  }
  char letters[3 * short_text::capacity + 1] = {};
  std::size_t length = 0;
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
