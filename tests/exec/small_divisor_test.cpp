#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "scandsl/exec/cuda/arguments.hpp"
#include "support/catch.hpp"

using namespace scandsl;
using cuda_detail::small_divisor;

namespace {

constexpr std::int64_t most = std::int64_t{1} << 31;

/// Numbers of all sizes, with those on both sides of each power of two.
std::vector<std::int64_t> numbers(std::int64_t least, std::int64_t beyond, std::mt19937_64& random) {
  std::vector<std::int64_t> all;
  const auto add = [&](std::int64_t n) {
    if (n >= least && n < beyond) all.push_back(n);
  };
  for (int bit = 0; bit <= 31; ++bit)
    for (std::int64_t near = -2; near <= 2; ++near) add((std::int64_t{1} << bit) + near);
  for (int i = 0; i < 400; ++i) add(static_cast<std::int64_t>(random() >> (33 + random() % 31)));
  add(0);
  return all;
}

}  // namespace

TEST_CASE("a divisor known at launch gives quotients by a product", "[exec][cuda]") {
  std::mt19937_64 random(20);
  const auto divisors = numbers(1, most + 1, random), dividends = numbers(0, most, random);
  int wrong = 0;
  for (const std::int64_t d : divisors) {
    const small_divisor by = small_divisor::of(d);
    for (const std::int64_t n : dividends) wrong += by.quotient(static_cast<std::uint32_t>(n)) != n / d;
    // The greatest remainders are where a multiplier too large shows.
    for (std::int64_t q = 1; q < 40; ++q)
      if (q * d - 1 < most) wrong += by.quotient(static_cast<std::uint32_t>(q * d - 1)) != q - 1;
    if (d < most)
      wrong += by.quotient(static_cast<std::uint32_t>((most - 1) / d * d - 1)) != (most - 1) / d - 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("quotients of negative numbers are rounded down, those by 0 are 0", "[exec][cuda]") {
  std::mt19937_64 random(21);
  int wrong = 0;
  for (const std::int64_t d : numbers(1, most, random)) {
    const small_divisor by = small_divisor::of(d);
    for (const std::int64_t n : numbers(0, most, random)) {
      const auto x = static_cast<std::int32_t>(-n - 1);
      wrong +=
          by.floor_quotient(x) != arithmetic<std::int32_t>::floor_divide(x, static_cast<std::int32_t>(d));
      wrong += by.floor_quotient(static_cast<std::int32_t>(n)) != n / d;
    }
  }
  CHECK(wrong == 0);
  for (const std::int32_t x : {std::numeric_limits<std::int32_t>::min(), -1, 0, 1, 77})
    CHECK(small_divisor::of(0).floor_quotient(x) == arithmetic<std::int32_t>::floor_divide(x, 0));
}
