#pragma once

#include <bit>
#include <cstdint>

namespace scandsl {

namespace detail {

/// Double to float by rounding to odd (Boldo & Melquiond 2008): the float keeps a trace of every bit it lost,
/// so a second rounding to at most 22 bits gives what one rounding of the double would have given.
constexpr float round_to_odd(double value) {
  constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;
  constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 52;
  constexpr std::uint64_t largest = std::bit_cast<std::uint64_t>(0x1.fffffep+127);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t magnitude = bits & ~sign_bit;
  // The largest float is odd, so it stands for every finite double beyond it; the cast never overflows. A NaN
  // needs no case: the cast makes it quiet, and the steps below change its payload at most.
  const std::uint64_t clamped = magnitude > largest && magnitude < infinity ? largest : magnitude;
  const float nearest = static_cast<float>(std::bit_cast<double>(clamped | (bits & sign_bit)));
  const std::uint64_t back = std::bit_cast<std::uint64_t>(static_cast<double>(nearest)) & ~sign_bit;
  const auto rounded = std::bit_cast<std::uint32_t>(nearest);
  const std::uint32_t towards_zero = rounded - static_cast<std::uint32_t>(back > clamped);
  return std::bit_cast<float>(back == clamped ? rounded : towards_zero | 1U);
}

/// Float bits to bfloat16 bits, to nearest even; a NaN stays a NaN and becomes quiet.
constexpr std::uint16_t to_bfloat16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet = (bits >> 16) | 0x40U;
  return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
}

/// Float to IEEE binary16 bits, to nearest even; a NaN stays a NaN and becomes quiet. Both ranges are
/// computed and then selected, which compilers vectorise (after F. Giesen, float_to_half_fast3_rtne).
constexpr std::uint16_t to_float16_bits(float value) {
  constexpr std::uint32_t infinity = 0x7f800000U;
  constexpr std::uint32_t overflow = (127U + 16U) << 23;              // 2^16: rounds to infinity
  constexpr std::uint32_t smallest_normal = (127U - 14U) << 23;       // 2^-14
  constexpr std::uint32_t half_ulp_shift = (127U - 14U + 13U) << 23;  // 0.5: its ulp is the subnormals' 2^-24
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffU;

  const std::uint32_t small = magnitude < smallest_normal ? magnitude : 0U;
  const float shifted = std::bit_cast<float>(small) + std::bit_cast<float>(half_ulp_shift);
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - half_ulp_shift;
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  const std::uint32_t nan = 0x7e00U | ((magnitude >> 13) & 0x3ffU);

  const std::uint32_t finite = magnitude < smallest_normal ? subnormal : normal;
  const std::uint32_t special = magnitude > infinity ? nan : 0x7c00U;
  const std::uint32_t result = magnitude < overflow ? finite : special;
  return static_cast<std::uint16_t>(result | ((bits >> 16) & 0x8000U));
}

/// IEEE binary16 bits to float: exact; a NaN becomes quiet, as the hardware's conversion makes it.
constexpr float from_float16_bits(std::uint16_t half) {
  constexpr std::uint32_t infinity = 0x7c00U << 13;
  constexpr std::uint32_t smallest_normal = 0x0400U << 13;
  constexpr std::uint32_t rebias = 112U << 23;
  const std::uint32_t bits = half;
  const std::uint32_t magnitude = (bits & 0x7fffU) << 13;
  const std::uint32_t normal = magnitude + rebias;
  const float shifted = std::bit_cast<float>((magnitude & (smallest_normal - 1U)) + rebias + smallest_normal);
  const auto subnormal = std::bit_cast<std::uint32_t>(shifted - 0x1p-14F);
  const std::uint32_t special = (magnitude + 2U * rebias) | (magnitude > infinity ? 0x00400000U : 0U);
  const std::uint32_t finite = magnitude < smallest_normal ? subnormal : normal;
  const std::uint32_t result = magnitude < infinity ? finite : special;
  return std::bit_cast<float>(result | ((bits & 0x8000U) << 16));
}

}  // namespace detail

/// The upper half of a float: 8 bits of exponent, 8 bits of precision. A storage type; compute in float.
struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  /// Rounds to nearest even.
  constexpr explicit bfloat16(float value) : bits(detail::to_bfloat16_bits(value)) {}
  /// Rounds once, to nearest even.
  constexpr explicit bfloat16(double value) : bfloat16(detail::round_to_odd(value)) {}
  /// The number whose bit pattern is `pattern`.
  static constexpr bfloat16 from_bits(std::uint16_t pattern) { return std::bit_cast<bfloat16>(pattern); }

  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  constexpr explicit operator double() const { return static_cast<float>(*this); }
};

/// IEEE 754 binary16: 5 bits of exponent, 11 bits of precision. A storage type; compute in float.
struct float16 {
  std::uint16_t bits;

  float16() = default;
  /// Rounds to nearest even.
  constexpr explicit float16(float value) : bits(detail::to_float16_bits(value)) {}
  /// Rounds once, to nearest even.
  constexpr explicit float16(double value) : float16(detail::round_to_odd(value)) {}
  /// The number whose bit pattern is `pattern`.
  static constexpr float16 from_bits(std::uint16_t pattern) { return std::bit_cast<float16>(pattern); }

  constexpr explicit operator float() const { return detail::from_float16_bits(bits); }
  constexpr explicit operator double() const { return static_cast<float>(*this); }
};

}  // namespace scandsl
