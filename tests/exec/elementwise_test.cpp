#include <cmath>
#include <limits>

#include "exec/executed.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"

using namespace exec_test;

namespace {

constexpr double nan_ = std::numeric_limits<double>::quiet_NaN();

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"z"> z;
constexpr tensor<"w"> w;
constexpr tensor<"t"> t;
constexpr scalar<"flag"> flag;
constexpr scalar<"scale"> scale;

inline constexpr auto functions = op<"functions">(
    out<"exp">(n) = exp(x(n)), out<"log">(n) = log(x(n)), out<"log1p">(n) = log1p(x(n)),
    out<"expm1">(n) = expm1(x(n)), out<"sin">(n).optional() = sin(x(n)), out<"cos">(n).optional() = cos(x(n)),
    out<"tanh">(n) = tanh(x(n)), out<"sigmoid">(n) = sigmoid(x(n)), out<"softplus">(n) = softplus(x(n)),
    out<"sqrt">(n) = sqrt(x(n)), out<"abs">(n) = abs(x(n)), out<"silu">(n) = silu(x(n)),
    out<"mish">(n) = mish(x(n)), out<"neg">(n) = -x(n), out<"gelu">(n) = gelu(x(n)),
    out<"relu">(n) = relu(x(n)));

inline constexpr auto pairs = op<"pairs">(
    out<"sum">(n) = x(n) + z(n), out<"difference">(n) = x(n) - z(n), out<"product">(n) = x(n) * z(n),
    out<"quotient">(n) = x(n) / z(n), out<"max">(n) = max(x(n), z(n)), out<"min">(n) = min(x(n), z(n)),
    out<"logaddexp">(n) = logaddexp(x(n), z(n)), out<"exp_difference">(n) = exp_difference(x(n), z(n)),
    out<"less">(n) = select(x(n) < z(n), 1.0, 2.0), out<"at_most">(n) = select(x(n) <= z(n), 1.0, 2.0),
    out<"equal">(n) = select(x(n) == z(n), 1.0, 2.0), out<"unequal">(n) = select(x(n) != z(n), 1.0, 2.0),
    out<"both">(n) = select(x(n) > z(n) && z(n) >= 0.0, x(n), z(n)),
    out<"either">(n) = select(x(n) > 1.0 || !(z(n) > 0.0), x(n), z(n)));

/// Of exact products; with the gradient, in which the position is a factor.
inline constexpr auto directions = op<"directions">(out<"cosine">(n) = cos_of_product(x(n), t(n)),
                                                    out<"sine">(n) = sin_of_product(x(n), t(n)));
inline constexpr auto angles = op<"angles">(out<"nearby">(n) = sin(angle_of_product(x(n), t(n))),
                                            out<"same">(n) = cos(angle_of_product(x(n), t(n))));
constexpr integer_tensor<"p"> p;
inline constexpr auto far_directions = op<"far_directions">(out<"cosine">(n) = cos_of_product(p(n) - 1, t(n)),
                                                            out<"sine">(n) = sin_of_product(p(n) - 1, t(n)));
inline constexpr auto turning =
    op<"turning">(out<"y">(b, n) = z(b, n) * cos_of_product(x(n), w(b)) + sin_of_product(3.0, w(b)));
inline constexpr auto dturning = gradient(turning, w);

inline constexpr auto powers = op<"powers">(out<"y">(n) = pow(x(n), z(n)));

/// Values that do not vary along n (or not at all), on either side of it, conditions among them, and guarded
/// sides.
inline constexpr auto hoisted =
    op<"hoisted">(out<"y">(b, n) = select(w(b) > 0.0 && t() < 5.0, x(b, n) * exp(w(b)), log(z(n)) + t()),
                  out<"guarded">(b, n) =
                      select(flag != 0.0, exp(x(b, n)) * scale, x(b, n) - value_or(scalar<"shift">{}, 0.5)),
                  out<"scanned">(b, n) = select(w(b) < scale, scan(plain_sum, over(n), x(b, n) * t()),
                                                value_or(tensor<"v">{}(b), 3.0)),
                  out<"alone">() = t() * scale, out<"nothing">(b) = scale, out<"repeated">(n, b) = w(b));

const compiled functions_program = compile_both<functions>();
const compiled pairs_program = compile_float<pairs>();
const compiled directions_program = compile_both<directions>();
const compiled far_directions_program = compile_both<far_directions>();
const compiled angles_program = compile_both<angles>();
const compiled dturning_program = compile_both<dturning>();
const compiled powers_program = compile_both<powers>();
const compiled hoisted_program = compile_float<hoisted>();

operands of(std::vector<double> x_values, std::vector<double> z_values = {}) {
  operands given;
  const auto count = static_cast<std::int64_t>(x_values.size());
  given.inputs["x"] = {std::move(x_values), {count}};
  if (!z_values.empty()) given.inputs["z"] = {std::move(z_values), {count}};
  return given;
}

/// Both ends of the range, both signs of zero, numbers around 1, infinities and NaN.
std::vector<double> special_values() {
  return {0.0, -0.0, 1,    -1,  0.5,  -0.5, 1e-3,  -1e-3, 88,   88.7,
          89,  -87,  -104, 1e4, -1e4, 3e38, -3e38, inf,   -inf, nan_};
}

}  // namespace

TEST_CASE("elementwise functions over their ranges", "[exec][elementwise]") {
  std::mt19937 random(51);
  for (const auto& [low, high, count] :
       {std::tuple{-8.0, 8.0, 1001}, {-0.9, 3.0, 64}, {0.0, 80.0, 257}, {-100.0, 100.0, 15}}) {
    operands given = of(random_tensor(random, {count}, low, high).values);
    for (const dtype type : tested_types()) {
      given.usual = type;
      CHECK(mismatch(functions_program, given, type == dtype::float64 ? 1e-15 : 4e-7) == "");
    }
  }
}

TEST_CASE("elementwise functions at the ends of their ranges", "[exec][elementwise]") {
  operands given = of(special_values());
  given.unbound = {"sin", "cos"};
  for (const dtype type : tested_types()) {
    given.usual = type;
    CHECK(mismatch(functions_program, given, 1e-6) == "");
  }
}

TEST_CASE("functions of two arguments, and conditions, at all pairs of ends", "[exec][elementwise]") {
  std::vector<double> left, right;
  for (const double u : special_values())
    for (const double v : special_values()) {
      left.push_back(u);
      right.push_back(v);
    }
  CHECK(mismatch(pairs_program, of(left, right), 1e-6) == "");
}

TEST_CASE("sine and cosine of exact products", "[exec][elementwise]") {
  std::mt19937 random(54);
  for (const double most : {0x1p10, 0x1p24, 0x1p30})
    for (const std::int64_t count : {1, 16, 1003}) {
      operands given;
      given.inputs["x"] = random_tensor(random, {count}, 0, most);
      for (double& each : given.inputs["x"].values) each = std::floor(each);
      given.inputs["x"].values[0] = most;
      given.inputs["t"] = random_tensor(random, {count}, -1, 1);
      given.inputs["t"].values[0] = 1;
      for (const dtype type : tested_types()) {
        given.usual = type;
        given.types["x"] = type == dtype::float64 ? dtype::float64 : dtype::float32;
        INFO("up to " << most << ", " << count << " of them");
        CHECK(mismatch(directions_program, given, type == dtype::float64 ? 1e-15 : 2e-6) == "");
        CHECK(mismatch(angles_program, given, type == dtype::float64 ? 2e-15 : 2e-6) == "");
      }
    }
}

TEST_CASE("integer positions are exact beyond what float holds", "[exec][elementwise]") {
  std::mt19937 random(56);
  for (const double most : {0x1p24, 0x1p31 - 1})
    for (const std::int64_t count : {1, 16, 1003}) {
      operands given;
      given.inputs["p"] = random_tensor(random, {count}, -most, most);
      for (double& each : given.inputs["p"].values) each = std::floor(each);
      given.inputs["p"].values[0] = most;
      given.inputs["t"] = random_tensor(random, {count}, -1, 1);
      given.types["p"] = dtype::int32;
      for (const dtype type : tested_types()) {
        given.usual = type;
        INFO("up to " << most << ", " << count << " of them");
        CHECK(mismatch(far_directions_program, given, type == dtype::float64 ? 1e-15 : 2e-6) == "");
      }
    }
}

TEST_CASE("the gradient of a product's sine and cosine has the position as a factor", "[exec][elementwise]") {
  std::mt19937 random(55);
  for (const std::int64_t length : {0, 1, 37, 200}) {
    operands given;
    given.inputs["x"] = random_tensor(random, {length}, 0, 0);
    for (std::size_t i = 0; i < given.inputs["x"].values.size(); ++i)
      given.inputs["x"].values[i] = static_cast<double>(i);
    given.inputs["w"] = random_tensor(random, {5}, -1, 1);
    given.inputs["z"] = random_tensor(random, {5, length});
    const double weight = 1.0 / static_cast<double>(1 + length * length);  // so that the sums stay around 1
    given.inputs["dy"] = random_tensor(random, {5, length}, -weight, weight);
    given.types["x"] = dtype::float32;
    CHECK(mismatch(dturning_program, given, 1e-6) == "");
    if (!tests_double) continue;
    given.usual = dtype::float64;
    CHECK(mismatch(dturning_program, given, 1e-14) == "");
  }
}

TEST_CASE("powers", "[exec][elementwise]") {
  std::mt19937 random(52);
  operands given =
      of(random_tensor(random, {500}, 0.01, 5).values, random_tensor(random, {500}, -4, 4).values);
  for (const dtype type : tested_types()) {
    given.usual = type;
    CHECK(mismatch(powers_program, given, type == dtype::float64 ? 1e-13 : 1e-5) == "");
  }
  std::vector<double> bases, exponents;
  for (const double u : {-inf, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, inf, nan_})
    for (const double v : {-inf, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, inf, nan_}) {
      bases.push_back(u);
      exponents.push_back(v);
    }
  given = of(bases, exponents);
  for (const dtype type : tested_types()) {
    given.usual = type;
    CHECK(mismatch(powers_program, given, type == dtype::float64 ? 1e-13 : 1e-6) == "");
  }
}

TEST_CASE("what does not vary along the walked axis, conditions and guards", "[exec][elementwise]") {
  std::mt19937 random(53);
  for (const std::int64_t batch : {1, 2, 16, 37})
    for (const std::int64_t length : {0, 1, 30, 4500})
      for (const bool raised : {false, true}) {
        if (batch * length > 50000) continue;
        operands given;
        given.inputs["x"] = random_tensor(random, {batch, length});
        given.inputs["w"] = random_tensor(random, {batch});
        given.inputs["z"] = random_tensor(random, {length}, 0.5, 2);
        given.inputs["t"] = random_tensor(random, {});
        if (raised) given.inputs["v"] = random_tensor(random, {batch});
        given.scalars = {{"flag", raised ? 1e-3 : 0.0}, {"scale", 0.75}};
        if (raised) given.scalars["shift"] = 2;
        INFO(batch << " x " << length);
        CHECK(mismatch(hoisted_program, given, 1e-3) == "");
        if (raised) given.inputs["t"].values[0] = 7;
        CHECK(mismatch(hoisted_program, given, 1e-3) == "");
      }
}
