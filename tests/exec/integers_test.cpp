#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>

#include "scandsl/exec/cpu/simd.hpp"
#include "scandsl/expr/primitives.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

/// Numerators and denominators of up to `bits` bits each, multiples and their neighbours among them.
template <class T> std::array<T, 2> draw(std::mt19937_64& random, int bits) {
  const auto of_bits = [&](int count) {
    return static_cast<T>(static_cast<std::int64_t>(random()) >> (64 - count));
  };
  const T denominator = of_bits(1 + static_cast<int>(random() % static_cast<unsigned>(bits)));
  if (random() % 3 != 0) return {of_bits(bits), denominator};
  using wrapping = std::make_unsigned_t<T>;
  const auto multiple =
      static_cast<wrapping>(static_cast<wrapping>(denominator) * static_cast<wrapping>(random() % 100));
  return {static_cast<T>(multiple + static_cast<wrapping>(random() % 3) - 1U), denominator};
}

template <class T> void check_quotients(std::uint64_t seed) {
  using pack = xsimd::batch<T>;
  std::mt19937_64 random(seed);
  for (int bits = 1; bits <= std::numeric_limits<T>::digits + 1; ++bits)
    for (int times = 0; times < 300; ++times) {
      T x[pack::size], y[pack::size], quotient[pack::size], rest[pack::size];
      const bool positive = times % 2 == 0;  // for these there is a way without divisions one by one
      for (std::size_t i = 0; i < pack::size; ++i) {
        const auto [numerator, denominator] = draw<T>(random, bits);
        x[i] = numerator;
        y[i] = positive && denominator <= 0 ? T(1 + static_cast<T>(random() % 100)) : denominator;
      }
      const pack xs = pack::load_unaligned(x), ys = pack::load_unaligned(y);
      primitive::floor_divide_op::value(xs, ys).store_unaligned(quotient);
      primitive::modulo_op::value(xs, ys).store_unaligned(rest);
      for (std::size_t i = 0; i < pack::size; ++i) {
        CAPTURE(x[i], y[i]);
        REQUIRE(quotient[i] == arithmetic<T>::floor_divide(x[i], y[i]));
        REQUIRE(rest[i] == arithmetic<T>::modulo(x[i], y[i]));
        if (y[i] > 0) {
          REQUIRE(rest[i] >= 0);
          REQUIRE(rest[i] < y[i]);
        }
      }
    }
}

}  // namespace

TEST_CASE("quotients of packs of integers are rounded down, as those of integers are", "[exec][integers]") {
  check_quotients<std::int32_t>(1);
  check_quotients<std::int64_t>(2);
}
