#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "scandsl/core/config.hpp"

/// Angles in half turns (units of pi), in which whole turns are whole numbers: sine and cosine of an exact
/// product position * theta. Everything is written against arithmetic<V>, for a scalar type T and numbers V
/// made of it, without tables. No product here is an operand of a sum, other than within fma, so that a
/// compiler cannot contract what follows into something else.
namespace scandsl {

template <class V> struct arithmetic;

template <class T> struct half_turn;
template <> struct half_turn<float> {
  static constexpr float inverse_pi = 0x1.45f306p-2F, inverse_pi_rest = 0x1.b9391p-27F;
  static constexpr float pi = 0x1.921fb6p+1F, pi_rest = -0x1.777a5cp-24F, largest_angle = 0x1.921fb4p+1F;
  /// What is added to these is rounded to a whole number, and to an even one, if it is not beyond the limit.
  static constexpr float to_whole = 0x1.8p+23F, to_even = 0x1.8p+24F, limit = 0x1p+23F;
};
template <> struct half_turn<double> {
  static constexpr double inverse_pi = 0x1.45f306dc9c883p-2, inverse_pi_rest = -0x1.6b01ec5417056p-56;
  static constexpr double pi = 0x1.921fb54442d18p+1, pi_rest = 0x1.1a62633145c07p-53, largest_angle = pi;
  static constexpr double to_whole = 0x1.8p+52, to_even = 0x1.8p+53, limit = 0x1p+52;
};

template <class V, class T> SCANDSL_HD V polynomial(V, T constant) { return V(constant); }
template <class V, class T, class... Rest> SCANDSL_HD V polynomial(V x, T constant, Rest... rest) {
  return arithmetic<V>::fma(x, polynomial(x, rest...), V(constant));
}

/// sin(pi x) / x and cos(pi x) for |x| <= 1/2 as polynomials of x^2: minimax fits, off by less than 5e-9 in
/// float and 1e-18 in double before they are rounded.
template <class V> SCANDSL_HD V sine_quotient(V square, float) {
  return polynomial(square, 0x1.921fb6p+1F, -0x1.4abbc2p+2F, 0x1.46689cp+1F, -0x1.32499cp-1F, 0x1.3d763p-4F);
}
template <class V> SCANDSL_HD V sine_quotient(V square, double) {
  return polynomial(square, 0x1.921fb54442d18p+1, -0x1.4abbce625be52p+2, 0x1.466bc6775aa7dp+1,
                    -0x1.32d2cce627c9ep-1, 0x1.50783485523f5p-4, -0x1.e3074dfb5bbd1p-8, 0x1.e8f3677c38bfep-12,
                    -0x1.6f7ad23c76bf3p-16, 0x1.9d46b0979c8d3p-21);
}
template <class V> SCANDSL_HD V cosine_of_square(V square, float) {
  return polynomial(square, 1.0F, -0x1.3bd3ccp+2F, 0x1.03c1eap+2F, -0x1.55d15ap+0F, 0x1.e145a4p-3F,
                    -0x1.912c58p-6F);
}
template <class V> SCANDSL_HD V cosine_of_square(V square, double) {
  return polynomial(square, 1.0, -0x1.3bd3cc9be45dep+2, 0x1.03c1f081b5ac3p+2, -0x1.55d3c7e3cbfadp+0,
                    0x1.e1f5068916b37p-3, -0x1.a6d1f29f53a40p-6, 0x1.f9d3888561d0ep-10,
                    -0x1.b6e1aa8e66d8dp-14, 0x1.20a10526fd1a8p-18, -0x1.20db72731d80bp-23);
}

/// sin(pi x) and cos(pi x) for |x| < 5/2.
template <class T, class V> SCANDSL_HD V sine_of_half_turns(V x) {
  using m = arithmetic<V>;
  const V whole = (x + V(half_turn<T>::to_whole)) - V(half_turn<T>::to_whole), rest = x - whole;
  const V sine = rest * sine_quotient(rest * rest, T());
  return m::select(m::abs(whole) == V(T(1)), -sine, sine);
}
template <class T, class V> SCANDSL_HD V cosine_of_half_turns(V x) {
  using m = arithmetic<V>;
  const V whole = (x + V(half_turn<T>::to_whole)) - V(half_turn<T>::to_whole), rest = x - whole;
  const V cosine = cosine_of_square(rest * rest, T());
  return m::select(m::abs(whole) == V(T(1)), -cosine, cosine);
}

/// x without its whole turns, for |x| <= limit: in [-1, 1]. Exact.
template <class T, class V> SCANDSL_HD V without_turns(V x) {
  return x - ((x + V(half_turn<T>::to_even)) - V(half_turn<T>::to_even));
}

/// position * theta in half turns, less an even number of them; where `fits` is not true it has no meaning.
template <class V> struct reduced_product {
  V half_turns;  ///< in [-1.9, 1.9]
  typename arithmetic<V>::truth fits;
};

/// theta / pi is taken as a sum of two numbers, so its relative error is 2^-48 (float), and fma subtracts the
/// whole turns from the exact product: Cody and Waite's reduction with a period of two, an exact number.
/// Off by at most 1.2e-7 + 2^-48 |position theta| half turns in float, 2.2e-16 + 2^-105 |...| in double.
template <class T, class V> SCANDSL_HD reduced_product<V> reduce_product(V position, V theta) {
  using m = arithmetic<V>;
  using c = half_turn<T>;
  const V frequency = theta * V(c::inverse_pi);
  const V frequency_rest = m::fma(theta, V(c::inverse_pi_rest), m::fma(theta, V(c::inverse_pi), -frequency));
  const V turns = m::fma(position, frequency, V(c::to_even)) - V(c::to_even);
  return {m::fma(position, frequency_rest, m::fma(position, frequency, -turns)), m::abs(turns) < V(c::limit)};
}

/// Positions up to here are exact as numbers of type T.
template <class T>
inline constexpr std::int64_t far_position = std::int64_t{1} << std::numeric_limits<T>::digits;

/// The same for scalars over a wider range. What is too long or too far for float is left to double, in which
/// the product of two floats is exact; NaN beyond 2^52 half turns.
template <class T, class P> SCANDSL_HD T half_turns_of_product(P position, T theta) {
  const reduced_product<T> reduced = reduce_product<T>(static_cast<T>(position), theta);
  bool fits = reduced.fits;
  if constexpr (sizeof(T) < sizeof(double) && std::is_integral_v<P>)
    fits = fits && position <= far_position<T> && position >= -far_position<T>;
  if (fits) [[likely]]
    return reduced.half_turns;
  if constexpr (sizeof(T) < sizeof(double))
    return static_cast<T>(half_turns_of_product(static_cast<double>(position), static_cast<double>(theta)));
  else
    return std::numeric_limits<T>::quiet_NaN();
}

/// x half turns, x as of a reduced product, as an angle in [-pi, pi].
template <class T, class V> SCANDSL_HD V angle_of_half_turns(V x) {
  using m = arithmetic<V>;
  using c = half_turn<T>;
  const V rest = without_turns<T>(x), largest = V(c::largest_angle);
  const V angle = m::fma(rest, V(c::pi), rest * V(c::pi_rest));  // rounded, it may lie beyond pi
  const V below = m::select(angle > largest, largest, angle);
  return m::select(below < -largest, -largest, below);
}

}  // namespace scandsl
