#include "scandsl/exec/cpu/staging.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include <xsimd/xsimd.hpp>

#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr dtype every_dtype[] = {dtype::float32, dtype::float64, dtype::bfloat16,
                                 dtype::float16, dtype::int32,   dtype::int64};

/// The lanes and steps of one pack, with the smallest buffer that holds them.
struct pack {
  std::vector<std::int64_t> offsets;  // of every lane
  bool listed;                        // pass the offsets rather than a stride
  std::int64_t stride;
  int valid;
  std::int64_t step;
  std::int64_t steps;

  lane_map lanes() const { return {stride, listed ? offsets.data() : nullptr, valid}; }

  /// Calls f(lane, step, offset) for each element of the valid lanes.
  void for_each(auto f) const {
    for (std::int64_t t = 0; t < steps; ++t)
      for (int l = 0; l < valid; ++l) f(l, t, offsets[static_cast<std::size_t>(l)] + t * step);
  }

  /// The lowest offset, and the number of elements from it to the highest.
  std::pair<std::int64_t, std::int64_t> range() const {
    std::int64_t low = 0, high = 0;
    for_each([&](int, std::int64_t, std::int64_t offset) {
      low = std::min(low, offset);
      high = std::max(high, offset);
    });
    return {low, high - low + 1};
  }
};

pack strided(int width, std::int64_t stride, int valid, std::int64_t step, std::int64_t steps) {
  pack result{{}, false, stride, valid, step, steps};
  for (int l = 0; l < width; ++l) result.offsets.push_back(l * stride);
  return result;
}

/// The lanes go on `jump` elements further after the first half.
pack listed(int width, std::int64_t stride, std::int64_t jump, int valid, std::int64_t step,
            std::int64_t steps) {
  pack result = strided(width, stride, valid, step, steps);
  result.listed = true;
  for (int l = (width + 1) / 2; l < width; ++l) result.offsets[static_cast<std::size_t>(l)] += jump;
  return result;
}

/// Packs whose elements lie apart, as an output's must.
std::vector<pack> disjoint_packs(int width) {
  std::vector<pack> result;
  for (const int valid : {1, 2, width / 2 + 1, width - 1, width})
    for (const std::int64_t steps :
         {0, 1, width - 1, width, width + 1, 3 * width + 2, 5 * width + 3, 8 * width}) {
      const std::int64_t row = 3 * steps + 7, line = 3 * width + 1;
      for (const std::int64_t step : {1, -1, 2, -3}) {  // along the memory
        result.push_back(strided(width, row, valid, step, steps));
        result.push_back(strided(width, -row, valid, step, steps));
        result.push_back(listed(width, row, 11, valid, step, steps));
      }
      for (const std::int64_t stride : {1, -1, 3}) {  // across it
        result.push_back(strided(width, stride, valid, line, steps));
        result.push_back(strided(width, stride, valid, -line, steps));
        result.push_back(listed(width, stride, 0, valid, line, steps));
        result.push_back(listed(width, stride, line * (steps + 1), valid, line, steps));
      }
    }
  return result;
}

/// Packs that read elements more than once, as an input may.
std::vector<pack> overlapping_packs(int width) {
  std::vector<pack> result;
  for (const int valid : {1, width - 1, width})
    for (const std::int64_t steps : {0, 1, width, 5 * width + 3})
      for (const std::int64_t stride : {0, 1, 2, 1000})
        for (const std::int64_t step : {0, 1, -1, 2}) {
          result.push_back(strided(width, stride, valid, step, steps));
          result.push_back(listed(width, stride, 0, valid, step, steps));
        }
  return result;
}

template <class T> T draw(std::mt19937_64& random) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random() >> (random() % (8 * sizeof(T))));
  } else {
    constexpr float specials[] = {0.0F,     -0.0F,    INFINITY, -INFINITY, NAN,
                                  65504.0F, 65520.0F, 0x1p-24F, 1e-40F};
    if (random() % 16 == 0) return T(specials[random() % std::size(specials)]);
    const double fraction = static_cast<double>(static_cast<std::int64_t>(random())) * 0x1p-63;
    return T(std::ldexp(fraction, static_cast<int>(random() % 40) - 28));
  }
}

template <class T> bool same(T left, T right) {
  if constexpr (std::is_floating_point_v<T>) {
    return (std::isnan(left) && std::isnan(right)) ||
           (left == right && std::signbit(left) == std::signbit(right));
  } else if constexpr (std::is_integral_v<T>) {
    return left == right;
  } else {
    return same(static_cast<float>(left), static_cast<float>(right));
  }
}

template <class C, int W, class T> int gather_failures(const pack& each, std::mt19937_64& random) {
  const auto [low, count] = each.range();
  std::vector<T> memory(static_cast<std::size_t>(count));  // exact, so that the sanitizer sees a stray read
  for (T& element : memory) element = draw<T>(random);
  const T* const source = memory.data() - low;
  const int pitch = W + 5;
  const C untouched = 12345;
  std::vector<C> tile(static_cast<std::size_t>(each.steps * pitch), untouched);
  gather_pack<C, W>(tile.data(), pitch, source, dtype_of<T>, each.lanes(), each.step, each.steps);
  int failures = 0;
  for (std::int64_t t = 0; t < each.steps; ++t)
    for (int l = 0; l < pitch; ++l) {
      const std::int64_t offset = l < each.valid ? each.offsets[static_cast<std::size_t>(l)] : 0;
      const C expected = l < W ? static_cast<C>(source[offset + t * each.step]) : untouched;
      failures += !same(tile[static_cast<std::size_t>(t * pitch + l)], expected);
    }
  return failures;
}

template <class C, int W, class T>
int scatter_failures(const pack& each, std::mt19937_64& random, bool streaming) {
  const auto [low, count] = each.range();
  const T untouched = T(77.0F);
  // Aligned to a line, since only whole lines stream.
  const auto size = static_cast<std::size_t>(count);
  std::vector<T> memory(size + 64 / sizeof(T), untouched);
  void* aligned = memory.data();
  std::size_t space = memory.size() * sizeof(T);
  std::align(64, size * sizeof(T), aligned, space);
  T* const target = static_cast<T*>(aligned) - low;
  std::vector<C> tile(static_cast<std::size_t>(each.steps * W));
  for (C& element : tile) element = draw<C>(random);
  std::vector<T> expected = memory;
  T* const expected_target = expected.data() + (target - memory.data());
  each.for_each([&](int l, std::int64_t t, std::int64_t offset) {
    expected_target[offset] = static_cast<T>(tile[static_cast<std::size_t>(t * W + l)]);
  });
  scatter_pack<C, W>(tile.data(), W, target, dtype_of<T>, each.lanes(), each.step, each.steps, streaming);
  int failures = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) failures += !same(memory[i], expected[i]);
  return failures;
}

void check_all(const std::vector<pack>& packs, auto failures_of) {
  for (const dtype type : every_dtype) {
    visit_dtype(type, [&]<class T>(std::type_identity<T> tag) {
      for (const pack& each : packs) {
        CAPTURE(name_of(type), each.offsets, each.listed, each.valid, each.step, each.steps);
        const int failures = failures_of(tag, each);
        if (failures != 0) REQUIRE(failures == 0);  // one assertion a failure: there are thousands of packs
      }
    });
  }
}

template <class C, int Width> struct pack_of {
  using compute = C;
  static constexpr int width = Width;
};

constexpr int floats = static_cast<int>(xsimd::batch<float>::size);
constexpr int doubles = static_cast<int>(xsimd::batch<double>::size);
using full_float = pack_of<float, floats>;
using half_float = pack_of<float, floats / 2>;
using full_double = pack_of<double, doubles>;

}  // namespace

TEMPLATE_TEST_CASE("a gathered pack is what a plain loop reads", "[exec][staging]", full_float, half_float,
                   full_double) {
  using C = typename TestType::compute;
  constexpr int W = TestType::width;
  std::mt19937_64 random(5);
  const auto failures_of = [&]<class T>(std::type_identity<T>, const pack& each) {
    return gather_failures<C, W, T>(each, random);
  };
  check_all(disjoint_packs(W), failures_of);
  check_all(overlapping_packs(W), failures_of);
  SUCCEED();
}

TEMPLATE_TEST_CASE("a scattered pack is what a plain loop writes", "[exec][staging]", full_float, half_float,
                   full_double) {
  using C = typename TestType::compute;
  constexpr int W = TestType::width;
  std::mt19937_64 random(6);
  for (const bool streaming : {false, true})
    check_all(disjoint_packs(W), [&]<class T>(std::type_identity<T>, const pack& each) {
      if constexpr (std::is_integral_v<T>)
        return 0;
      else
        return scatter_failures<C, W, T>(each, random, streaming);
    });
  SUCCEED();
}

TEMPLATE_TEST_CASE("whole aligned lines stream", "[exec][staging]", full_float, full_double) {
  using C = typename TestType::compute;
  constexpr int W = TestType::width;
  std::mt19937_64 random(7);
  std::vector<pack> packs;
  for (const int valid : {W - 1, W})
    for (const std::int64_t step : {1, -1}) packs.push_back(strided(W, 256, valid, step, 128));
  for (const std::int64_t step : {64, -64}) packs.push_back(strided(W, 1, W, step, 40));
  check_all(packs, [&]<class T>(std::type_identity<T>, const pack& each) {
    if constexpr (std::is_integral_v<T>)
      return 0;
    else
      return scatter_failures<C, W, T>(each, random, true);
  });
  SUCCEED();
}

TEST_CASE("a double rounds once on its way to a half", "[exec][staging]") {
  const double between = 1 + 0x1p-11 + 0x1p-40;  // float would round it to a tie, and the tie to 1
  std::vector<double> tile(static_cast<std::size_t>(doubles), between);
  std::vector<float16> out(tile.size());
  scatter_pack<double, doubles>(tile.data(), doubles, out.data(), dtype::float16, {1, nullptr, doubles},
                                doubles, 1);
  CHECK(out.front().bits == 0x3c01);
  CHECK(out.back().bits == 0x3c01);
}

TEST_CASE("integers are read but not written", "[exec][staging]") {
  float tile[floats] = {};
  std::vector<std::int32_t> out(static_cast<std::size_t>(floats));
  CHECK_THROWS_AS(
      (scatter_pack<float, floats>(tile, floats, out.data(), dtype::int32, {1, nullptr, floats}, floats, 1)),
      dtype_error);
}
