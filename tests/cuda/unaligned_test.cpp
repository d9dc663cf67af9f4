#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ops/op_case.hpp"
#include "scandsl/ops/decayed_sum.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "support/catch.hpp"

// Elements side by side that do not lie where vectors do: rows of an odd length, views that begin anywhere.
// The same numbers in rows that vectors reach give the same bits, and nothing beside a view is written.
namespace {

using namespace scandsl;

using op_test::run_on_device, support::memory_of;

/// [outer, n, inner], or [outer, n] where inner is 1, with elements before it and behind each line, along its
/// last dimension, and `tail` behind it.
template <class T> struct placed {
  std::int64_t outer, n, inner, before, line;
  memory_of<T> memory;

  placed(std::int64_t o, std::int64_t length, std::int64_t i, std::int64_t front, std::int64_t behind,
         std::int64_t tail)
      : outer(o), n(length), inner(i), before(front), line((i == 1 ? length : i) + behind),
        memory(static_cast<std::size_t>(front + (i == 1 ? o : o * length) * line - behind + tail), T(77.0F)) {
  }
  std::size_t at(std::int64_t o, std::int64_t k, std::int64_t i) const {
    return static_cast<std::size_t>(before + (inner == 1 ? o * line + k : (o * n + k) * line + i));
  }
  array view() {
    if (inner == 1) return array::of(memory.data() + before, {outer, n}, {line, 1});
    return array::of(memory.data() + before, {outer, n, inner}, {n * line, line, 1});
  }
  template <class F> void for_each(const F& f) {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t i = 0; i < inner; ++i) f(memory[at(o, k, i)], o, k, i);
  }
  /// Elements beside the view that are not what they were.
  std::int64_t strays() {
    std::vector<bool> inside(memory.size());
    for_each([&](T& each, auto...) { inside[static_cast<std::size_t>(&each - memory.data())] = true; });
    std::int64_t count = 0;
    for (std::size_t e = 0; e < memory.size(); ++e)
      count += !inside[e] && static_cast<float>(memory[e]) != 77.0F ? 1 : 0;
    return count;
  }
};

struct scan_extents {
  std::int64_t outer, n, inner;
};

/// A scan and its gradient with operands at `before`, each line `gap` behind the one before, and at places of
/// vectors. Beside the inputs all is NaN. What differs; empty: nothing.
template <class T>
std::string mismatch(const scan_extents& of, std::int64_t before, std::int64_t gap, bool reverse,
                     std::int64_t tail = 64) {
  const std::int64_t padding = (8 - (of.inner == 1 ? of.n : of.inner) % 8) % 8;
  const auto make = [&](int way) {
    return placed<T>(of.outer, of.n, of.inner, way == 0 ? before : 0, way == 0 ? gap : padding, tail);
  };
  constexpr int axis = 1;
  placed<T> results[2][4] = {{make(0), make(0), make(0), make(0)}, {make(1), make(1), make(1), make(1)}};
  for (int way = 0; way < 2; ++way) {
    placed<T> x = make(way);
    std::fill(x.memory.begin(), x.memory.end(), T(std::numeric_limits<float>::quiet_NaN()));
    placed<T> decay = x, dy = x;
    std::mt19937 random(static_cast<unsigned>(of.n));
    std::uniform_real_distribution<float> unit(0, 1);
    x.for_each([&](T& each, auto...) { each = T(4 * unit(random) - 2); });
    decay.for_each([&](T& each, auto...) { each = T(0.5F + 0.5F * unit(random)); });
    dy.for_each([&](T& each, auto...) { each = T(2 * unit(random) - 1); });
    auto& [sums, decayed, dx, ddecay] = results[way];
    ops::scan_options options;
    options.reverse = reverse;
    ops::decayed_sum_options more;
    more.reverse = reverse;
    run_on_device([&](auto& device) { ops::logcumsumexp(device, x.view(), axis, sums.view(), options); });
    run_on_device(
        [&](auto& device) { ops::decayed_sum(device, x.view(), decay.view(), axis, decayed.view(), more); });
    ops::decayed_sum_gradients gradients;
    gradients.y_cotangent = dy.view();
    gradients.x_gradient = dx.view();
    gradients.decay_gradient = ddecay.view();
    run_on_device([&](auto& device) {
      ops::decayed_sum_backward(device, x.view(), decay.view(), axis, gradients, more);
    });
  }
  for (int i = 0; i < 4; ++i) {
    placed<T>&got = results[0][i], &should = results[1][i];
    std::int64_t differ = 0, not_finite = 0;
    got.for_each([&](T& each, std::int64_t o, std::int64_t k, std::int64_t l) {
      differ += std::memcmp(&each, &should.memory[should.at(o, k, l)], sizeof(T)) != 0 ? 1 : 0;
      not_finite += std::isfinite(static_cast<float>(each)) ? 0 : 1;
    });
    if (not_finite > 0) return message("result ", i, ": ", not_finite, " elements are NaN or infinite");
    if (differ > 0)
      return message("result ", i, ": ", differ, " elements of ", of.outer * of.n * of.inner, " differ");
    if (const std::int64_t strays = got.strays(); strays > 0)
      return message("result ", i, ": ", strays, " elements beside it were written");
  }
  return "";
}

template <class T> void check(const std::vector<scan_extents>& shapes) {
  for (const scan_extents& of : shapes)
    for (const std::int64_t before : {0, 1, 6})
      for (const std::int64_t gap : {0, 3})
        for (const bool reverse : {false, true}) {
          CAPTURE(of.outer, of.n, of.inner, before, gap, reverse);
          CHECK(mismatch<T>(of, before, gap, reverse) == "");
        }
}

}  // namespace

TEST_CASE("rows that begin anywhere", "[cuda][unaligned]") {
  const std::vector<scan_extents> rows = {{5, 1, 1},    {40, 7, 1},   {20, 31, 1}, {9, 257, 1},
                                          {3, 2047, 1}, {60, 205, 1}, {2, 9001, 1}};
  check<bfloat16>(rows);
  check<float>(rows);
}

TEST_CASE("lanes side by side that begin anywhere", "[cuda][unaligned]") {
  const std::vector<scan_extents> lanes = {{2, 30, 3},    {2, 50, 17}, {3, 129, 33},
                                           {1, 500, 129}, {2, 50, 64}, {2, 50, 128}};
  check<bfloat16>(lanes);
  check<float>(lanes);
}

TEST_CASE("operands that begin anywhere, for compute-sanitizer", "[.sanitize]") {
  for (const bool reverse : {false, true}) {
    CHECK(mismatch<bfloat16>({3, 1001, 1}, 3, 0, reverse, 0) == "");
    CHECK(mismatch<bfloat16>({2, 65, 33}, 1, 2, reverse, 0) == "");
    CHECK(mismatch<float>({3, 301, 1}, 1, 0, reverse, 0) == "");
  }
}
