#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "scandsl/core/view.hpp"
#ifdef SCANDSL_TEST_MANAGED
#include "cuda/managed.hpp"
#endif

/// Tensors in memory, laid out in every way that a view can describe.
namespace support {

using namespace scandsl;

/// Memory of operands; with SCANDSL_TEST_MANAGED the GPU reaches it, too.
#ifdef SCANDSL_TEST_MANAGED
template <class T> using memory_of = std::vector<T, managed<T>>;
#else
template <class T> using memory_of = std::vector<T>;
#endif

/// How a tensor lies in memory. A dimension is counted through all axes, in their declared order.
struct layout {
  std::vector<std::vector<std::int64_t>> split;  ///< by axis, the extents of its dimensions; empty: one each
  std::vector<int> order;                        ///< dimensions, outermost first; empty: as declared
  std::vector<bool> flipped;                     ///< dimensions that run towards lower addresses
  std::vector<bool> repeated;  ///< dimensions of stride 0: all positions share what they hold
  std::int64_t spacing = 1;    ///< elements between neighbours of the innermost dimension
  std::int64_t margin = 0;     ///< elements before the first and after the last
};

/// Memory of a tensor, no byte larger than its layout needs.
class memory_block {
public:
  memory_block(dtype type, std::vector<std::int64_t> extents, const layout& how = {});

  erased_view view(bool writable);
  /// The same for an operation's entry. One dimension an axis.
  array as_array(bool writable);
  /// Rounds to the element type. `values` are row-major over the axes.
  void write(const std::vector<double>& values);
  std::vector<double> read() const;
  /// Whether each byte that no element covers is as it was at first.
  bool is_intact_around() const;
  /// Whether no byte at all was written since the last write().
  bool is_untouched() const { return bytes_ == written_; }

private:
  std::int64_t count() const;
  /// Of the element at a row-major position.
  std::int64_t element_of(std::int64_t position) const;
  /// f(position, the element's first byte), in row-major order.
  template <class F> void for_each_element(F f) const {
    const std::size_t size = size_of(type_);
    for (std::int64_t i = 0, n = count(); i < n; ++i) f(i, static_cast<std::size_t>(element_of(i)) * size);
  }

  dtype type_;
  std::vector<std::int64_t> extents_;
  std::vector<dims> axes_;
  std::int64_t first_ = 0;  ///< the element at index 0 of every dimension
  memory_of<std::byte> bytes_;
  memory_of<std::byte> written_;
};

namespace detail {

inline constexpr std::byte untouched{0xa5};

inline std::vector<dim> dimensions_of(const std::vector<std::int64_t>& extents, const layout& how) {
  std::vector<dim> all;
  for (std::size_t a = 0; a < extents.size(); ++a)
    for (const std::int64_t extent : how.split.empty() ? std::vector{extents[a]} : how.split[a])
      all.push_back({extent, 0});
  return all;
}

}  // namespace detail

/// A layout drawn at random: dimensions split where `splits` allows, permuted, flipped, spread.
inline layout random_layout(std::mt19937& random, const std::vector<std::int64_t>& extents,
                            const std::vector<std::vector<std::int64_t>>& splits, bool is_input) {
  const auto chance = [&](int percent) {
    return std::uniform_int_distribution<int>(1, 100)(random) <= percent;
  };
  layout how;
  for (std::size_t a = 0; a < extents.size(); ++a)
    how.split.push_back(chance(60) ? splits[a] : std::vector{extents[a]});
  const std::size_t count = detail::dimensions_of(extents, how).size();
  how.order.resize(count);
  std::iota(how.order.begin(), how.order.end(), 0);
  if (chance(70)) std::shuffle(how.order.begin(), how.order.end(), random);
  for (std::size_t i = 0; i < count; ++i) how.flipped.push_back(chance(20));
  for (std::size_t i = 0; i < count; ++i) how.repeated.push_back(is_input && chance(10));
  how.spacing = chance(70) ? 1 : 3;
  how.margin = chance(50) ? 0 : 5;
  return how;
}

inline memory_block::memory_block(dtype type, std::vector<std::int64_t> extents, const layout& how)
    : type_(type), extents_(std::move(extents)), axes_(extents_.size()) {
  std::vector<dim> all = detail::dimensions_of(extents_, how);
  std::vector<int> order = how.order;
  for (int i = static_cast<int>(order.size()); i < static_cast<int>(all.size()); ++i) order.push_back(i);
  first_ = how.margin;
  std::int64_t stride = how.spacing, last = how.margin;
  for (std::size_t i = order.size(); i-- > 0;) {
    const auto d = static_cast<std::size_t>(order[i]);
    if (!how.repeated.empty() && how.repeated[d]) continue;
    all[d].stride = stride;
    stride *= std::max<std::int64_t>(all[d].extent, 1);
    const std::int64_t reach = std::max<std::int64_t>(all[d].extent - 1, 0) * all[d].stride;
    last += reach;
    if (!how.flipped.empty() && how.flipped[d]) {
      first_ += reach;
      all[d].stride = -all[d].stride;
    }
  }
  auto next = all.begin();
  for (std::size_t a = 0; a < extents_.size(); ++a)
    for (std::size_t part = 0, parts = how.split.empty() ? 1 : how.split[a].size(); part < parts; ++part)
      axes_[a].push_back(*next++);
  const bool empty = count() == 0;
  bytes_.assign(empty ? 0 : static_cast<std::size_t>(last + 1 + how.margin) * size_of(type_),
                detail::untouched);
  written_ = bytes_;
}

inline erased_view memory_block::view(bool writable) {
  erased_view result;
  result.data = bytes_.empty() ? nullptr : bytes_.data() + static_cast<std::size_t>(first_) * size_of(type_);
  result.type = type_;
  result.writable = writable;
  result.rank = static_cast<int>(axes_.size());
  std::copy(axes_.begin(), axes_.end(), result.axis);
  return result;
}

inline array memory_block::as_array(bool writable) {
  const erased_view from = view(writable);
  array result{from.data, from.type, from.rank, {}, {}, writable};
  for (int i = 0; i < from.rank; ++i) {
    result.extents[i] = from.axis[i][0].extent;
    result.strides[i] = from.axis[i][0].stride;
  }
  return result;
}

inline std::int64_t memory_block::count() const {
  return std::accumulate(extents_.begin(), extents_.end(), std::int64_t{1}, std::multiplies<>());
}

inline std::int64_t memory_block::element_of(std::int64_t position) const {
  std::int64_t element = first_;
  for (std::size_t a = axes_.size(); a-- > 0;) {
    std::int64_t index = position % extents_[a];
    position /= extents_[a];
    for (int d = axes_[a].size(); d-- > 0;) {
      const auto [extent, stride] = axes_[a][d];
      element += index % extent * stride;
      index /= extent;
    }
  }
  return element;
}

inline void memory_block::write(const std::vector<double>& values) {
  visit_dtype(type_, [&]<class T>(std::type_identity<T>) {
    for_each_element([&](std::int64_t i, std::size_t byte) {
      const T element = static_cast<T>(values[static_cast<std::size_t>(i)]);
      std::memcpy(bytes_.data() + byte, &element, sizeof(T));
    });
  });
  written_ = bytes_;
}

inline std::vector<double> memory_block::read() const {
  std::vector<double> values(static_cast<std::size_t>(count()));
  visit_dtype(type_, [&]<class T>(std::type_identity<T>) {
    for_each_element([&](std::int64_t i, std::size_t byte) {
      T element;
      std::memcpy(&element, bytes_.data() + byte, sizeof(T));
      values[static_cast<std::size_t>(i)] = static_cast<double>(element);
    });
  });
  return values;
}

inline bool memory_block::is_intact_around() const {
  memory_of<std::byte> around = bytes_;
  for_each_element(
      [&](std::int64_t, std::size_t byte) { std::fill_n(&around[byte], size_of(type_), detail::untouched); });
  return around == memory_of<std::byte>(around.size(), detail::untouched);
}

/// `value` rounded to a floating-point element type.
inline double rounded(dtype type, double value) {
  return visit_dtype(
      type, [&]<class T>(std::type_identity<T>) { return static_cast<double>(static_cast<T>(value)); });
}

/// The relative error of rounding to it.
inline double unit_roundoff(dtype type) {
  switch (type) {
  case dtype::float64: return 0x1p-53;
  case dtype::float32: return 0x1p-24;
  case dtype::float16: return 0x1p-11;
  case dtype::bfloat16: return 0x1p-8;
  default: return 0;
  }
}

}  // namespace support
