#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "scandsl/core/view.hpp"

namespace exec_test {

using namespace scandsl;

/// How a tensor lies in memory. A dimension is counted through all axes, in their declared order.
struct layout {
  std::vector<std::vector<std::int64_t>> split;  ///< by axis, the extents of its dimensions; empty: one each
  std::vector<int> order;                        ///< dimensions, outermost first; empty: as declared
  std::vector<bool> flipped;                     ///< dimensions that run towards lower addresses
  std::vector<bool> repeated;  ///< dimensions of stride 0: all positions share what they hold
  std::int64_t spacing = 1;    ///< elements between neighbours of the innermost dimension
  std::int64_t margin = 0;     ///< elements before the first and after the last
};

/// A layout drawn at random: dimensions split where `splits` allows, permuted, flipped, spread.
layout random_layout(std::mt19937& random, const std::vector<std::int64_t>& extents,
                     const std::vector<std::vector<std::int64_t>>& splits, bool is_input);

/// Memory of a tensor, no byte larger than its layout needs.
class memory {
public:
  memory(dtype type, std::vector<std::int64_t> extents, const layout& how = {});

  erased_view view(bool writable);
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
  std::size_t byte_of(std::int64_t position) const;

  dtype type_;
  std::vector<std::int64_t> extents_;
  std::vector<dims> axes_;
  std::int64_t first_ = 0;  ///< the element at index 0 of every dimension
  std::vector<std::byte> bytes_, written_;
};

/// `value` rounded to a floating-point element type.
double rounded(dtype type, double value);
/// The relative error of rounding to it.
double unit_roundoff(dtype type);

}  // namespace exec_test
