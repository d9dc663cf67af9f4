#include "scandsl/expr/activations.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "exec/executed.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"

using namespace exec_test;

namespace {

constexpr axis<"n"> n;
constexpr tensor<"x"> x;

/// An activation, its derivative by a textbook formula, and both as programs.
struct activation_case {
  const char* name;
  double (*value)(double);
  double (*slope)(double);
  compiled forward, backward;
};

double sigma(double z) { return z < 0 ? std::exp(z) / (1 + std::exp(z)) : 1 / (1 + std::exp(-z)); }
double phi(double z) { return std::erfc(-z / std::sqrt(2.0)) / 2; }
double softplus_of(double z) { return z > 30 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z)); }
/// x times a factor that reaches 0 before x reaches -inf.
double gated(double z, double factor) { return std::isinf(z) ? std::fmax(z, 0) : z * factor; }
/// z times what vanishes at both ends.
double vanishing(double z, double factor) { return std::isinf(z) ? 0 : z * factor; }
double mish_gate(double z) { return std::tanh(softplus_of(z)); }
double mish_slope(double z) {
  const double sech = 1 / std::cosh(softplus_of(z));
  return mish_gate(z) + vanishing(z, sech * sech * sigma(z));
}

template <class Activation> struct programs {
  static constexpr program forward = op<"activation">(out<"y">(n) = Activation{}(x(n)));
  static constexpr program backward = gradient(forward);
};
template <class Activation>
activation_case make_case(Activation, const char* name, double (*value)(double), double (*slope)(double)) {
  return {name, value, slope, compile_both<programs<Activation>::forward>(),
          compile_both<programs<Activation>::backward>()};
}

const std::vector<activation_case> activations = {
    make_case(
        activation::none, "none", [](double z) { return z; }, [](double) { return 1.0; }),
    make_case(
        activation::relu, "relu", [](double z) { return z < 0 ? 0.0 : z; },
        [](double z) { return z <= 0 ? 0.0 : 1.0; }),
    make_case(activation::sigmoid, "sigmoid", sigma, [](double z) { return sigma(z) * sigma(-z); }),
    make_case(
        activation::silu, "silu", [](double z) { return gated(z, sigma(z)); },
        [](double z) { return sigma(z) + vanishing(z, sigma(z) * sigma(-z)); }),
    make_case(
        activation::gelu, "gelu", [](double z) { return gated(z, phi(z)); },
        [](double z) {
          return phi(z) + vanishing(z, std::exp(-z * z / 2) / std::sqrt(2 * std::acos(-1.0)));
        }),
    make_case(
        activation::tanh, "tanh", [](double z) { return std::tanh(z); },
        [](double z) { return 1 / (std::cosh(z) * std::cosh(z)); }),
    make_case(activation::softplus, "softplus", softplus_of, sigma),
    make_case(
        activation::mish, "mish", [](double z) { return gated(z, mish_gate(z)); }, mish_slope),
};

/// Every 16-bit number; of the longer types, numbers of every sign and exponent, and of the range in which
/// activations bend.
std::vector<double> numbers_of(dtype type) {
  std::vector<double> numbers;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (type == dtype::bfloat16)
      numbers.push_back(static_cast<float>(std::bit_cast<bfloat16>(half)));
    else if (type == dtype::float16)
      numbers.push_back(static_cast<float>(std::bit_cast<float16>(half)));
    else if (type == dtype::float32)
      numbers.push_back(std::bit_cast<float>(bits * 65537U));
    else
      numbers.push_back(std::bit_cast<double>(bits * 0x0001000100010001U));
  }
  if (type == dtype::float32 || type == dtype::float64)
    for (int i = -40000; i <= 40000; ++i) numbers.push_back(i / 1021.0);
  return numbers;
}

/// How far a value at z may lie from the exact one before it is rounded to its type. exp flushes to zero
/// below the normal range; the normal distribution's tail, exp(-z^2 / 2), multiplies the rounding of its
/// argument; and where a slope changes sign its terms, of size 1, cancel.
double allowance(dtype type, double z, double exact, bool is_slope) {
  if (std::isnan(z)) return 0;
  const bool wide = type == dtype::float64;
  const double unit = wide ? 0x1p-53 : 0x1p-24, least = wide ? 0x1p-1022 : 0x1p-126;
  const double tail = std::min(z * z, 1500.0), size = std::min(1 + std::fabs(z), 1e4);
  return unit * (30 + 3 * tail) * std::fabs(exact) + 4 * least * size +
         (is_slope && std::fabs(z) < 4 ? 8 * unit : 0.0);
}

/// The first number at which the program's output is wrong, or nothing.
std::string first_error(const compiled& program_, const operands& given, const std::string& output,
                        double (*exact_value)(double), bool is_slope) {
  const outcome got = run_on_cpu(program_, given);
  const std::vector<double>& inputs = given.inputs.at("x").values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double z = rounded(given.usual, inputs[i]), exact = exact_value(z);
    const double value = got.outputs.at(output).values[i], off = allowance(given.usual, z, exact, is_slope);
    const bool right = std::isnan(exact)   ? std::isnan(value)
                       : std::isinf(exact) ? value == exact
                                           : value >= rounded(given.usual, exact - off) &&
                                                 value <= rounded(given.usual, exact + off);
    if (!right) return message(output, " at ", z, ": expected ", exact, ", got ", value);
  }
  return "";
}

}  // namespace

TEST_CASE("activations and their derivatives over the whole range", "[exec][activations]") {
  for (const dtype type : tested_types()) {
    operands given;
    given.usual = type;
    given.inputs["x"].values = numbers_of(type);
    const auto count = static_cast<std::int64_t>(given.inputs["x"].values.size());
    given.inputs["x"].extents = {count};
    operands backward = given;
    backward.inputs["dy"] = {std::vector<double>(static_cast<std::size_t>(count), 1.0), {count}};
    for (const activation_case& each : activations) {
      INFO(each.name << ", element type " << static_cast<int>(type));
      CHECK(first_error(each.forward, given, "y", each.value, false) == "");
      CHECK(first_error(each.backward, backward, "dx", each.slope, true) == "");
    }
  }
}

TEST_CASE("activations have their limits, and NaN propagates", "[exec][activations]") {
  for (const activation_case& each : activations) {
    INFO(each.name);
    const std::string name = each.name;
    const bool bounded = name == "sigmoid" || name == "tanh";
    operands given;
    given.inputs["x"] = {{-inf, inf, std::numeric_limits<double>::quiet_NaN()}, {3}};
    const std::vector<double> y = run_on_cpu(each.forward, given).outputs.at("y").values;
    CHECK(y[0] == (name == "none" ? -inf : name == "tanh" ? -1.0 : 0.0));
    CHECK(y[1] == (bounded ? 1.0 : inf));
    CHECK(std::isnan(y[2]));
  }
}
