#include "scandsl/core/half_turns.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "scandsl/core/arithmetic.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

/// Sine and cosine of the exact product: fma gives what the product's rounding leaves.
struct reference {
  long double sine, cosine;

  reference(double position, double theta) {
    const auto p = static_cast<long double>(position), t = static_cast<long double>(theta);
    const long double product = p * t, rest = std::fma(p, t, -product);
    sine = std::sin(product) * std::cos(rest) + std::cos(product) * std::sin(rest);
    cosine = std::cos(product) * std::cos(rest) - std::sin(product) * std::sin(rest);
  }
};

template <class T> T sine(T position, T theta) {
  return arithmetic<T>::sinpi(half_turns_of_product(position, theta));
}
template <class T> T cosine(T position, T theta) {
  return arithmetic<T>::cospi(half_turns_of_product(position, theta));
}
template <class T> T angle(T position, T theta) {
  return arithmetic<T>::angle(half_turns_of_product(position, theta));
}

struct errors {
  double functions = 0.0, angle = 0.0;
};

template <class T> void add_error(errors& worst, T position, T theta) {
  const reference exact(static_cast<double>(position), static_cast<double>(theta));
  const auto off = [](T got, long double right) {
    return static_cast<double>(std::fabs(static_cast<long double>(got) - right));
  };
  worst.functions = std::max(
      {worst.functions, off(sine(position, theta), exact.sine), off(cosine(position, theta), exact.cosine)});
  const T reached = angle(position, theta);
  const auto wide = static_cast<long double>(reached);
  const long double turned = std::sin(wide) * exact.cosine - std::cos(wide) * exact.sine;  // sin of the error
  const bool same_half = std::cos(wide) * exact.cosine + std::sin(wide) * exact.sine > 0;
  const bool in_range = std::fabs(wide) <= std::acos(-1.0L);
  worst.angle = std::max(worst.angle, same_half && in_range ? static_cast<double>(std::fabs(turned)) : 4.0);
}

/// Positions of every size up to `most`, most of them near it, and frequencies of every size up to 1.
template <class T> errors worst_error(double most, double least_theta) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> unit(0, 1);
  errors worst;
  for (int i = 0; i < 300000; ++i) {
    double position = std::floor(unit(random) * most);
    if (i % 3 == 0) position = std::floor(std::exp2(unit(random) * std::log2(most)));
    if (i % 7 == 0) position = most - static_cast<double>(i);
    if (i % 5 == 0) position = -position;
    double theta = i % 2 == 0 ? unit(random) : std::pow(least_theta, unit(random));
    if (i % 11 == 0) theta = 1;
    if (i % 4 == 0) theta = -theta;
    add_error(worst, static_cast<T>(position), static_cast<T>(theta));
  }
  return worst;
}

}  // namespace

TEST_CASE("sine and cosine of an exact product, up to position 2^24", "[core][half_turns]") {
  const errors single = worst_error<float>(0x1p24, 1e-12), twice = worst_error<double>(0x1p24, 1e-12);
  CHECK(single.functions < 4e-7);
  CHECK(single.angle < 5e-7);
  CHECK(twice.functions < 7e-16);
  CHECK(twice.angle < 9e-16);
}

TEST_CASE("beyond 2^24 the product of floats is reduced in double", "[core][half_turns]") {
  const errors single = worst_error<float>(0x1p31, 1e-12), far = worst_error<float>(0x1p50, 1e-12),
               twice = worst_error<double>(0x1p52, 1e-12);
  CHECK(single.functions < 4e-7);
  CHECK(single.angle < 5e-7);
  CHECK(far.functions < 4e-7);
  CHECK(twice.functions < 7e-16);
  CHECK(twice.angle < 9e-16);
}

TEST_CASE("positions one by one, with frequencies at the ends of their range", "[core][half_turns]") {
  constexpr float least = std::numeric_limits<float>::denorm_min();
  errors worst;
  for (const float theta : {1.0F, -1.0F, 0.99999994F, 0.75F, 1e-4F, 1e-30F, 0x1.8p-130F, least, 0.0F, -0.0F})
    for (int i = 0; i <= 70000; ++i) {
      add_error(worst, static_cast<float>(i), theta);
      add_error(worst, static_cast<float>((1 << 24) - i), theta);
    }
  CHECK(worst.functions < 4e-7);
  CHECK(worst.angle < 5e-7);
}

TEST_CASE("small angles keep their digits", "[core][half_turns]") {
  std::mt19937 random(8);
  std::uniform_real_distribution<float> exponent(-30.0F, 0.0F);
  double worst = 0;
  for (int i = 0; i < 100000; ++i) {
    const float theta = std::exp2(exponent(random)) / 1000.0F, position = static_cast<float>(i % 1000);
    const double exact = std::sin(static_cast<double>(position) * static_cast<double>(theta));
    if (exact == 0) continue;
    worst = std::max(worst, std::fabs(static_cast<double>(sine(position, theta)) / exact - 1));
  }
  CHECK(worst < 3e-7);
}

TEST_CASE("zeros, infinities, NaN, and what is too long even for double", "[core][half_turns]") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(sine(0.0F, 1.0F) == 0.0F);
  CHECK(cosine(0.0F, 1.0F) == 1.0F);
  CHECK(sine(5.0, 0.0) == 0.0);
  CHECK(cosine(0x1p24F, 0.0F) == 1.0F);
  CHECK(angle(3.0F, -0.0F) == 0.0F);
  for (const auto& [position, theta] :
       {std::pair{inf, 1.0F}, {1.0F, -inf}, {0.0F, inf}, {nan, 1.0F}, {1.0F, nan}, {1e30F, 1.0F}})
    CHECK((std::isnan(sine(position, theta)) && std::isnan(cosine(position, theta)) &&
           std::isnan(angle(position, theta))));
}
