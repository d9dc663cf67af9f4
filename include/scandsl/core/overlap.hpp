#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "scandsl/core/view.hpp"

namespace scandsl {

/// The bytes that a view touches: an element of `element_size` bytes at each position of the dimensions,
/// outermost first, strides counted in elements; `address` is that of the element at index 0.
struct footprint {
  std::uintptr_t address = 0;
  std::size_t element_size = 1;
  std::vector<dim> where;
};

/// Whether two views might share a byte: the stretches of memory from their first to their last do.
inline bool might_overlap(const erased_view& left, const erased_view& right) {
  const auto ends = [](const erased_view& view) {
    const auto size = static_cast<std::int64_t>(size_of(view.type));
    const auto address = reinterpret_cast<std::uintptr_t>(view.data);
    const auto [below, above] = reach_of(view);
    return std::pair(address + static_cast<std::uintptr_t>(below * size),
                     address + static_cast<std::uintptr_t>((above + 1) * size));
  };
  const auto [left_first, left_end] = ends(left);
  const auto [right_first, right_end] = ends(right);
  return left_first < right_end && right_first < left_end;
}

/// The footprint of a bound view: the dimensions of its axes, one after the other.
inline footprint footprint_of(const erased_view& view) {
  footprint result{reinterpret_cast<std::uintptr_t>(view.data), size_of(view.type), {}};
  for (int i = 0; i < view.rank; ++i)
    result.where.insert(result.where.end(), view.axis[i].begin(), view.axis[i].end());
  return result;
}

namespace detail {

/// One summand of a bounded sum: stride * i with i in [0, most].
struct summand {
  std::int64_t stride;
  std::int64_t most;
};

/// A footprint as a set of byte addresses: lowest + the sums of terms + [0, element_size).
struct byte_set {
  std::uintptr_t lowest = 0;
  std::int64_t element_size = 1;
  std::vector<summand> terms;  // strides positive, largest first
  bool empty = false;
  bool repeats = false;  // a stride of 0 with an extent above 1

  explicit byte_set(const footprint& from)
      : lowest(from.address), element_size(static_cast<std::int64_t>(from.element_size)) {
    std::vector<dim> where = from.where;
    for (dim& each : where) {
      if (each.extent == 0) empty = true;
      each.stride *= element_size;
      if (each.stride < 0) {  // walk the dimension from its other end
        lowest -= static_cast<std::uintptr_t>((each.extent - 1) * -each.stride);
        each.stride = -each.stride;
      }
      if (each.stride == 0 && each.extent > 1) repeats = true;
    }
    if (empty) return;
    std::erase_if(where, [](const dim& each) { return each.stride == 0 || each.extent == 1; });
    std::sort(where.begin(), where.end(), [](const dim& a, const dim& b) { return a.stride > b.stride; });
    for (const dim& each : coalesce(where)) terms.push_back({each.stride, each.extent - 1});
  }

  /// The last byte's distance from the lowest.
  std::int64_t reach() const {
    std::int64_t sum = element_size - 1;
    for (const summand& each : terms) sum += each.stride * each.most;
    return sum;
  }
};

/// Whether `target` is a sum of the terms plus something in [0, slack]: the bounded subset sum to which
/// overlap reduces (as in NumPy's mem_overlap.c). It is NP-hard in general; the strides of real views nest,
/// and then each level keeps one or two candidates. Past the work cap the answer is yes, which is the safe
/// one.
class sum_search {
public:
  sum_search(std::vector<summand> terms, std::int64_t slack) : slack_(slack) {
    std::sort(terms.begin(), terms.end(),
              [](const summand& a, const summand& b) { return a.stride > b.stride; });
    for (const summand& each :
         terms) {  // terms of one stride are one summand: a search over both would be quadratic
      if (!terms_.empty() && terms_.back().stride == each.stride)
        terms_.back().most += each.most;
      else
        terms_.push_back(each);
    }
    reach_.assign(terms_.size() + 1, slack);
    divisor_.assign(terms_.size() + 1, 0);
    for (std::size_t level = terms_.size(); level-- > 0;) {
      reach_[level] = reach_[level + 1] + terms_[level].stride * terms_[level].most;
      divisor_[level] = std::gcd(divisor_[level + 1], terms_[level].stride);
    }
  }

  bool reaches(std::int64_t target) { return reaches(target, 0); }

private:
  bool reaches(std::int64_t target, std::size_t level) {
    if (target < 0 || target > reach_[level]) return false;
    if (level == terms_.size() || work_left_-- == 0) return true;
    if (target % divisor_[level] > slack_) return false;
    const auto [stride, most] = terms_[level];
    const std::int64_t excess = target - reach_[level + 1];
    const std::int64_t fewest = excess <= 0 ? 0 : (excess + stride - 1) / stride;
    for (std::int64_t i = std::min(most, target / stride); i >= fewest; --i)
      if (reaches(target - i * stride, level + 1)) return true;
    return false;
  }

  std::vector<summand> terms_;         // largest stride first
  std::vector<std::int64_t> reach_;    // the largest sum of the terms from a level on, slack included
  std::vector<std::int64_t> divisor_;  // the greatest common divisor of the strides from a level on
  std::int64_t slack_;
  std::int64_t work_left_ = std::int64_t{1} << 18;  // about a millisecond
};

}  // namespace detail

/// Whether two different positions of the view share a byte, as with stride 0 and an extent above 1. Exact,
/// except that a view too intricate to decide within a fixed amount of work counts as overlapping.
inline bool self_overlaps(const footprint& view) {
  const detail::byte_set set(view);
  if (set.empty) return false;
  if (set.repeats) return true;
  std::int64_t inside =
      set.element_size - 1;  // how far one step of a dimension has to go, at least, to be sure
  bool nests = true;
  for (std::size_t i = set.terms.size(); i-- > 0 && nests;) {
    nests = set.terms[i].stride > inside;
    inside += set.terms[i].stride * set.terms[i].most;
  }
  if (nests) return false;
  // Two positions differ by d != 0, and -d is as good; so let the first dimension that differs have d > 0.
  for (std::size_t first = 0; first < set.terms.size(); ++first) {
    const auto [stride, most] = set.terms[first];
    std::vector<detail::summand> terms{{stride, most - 1}};
    std::int64_t target = set.element_size - 1 - stride;
    for (std::size_t later = first + 1; later < set.terms.size(); ++later) {
      terms.push_back({set.terms[later].stride, 2 * set.terms[later].most});
      target += set.terms[later].stride * set.terms[later].most;
    }
    if (detail::sum_search(std::move(terms), 2 * (set.element_size - 1)).reaches(target)) return true;
  }
  return false;
}

/// Whether the two views share a byte. Exact for interleaved views too (buf[:, ::2] and buf[:, 1::2] do not
/// overlap), with the same exception as self_overlaps. A view of no elements overlaps nothing.
inline bool overlaps(const footprint& left, const footprint& right) {
  const detail::byte_set a(left), b(right);
  if (a.empty || b.empty) return false;
  // a.lowest + sum + byte == b.lowest + sum' + byte' with the right side's indices counted from their ends.
  const auto distance = static_cast<std::int64_t>(b.lowest - a.lowest);
  const std::int64_t target = distance + b.reach();
  if (target < 0 || distance > a.reach()) return false;
  std::vector<detail::summand> terms = a.terms;
  terms.insert(terms.end(), b.terms.begin(), b.terms.end());
  return detail::sum_search(std::move(terms), a.element_size + b.element_size - 2).reaches(target);
}

/// Whether the two views walk the same bytes in the same order: the same address, element size, and
/// dimensions once neighbours are merged. An output may then replace an input in place.
inline bool identical(const footprint& left, const footprint& right) {
  return left.address == right.address && left.element_size == right.element_size &&
         detail::coalesce(left.where) == detail::coalesce(right.where);
}

}  // namespace scandsl
