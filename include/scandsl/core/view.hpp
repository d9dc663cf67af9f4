#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "scandsl/core/dtype.hpp"
#include "scandsl/core/error.hpp"

namespace scandsl {

/// The most dimensions that one axis of a view may cover.
inline constexpr int max_dims = 8;

/// The most axes that a view may have.
inline constexpr int max_rank = 8;

/// One dimension of memory: its number of elements, and the distance between them counted in elements.
struct dim {
  std::int64_t extent, stride;

  friend constexpr bool operator==(const dim&, const dim&) = default;
};

/// What one axis of a view binds to: a list of at most max_dims dimensions, walked in row-major order (the
/// last varies fastest). An empty list is one element.
class dims {
public:
  constexpr dims() {
    if (std::is_constant_evaluated())  // constants hold nothing undetermined
      for (dim& each : list_) each = {};
  }
  constexpr dims(std::initializer_list<dim> list) : dims() {
    for (const dim& each : list) push_back(each);
  }
  constexpr dims(const dims& other) : dims() { *this = other; }
  constexpr dims& operator=(const dims& other) {
    size_ = other.size_;
    for (int i = 0; i < size_; ++i) list_[i] = other.list_[i];
    return *this;
  }

  /// Throws argument_error when the list is full, or on a negative extent.
  constexpr void push_back(dim added) {
    if (size_ == max_dims)
      throw argument_error(message("at most ", max_dims, " dimensions on one axis"), "one more",
                           "merge dimensions that are contiguous, or copy the tensor");
    if (added.extent < 0)
      throw argument_error("an extent of at least 0", message("the extent ", added.extent),
                           "check the order of extent and stride");
    list_[size_++] = added;
  }

  constexpr int size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const dim& operator[](int i) const { return list_[i]; }
  constexpr dim& operator[](int i) { return list_[i]; }
  constexpr const dim* begin() const { return list_; }
  constexpr const dim* end() const { return list_ + size_; }
  constexpr dim* begin() { return list_; }
  constexpr dim* end() { return list_ + size_; }

  /// The number of positions: the product of the extents.
  constexpr std::int64_t count() const {
    std::int64_t product = 1;
    for (const dim& each : *this) product *= each.extent;
    return product;
  }

  friend constexpr bool operator==(const dims& left, const dims& right) {
    if (left.size_ != right.size_) return false;
    for (int i = 0; i < left.size_; ++i)
      if (left[i] != right[i]) return false;
    return true;
  }

private:
  dim list_[max_dims];  ///< beyond size_ not even zero: most of a view's lists are empty
  int size_ = 0;
};

/// How far the element at `position` of an axis lies from the one at 0, in elements.
constexpr std::int64_t offset_at(const dims& axis, std::int64_t position) {
  std::int64_t offset = 0;
  for (int d = axis.size(); d-- > 0;) {
    offset += position % axis[d].extent * axis[d].stride;
    position /= axis[d].extent;
  }
  return offset;
}

namespace detail {

/// Drops dimensions of extent 1, and merges neighbours that one stride walks in the same order.
inline std::vector<dim> coalesce(const std::vector<dim>& where) {
  std::vector<dim> result;
  for (const dim& inner : where) {
    if (inner.extent == 1) continue;
    if (!result.empty() && result.back().stride == inner.stride * inner.extent)
      result.back() = {result.back().extent * inner.extent, inner.stride};
    else
      result.push_back(inner);
  }
  return result;
}

}  // namespace detail

/// A view whose element type and rank are known at run time only: what the operations' C++ entries take.
/// Strides are counted in elements.
struct array {
  void* data = nullptr;
  dtype type = dtype::float32;
  int rank = 0;
  std::int64_t extents[max_rank] = {};
  std::int64_t strides[max_rank] = {};
  bool writable = false;

  /// A view with the given extents and strides. Throws shape_error where their numbers differ, argument_error
  /// on a rank above max_rank or a negative extent. A pointer to const gives a view that is not writable.
  template <storage_type T>
  static array of(T* data, std::span<const std::int64_t> extents, std::span<const std::int64_t> strides) {
    if (extents.size() != strides.size())
      throw shape_error("as many strides as extents",
                        message(extents.size(), " extents and ", strides.size(), " strides"),
                        "give each dimension both");
    array result = empty_view(data, extents);
    for (int i = 0; i < result.rank; ++i) result.strides[i] = strides[static_cast<std::size_t>(i)];
    return result;
  }

  /// A contiguous view, row-major: the last dimension has stride 1.
  template <storage_type T> static array of(T* data, std::span<const std::int64_t> extents) {
    array result = empty_view(data, extents);
    std::int64_t stride = 1;
    for (int i = result.rank - 1; i >= 0; --i) {
      result.strides[i] = stride;
      stride *= result.extents[i];
    }
    return result;
  }

  template <storage_type T> static array of(T* data, std::initializer_list<std::int64_t> extents) {
    return of(data, std::span(extents.begin(), extents.size()));
  }

  template <storage_type T>
  static array of(T* data, std::initializer_list<std::int64_t> extents,
                  std::initializer_list<std::int64_t> strides) {
    return of(data, std::span(extents.begin(), extents.size()), std::span(strides.begin(), strides.size()));
  }

  /// The number of elements: the product of the extents.
  std::int64_t count() const {
    std::int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= extents[i];
    return product;
  }

private:
  template <class T> static array empty_view(T* data, std::span<const std::int64_t> extents) {
    if (extents.size() > static_cast<std::size_t>(max_rank))
      throw argument_error(message("at most ", max_rank, " dimensions"), message(extents.size()),
                           "merge dimensions that are contiguous");
    array result;
    result.data = const_cast<std::remove_cv_t<T>*>(data);
    result.type = dtype_of<T>;
    result.writable = !std::is_const_v<T>;
    for (const std::int64_t extent : extents) {
      if (extent < 0)
        throw argument_error("an extent of at least 0", message("the extent ", extent), "check the shape");
      result.extents[result.rank++] = extent;
    }
    return result;
  }
};

/// A pointer with `Rank` axes, each a list of dimensions. It owns nothing; T is const for an input.
template <class T, int Rank> struct strided_view {
  static constexpr int rank = Rank;
  using element = T;

  T* data = nullptr;
  dims axis[Rank ? Rank : 1] = {};
};

namespace detail {
constexpr dims to_axis(const dim& part) { return dims{part}; }
constexpr dims to_axis(const dims& part) { return part; }
}  // namespace detail

/// Binds memory to axes. Each part is one axis, and all parts are of one kind:
/// - integers are the extents of a contiguous row-major tensor: view(p, B, N, D);
/// - dim{extent, stride} is an axis of one dimension, dims{{e, s}, {e, s}} an axis that covers several,
///   strides counted in elements: view(p, dims{{B, s0}, {H, s1}}, dim{N, s2}).
/// No part at all is a view of one element. Throws argument_error on a negative extent.
template <storage_type T, class... Parts>
constexpr strided_view<T, static_cast<int>(sizeof...(Parts))> view(T* data, Parts... parts) {
  constexpr bool all_integers = (std::integral<Parts> && ...);
  constexpr bool all_dims = ((std::same_as<Parts, dim> || std::same_as<Parts, dims>) && ...);
  static_assert(
      all_integers || all_dims,
      "scandsl::view: expected either only integers (the extents of a contiguous row-major tensor) or "
      "only dim{extent, stride} and dims{...} parts; got a mixture or another type. Write each integer "
      "n as dim{n, stride}.");
  strided_view<T, static_cast<int>(sizeof...(Parts))> result{data};
  [[maybe_unused]] int position = 0;
  if constexpr (sizeof...(Parts) > 0 && all_integers) {
    ((result.axis[position++] = dims{dim{static_cast<std::int64_t>(parts), 0}}), ...);
    std::int64_t stride = 1;
    while (position > 0) {
      dim& only = result.axis[--position][0];
      only.stride = stride;
      stride *= only.extent;
    }
  } else if constexpr (all_dims) {
    ((result.axis[position++] = detail::to_axis(parts)), ...);
  }
  return result;
}

template <class Memory, class... Parts> constexpr auto view(const Memory&, Parts...) {
  static_assert(sizeof(Memory) == 0, "scandsl::view: the first argument is a pointer to float, double, "
                                     "bfloat16, float16 or an integer of 32 or "
                                     "64 bits; a std::vector gives it by data().");
  return strided_view<float, static_cast<int>(sizeof...(Parts))>{};
}

/// A view without memory, to plan with: the parts are those of view().
template <storage_type T, class... Parts> constexpr auto shape(Parts... parts) {
  return view(static_cast<T*>(nullptr), parts...);
}

/// A strided_view whose element type and rank are known at run time only.
struct erased_view {
  void* data = nullptr;
  dtype type = dtype::float32;
  bool writable = false;
  int rank = 0;
  dims axis[max_rank] = {};
};

/// Elements from a view's element at index 0 to its lowest (at most 0) and its highest, where it has any.
inline std::pair<std::int64_t, std::int64_t> reach_of(const erased_view& view) {
  std::int64_t below = 0, above = 0;
  for (int i = 0; i < view.rank; ++i)
    for (const dim& each : view.axis[i]) (each.stride < 0 ? below : above) += (each.extent - 1) * each.stride;
  return {below, above};
}

/// Forgets the element type and the rank of a view. A view of const elements is not writable.
template <class T, int Rank> constexpr erased_view erase(const strided_view<T, Rank>& typed) {
  static_assert(Rank <= max_rank,
                "scandsl::erase: a view has at most max_rank axes; merge some into one dims.");
  erased_view result;
  result.data = const_cast<std::remove_cv_t<T>*>(typed.data);
  result.type = dtype_of<T>;
  result.writable = !std::is_const_v<T>;
  result.rank = Rank;
  for (int i = 0; i < Rank; ++i) result.axis[i] = typed.axis[i];
  return result;
}

}  // namespace scandsl
