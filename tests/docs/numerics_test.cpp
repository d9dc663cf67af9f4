#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "docs/golden.hpp"
#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr auto log_sums = op<"log_sums">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n)));

// ---- elementwise functions

using pack = xsimd::batch<float>;
using functions = arithmetic<pack>;

struct function_bound {
  const char* name;
  double ulps;
  pack (*compute)(pack);
  double (*exact)(double);
};

double exact_sigmoid(double v) { return 1.0 / (1.0 + std::exp(-v)); }
double exact_softplus(double v) { return v > 700.0 ? v : std::log1p(std::exp(v)); }

// [doc:bounds]
// Units in the last place of float32, where the exact value is in the normal range.
const function_bound bounds[] = {
    {"exp", 2.5, functions::exp, std::exp},
    {"log", 1.0, functions::log, std::log},
    {"log1p", 1.0, functions::log1p, std::log1p},
    {"expm1", 2.5, functions::expm1, std::expm1},
    {"sin", 2.0, functions::sin, std::sin},
    {"cos", 2.0, functions::cos, std::cos},
    {"tanh", 1.5, functions::tanh, std::tanh},
    {"sqrt", 0.5, functions::sqrt, std::sqrt},
    {"sigmoid", 3.0, primitive::sigmoid_op::value<pack>, exact_sigmoid},
    {"softplus", 2.0, primitive::softplus_op::value<pack>, exact_softplus},
};
// [/doc:bounds]

/// How far `got` is off, in units in the last place of the exact value; infinite where it is wrong at an end
/// of the range. Below 2^-126 it may be anything up to 2^-126 away.
double ulps_off(float got, double exact) {
  constexpr double wrong = std::numeric_limits<double>::infinity(), tiny = 0x1p-126;
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0.0 : wrong;
  const float rounded = static_cast<float>(exact);
  if (std::isinf(rounded)) return got == rounded ? 0.0 : wrong;
  const double off = std::abs(static_cast<double>(got) - exact);
  if (std::abs(exact) < tiny) return off <= tiny ? 0.0 : wrong;
  return off / std::ldexp(1.0, std::ilogb(exact) - 23);
}

double worst_of(const function_bound& f) {
  double worst = 0.0;
  float in[pack::size], out_values[pack::size];
  std::uint32_t bits = 0;
  // A prime step meets numbers of every sign and exponent, both infinities' neighbours and NaNs among them.
  for (int packs = 0; packs < 25000; ++packs) {
    for (float& each : in) each = std::bit_cast<float>(bits += 10007);
    f.compute(pack::load_unaligned(in)).store_unaligned(out_values);
    for (std::size_t i = 0; i < pack::size; ++i)
      worst = std::max(worst, ulps_off(out_values[i], f.exact(static_cast<double>(in[i]))));
  }
  return worst;
}

}  // namespace

TEST_CASE("elementwise functions are as exact as the page says", "[docs]") {
  for (const function_bound& f : bounds) {
    INFO(f.name);
    CHECK(worst_of(f) <= f.ulps);
  }
}

TEST_CASE("the angle of a far position is exact", "[docs]") {
  // [doc:far-position]
  const float position = 16777215.0F, theta = 0.7F;
  const double exact = std::cos(static_cast<double>(position) * static_cast<double>(theta));
  CHECK(std::abs(primitive::cos_of_product_op::value(position, theta) - exact) < 4e-7);
  CHECK(std::abs(std::cos(position * theta) - exact) > 0.1);  // of the rounded product
  // [/doc:far-position]
}

TEST_CASE("a long log-add-exp keeps its precision, a chain of logaddexp does not", "[docs]") {
  const std::int64_t length = std::int64_t{1} << 22;
  // [doc:long-sum]
  // 2^22 zeros: the exact result is log(2^22) = 15.249.
  const std::vector<float> zeros(static_cast<std::size_t>(length), 0.0F);
  std::vector<float> sums(zeros.size());
  run<log_sums>(cpu{}, x = view(zeros.data(), 1, length), y = view(sums.data(), 1, length));
  float chained = -std::numeric_limits<float>::infinity();
  for (const float each : zeros) chained = primitive::logaddexp_op::value(chained, each);

  CHECK(sums.back() == Approx(std::log(0x1p22)).epsilon(1e-7));
  CHECK(chained == Approx(std::log(0x1p21)).epsilon(1e-7));  // half way there, it has stopped growing
  // [/doc:long-sum]
}

namespace {

std::string numbers(const char* label, const float* values, int count) {
  std::string text = label;
  char number[16];
  for (int i = 0; i < count; ++i) {
    // A NaN may print with a sign.
    if (std::isnan(values[i]))
      text += "     nan";
    else
      text += (std::snprintf(number, sizeof number, "%8.4g", values[i]), number);
  }
  return text + "\n";
}

}  // namespace

TEST_CASE("log-add-exp at the ends of the range", "[docs]") {
  const float inf_ = std::numeric_limits<float>::infinity(), nan_ = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> rows = {
      {-inf_, -inf_, 1, 2}, {0, inf_, 1, -inf_}, {1, nan_, inf_, 2}, {-1e4F, 1e4F, 1e4F, 3e38F}};
  std::string text;
  for (const std::vector<float>& row : rows) {
    float result[4];
    run<log_sums>(cpu{}, x = view(row.data(), 1, 4), y = view(result, 1, 4));
    text += numbers("x", row.data(), 4) + numbers("y", result, 4);
  }
  CHECK(text == docs_test::golden("numerics.txt", "ends"));
}

TEST_CASE("sums are carried in float32 whatever the storage", "[docs]") {
  // [doc:rounded-once]
  // 1000 times 1 in bfloat16, which has 8 bits: a sum that is rounded at every step stops at 256.
  const std::vector<bfloat16> ones(1000, bfloat16(1.0F));
  std::vector<bfloat16> sums(ones.size());
  constexpr tensor<"total"> total;
  static constexpr auto add = op<"add">(out<"total">(n) = scan(plain_sum, over(n), x(n)));
  run<add>(cpu{}, x = view(ones.data(), 1000), total = view(sums.data(), 1000));
  CHECK(static_cast<float>(sums[999]) == 1000.0F);
  CHECK(static_cast<float>(bfloat16(256.0F + 1.0F)) == 256.0F);
  // [/doc:rounded-once]
}

TEST_CASE("the number of threads does not change a bit", "[docs]") {
  // [doc:threads]
  std::vector<float> in(1000000), one(in.size()), many(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  const auto length = static_cast<std::int64_t>(in.size());
  run<log_sums>(cpu{1}, x = view(in.data(), 1, length), y = view(one.data(), 1, length));
  run<log_sums>(cpu{7}, x = view(in.data(), 1, length), y = view(many.data(), 1, length));
  CHECK(one == many);
  // [/doc:threads]
}
