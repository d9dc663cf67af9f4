#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "scandsl/core/error.hpp"
#include "scandsl/core/half.hpp"

namespace scandsl {

/// The element types that a view may have at run time.
enum class dtype : std::uint8_t { float32, float64, bfloat16, float16, int32, int64 };

namespace detail {
template <class T, class... Choices> inline constexpr bool is_one_of = (std::is_same_v<T, Choices> || ...);

template <class T>
inline constexpr bool is_storage =
    is_one_of<std::remove_cv_t<T>, float, double, scandsl::bfloat16, scandsl::float16, int, long, long long>;
}  // namespace detail

/// A type that memory may hold: float, double, bfloat16, float16, and signed integers of 32 and 64 bits.
template <class T>
concept storage_type = detail::is_storage<T>;

namespace detail {
template <storage_type T> consteval dtype find_dtype() {
  if constexpr (std::is_same_v<T, float>) return dtype::float32;
  if constexpr (std::is_same_v<T, double>) return dtype::float64;
  if constexpr (std::is_same_v<T, scandsl::bfloat16>) return dtype::bfloat16;
  if constexpr (std::is_same_v<T, scandsl::float16>) return dtype::float16;
  return sizeof(T) == 4 ? dtype::int32 : dtype::int64;
}
}  // namespace detail

/// The run-time name of a storage type; const and volatile do not count.
template <storage_type T> inline constexpr dtype dtype_of = detail::find_dtype<std::remove_cv_t<T>>();

/// Calls f(std::type_identity<T>{}) with the storage type T that `type` names, and gives back what f gives.
/// Throws dtype_error on a value that is not in the enumeration.
template <class F> constexpr decltype(auto) visit_dtype(dtype type, F&& f) {
  switch (type) {
  case dtype::float32: return std::forward<F>(f)(std::type_identity<float>{});
  case dtype::float64: return std::forward<F>(f)(std::type_identity<double>{});
  case dtype::bfloat16: return std::forward<F>(f)(std::type_identity<bfloat16>{});
  case dtype::float16: return std::forward<F>(f)(std::type_identity<float16>{});
  case dtype::int32: return std::forward<F>(f)(std::type_identity<std::int32_t>{});
  case dtype::int64: return std::forward<F>(f)(std::type_identity<std::int64_t>{});
  }
  throw dtype_error("one of the six dtypes", message("the value ", static_cast<int>(type)),
                    "initialise the dtype of the view");
}

/// Bytes per element.
constexpr std::size_t size_of(dtype type) {
  return visit_dtype(type, []<class T>(std::type_identity<T>) { return sizeof(T); });
}

/// "float32", "float64", "bfloat16", "float16", "int32" or "int64".
constexpr const char* name_of(dtype type) {
  switch (type) {
  case dtype::float32: return "float32";
  case dtype::float64: return "float64";
  case dtype::bfloat16: return "bfloat16";
  case dtype::float16: return "float16";
  case dtype::int32: return "int32";
  case dtype::int64: return "int64";
  }
  return "unknown dtype";
}

/// Whether the type holds fractions; false for int32 and int64.
constexpr bool is_floating(dtype type) { return type != dtype::int32 && type != dtype::int64; }

}  // namespace scandsl
