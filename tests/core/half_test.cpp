#include "scandsl/core/half.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <type_traits>

#include "support/catch.hpp"

using scandsl::bfloat16;
using scandsl::float16;

namespace {

/// A binary format, for the slow reference.
struct format {
  int precision;         // bits of the significand, the hidden one included
  int lowest_exponent;   // of the smallest normal number 2^e
  int highest_exponent;  // of the largest binade

  /// The bit pattern nearest to `value`, ties to even: scales to an integer and lets nearbyint round, so it
  /// shares no step with the conversion under test. NaN gives one quiet pattern.
  std::uint16_t encode(double value) const {
    const int fraction_bits = precision - 1;
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const auto infinity =
        static_cast<std::uint16_t>((highest_exponent - lowest_exponent + 2) << fraction_bits);
    if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | 1 << (fraction_bits - 1));
    const double magnitude = std::fabs(value);
    if (magnitude == 0) return sign;
    if (std::isinf(magnitude)) return sign | infinity;
    const int exponent = std::max(std::ilogb(magnitude), lowest_exponent);
    // In units of the last place; 2^precision carries into the exponent field by itself.
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent)));
    if (exponent > highest_exponent) return sign | infinity;
    const int pattern = ((exponent - lowest_exponent) << fraction_bits) + units;
    return static_cast<std::uint16_t>(sign | pattern);
  }

  double decode(std::uint16_t pattern) const {
    const int fraction_bits = precision - 1;
    const int magnitude = pattern & 0x7fff;
    const double sign = (pattern & 0x8000) != 0 ? -1.0 : 1.0;
    const int field = magnitude >> fraction_bits;
    const int fraction = magnitude & ((1 << fraction_bits) - 1);
    if (field == highest_exponent - lowest_exponent + 2)
      return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::quiet_NaN();
    const int significand = field == 0 ? fraction : fraction + (1 << fraction_bits);
    return sign * std::ldexp(significand, std::max(field, 1) - 1 + lowest_exponent - fraction_bits);
  }
};

template <class Half> constexpr format format_of = {11, -14, 15};
template <> constexpr format format_of<bfloat16> = {8, -126, 127};

template <class Half> bool is_quiet_nan(Half value) {
  const int fraction_bits = format_of<Half>.precision - 1;
  const int infinity = format_of<Half>.encode(std::numeric_limits<double>::infinity());
  return (value.bits & 0x7fff) > infinity && ((value.bits >> (fraction_bits - 1)) & 1) != 0;
}

template <class Half, class Real> bool agrees(Real value) {
  const Half converted(value);
  if (std::isnan(value)) return is_quiet_nan(converted);
  return converted.bits == format_of<Half>.encode(value);
}

}  // namespace

TEMPLATE_TEST_CASE("halves are 16 bits of plain data", "[core][half]", bfloat16, float16) {
  STATIC_REQUIRE(sizeof(TestType) == 2);
  STATIC_REQUIRE(std::is_trivially_copyable_v<TestType>);
  STATIC_REQUIRE(std::is_trivially_default_constructible_v<TestType>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<float, TestType>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<TestType, float>);
}

TEST_CASE("conversions are constant expressions", "[core][half]") {
  STATIC_REQUIRE(bfloat16(1.0F).bits == 0x3f80);
  STATIC_REQUIRE(float16(1.0F).bits == 0x3c00);
  STATIC_REQUIRE(float16(1e300).bits == 0x7c00);
  STATIC_REQUIRE(float16(0x1p-24F).bits == 0x0001);
  STATIC_REQUIRE(float16(std::numeric_limits<float>::quiet_NaN()).bits == 0x7e00);
  STATIC_REQUIRE(static_cast<float>(float16::from_bits(0x0001)) == 0x1p-24F);
  STATIC_REQUIRE(static_cast<double>(bfloat16::from_bits(0xc000)) == -2.0);
}

TEMPLATE_TEST_CASE("every bit pattern survives the way through float and double", "[core][half]", bfloat16,
                   float16) {
  int failures = 0;
  for (int pattern = 0; pattern < 0x10000; ++pattern) {
    const auto half = TestType::from_bits(static_cast<std::uint16_t>(pattern));
    const auto single = static_cast<float>(half);
    const auto twofold = static_cast<double>(half);
    const double expected = format_of<TestType>.decode(half.bits);
    if (std::isnan(expected)) {
      failures += !std::isnan(single) || !std::isnan(twofold) || !is_quiet_nan(TestType(single)) ||
                  !is_quiet_nan(TestType(twofold));
    } else {
      failures += static_cast<double>(single) != expected || twofold != expected ||
                  TestType(single).bits != half.bits || TestType(twofold).bits != half.bits;
    }
  }
  REQUIRE(failures == 0);
}

TEMPLATE_TEST_CASE("float rounds to the nearest half, ties to even", "[core][half]", bfloat16, float16) {
  std::mt19937 random(1);
  int failures = 0;
  for (int i = 0; i < 1000000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    failures += !agrees<TestType>(std::bit_cast<float>(bits));
    // Every other draw falls into the range of float16, where uniform bits hardly come.
    const auto moderate = std::ldexp(static_cast<float>(random()) * 0x1p-32F, static_cast<int>(i % 48) - 28);
    failures += !agrees<TestType>(moderate) + !agrees<TestType>(-moderate);
  }
  REQUIRE(failures == 0);
}

TEMPLATE_TEST_CASE("the neighbours of every half and of every midpoint round right", "[core][half]", bfloat16,
                   float16) {
  int failures = 0;
  for (int pattern = 0; pattern < 0x7fff; ++pattern) {
    const double low = format_of<TestType>.decode(static_cast<std::uint16_t>(pattern));
    const double high = format_of<TestType>.decode(static_cast<std::uint16_t>(pattern + 1));
    if (!std::isfinite(low)) continue;
    const double beyond = std::ldexp(1.0, format_of<TestType>.highest_exponent + 1);
    const double middle = (low + (std::isfinite(high) ? high : beyond)) / 2;
    const auto at = static_cast<float>(middle);  // exact: one bit more than a half has
    for (const float value :
         {static_cast<float>(low), at, std::nextafter(at, 0.0F), std::nextafter(at, INFINITY)})
      failures += !agrees<TestType>(value) + !agrees<TestType>(-value);
    for (const double value : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, double{INFINITY})})
      failures += !agrees<TestType>(value) + !agrees<TestType>(-value);
  }
  REQUIRE(failures == 0);
}

TEMPLATE_TEST_CASE("double rounds once", "[core][half]", bfloat16, float16) {
  // Just above the midpoint of 1 and its successor: float rounds it onto the midpoint, which goes down to 1.
  const int precision = format_of<TestType>.precision;
  const double twice = 1 + std::ldexp(1.0, -precision) + std::ldexp(1.0, -40);
  REQUIRE(TestType(static_cast<float>(twice)).bits == TestType(1.0F).bits);
  REQUIRE(TestType(twice).bits == TestType(1.0F).bits + 1);

  std::mt19937_64 random(2);
  int failures = 0;
  for (int i = 0; i < 1000000; ++i) {
    failures += !agrees<TestType>(std::bit_cast<double>(static_cast<std::uint64_t>(random())));
    const double moderate = std::ldexp(static_cast<double>(random()), i % 320 - 64 - 160);
    failures += !agrees<TestType>(moderate) + !agrees<TestType>(-moderate);
  }
  REQUIRE(failures == 0);
}

TEMPLATE_TEST_CASE("the edges of float and double convert right", "[core][half]", bfloat16, float16) {
  using single = std::numeric_limits<float>;
  using twofold = std::numeric_limits<double>;
  for (const float value :
       {0.0F, single::infinity(), single::quiet_NaN(), single::signaling_NaN(), single::max(), single::min(),
        single::denorm_min(), 65504.0F, 65519.996F, 65520.0F, 65536.0F, 0x1p-24F, 0x1p-25F, 0x1.000002p-25F,
        0x1.8p-25F, 0x1.ffep-15F, 0x1p-14F}) {
    CAPTURE(value);
    CHECK(agrees<TestType>(value));
    CHECK(agrees<TestType>(-value));
  }
  for (const double value :
       {twofold::infinity(), twofold::quiet_NaN(), twofold::signaling_NaN(), twofold::max(), twofold::min(),
        twofold::denorm_min(), 0x1.fffffep+127, 0x1.ffffffp+127, 0x1p-149, 0x1p-150, 0x1.0000000000001p-25,
        0x1.0000000000001p-134}) {
    CAPTURE(value);
    CHECK(agrees<TestType>(value));
    CHECK(agrees<TestType>(-value));
  }
}
