#pragma once
#include <cstddef>
#include <string_view>

namespace scandsl {

inline constexpr std::size_t name_capacity = 24;

/// A name as a plain value: programs are values, so the names in them are too.
struct name {
  char text[name_capacity]{};

  constexpr bool operator==(const name&) const = default;
  constexpr std::size_t size() const {
    std::size_t n = 0;
    while (n < name_capacity && text[n] != '\0') ++n;
    return n;
  }
  constexpr std::string_view view() const { return {text, size()}; }
};

constexpr name make_name(std::string_view text) {
  if (text.size() >= name_capacity) throw "scandsl: a name has at most 23 characters";
  name result;
  for (std::size_t i = 0; i < text.size(); ++i) result.text[i] = text[i];
  return result;
}

/// A name as a template argument: axis<"n">, tensor<"x">.
template <std::size_t N> struct fixed_string {
  static_assert(N <= name_capacity, "scandsl: a name has at most 23 characters");
  char text[N]{};

  constexpr fixed_string(const char (&literal)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = literal[i];
  }
  constexpr name value() const { return make_name(std::string_view(text, N - 1)); }
};

/// How many of Named::text are `id`. (A fold of comparisons over the pack gives 2 for "x" among "x" and "y"
/// with g++ 14.2.)
template <class... Named> constexpr int count_names(const name& id) {
  const name all[] = {Named::text.value()..., name{}};
  int count = 0;
  for (std::size_t i = 0; i < sizeof...(Named); ++i)
    if (all[i] == id) ++count;
  return count;
}

/// A set of axis names, kept in the order they were met (that order is only used for printing).
struct axis_list {
  static constexpr int capacity = 16;
  name items[capacity]{};
  int count = 0;

  constexpr bool has(const name& axis) const {
    for (int i = 0; i < count; ++i)
      if (items[i] == axis) return true;
    return false;
  }
  constexpr axis_list with(const name& axis) const {
    axis_list result = *this;
    if (!result.has(axis)) {
      if (count == capacity) throw "scandsl: more than 16 axes in one expression";
      result.items[result.count++] = axis;
    }
    return result;
  }
  constexpr axis_list without(const name& axis) const {
    axis_list result;
    for (int i = 0; i < count; ++i)
      if (!(items[i] == axis)) result.items[result.count++] = items[i];
    return result;
  }
  constexpr axis_list operator|(const axis_list& other) const {
    axis_list result = *this;
    for (int i = 0; i < other.count; ++i) result = result.with(other.items[i]);
    return result;
  }
  /// The first axis that `other` lacks; an empty name when it has them all.
  constexpr name first_missing_in(const axis_list& other) const {
    for (int i = 0; i < count; ++i)
      if (!other.has(items[i])) return items[i];
    return {};
  }
};

}  // namespace scandsl
