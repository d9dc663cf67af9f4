#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"
#include "support/derivative.hpp"

using namespace scandsl;
using derivative::tensors;
using generate::random_case;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"w"> w;
constexpr tensor<"h0"> h0;
constexpr scalar<"t"> t;

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

constexpr auto scaled = op<"scaled">(out<"y">(b, n, d) = t * w(d) * x(b, n, d));
constexpr auto dscaled = gradient(scaled);

constexpr auto log_sums = scan(log_add_exp, over(n).starting_from(value_or(h0(b), -inf)), x(b, n));
constexpr auto log_sums_op =
    op<"log_sums">(out<"y">(b, n) = log_sums, out<"end">(b).optional() = last(log_sums));
constexpr auto dlog_sums = gradient(log_sums_op);

/// The gradient of <cotangent, logcumsumexp(x)> in long double: dx_t = sum over s >= t of g_s exp(x_t - y_s).
std::vector<double> log_sum_gradient(const std::vector<double>& values,
                                     const std::vector<double>& cotangent) {
  std::vector<long double> y;
  long double top = -std::numeric_limits<long double>::infinity(), sum = 0;
  for (const double each : values) {
    const long double z = each;
    if (z > top) {
      sum = top < -1e300L ? 0 : sum * std::exp(top - z);
      top = z;
    }
    if (z > -1e300L) sum += std::exp(z - top);
    y.push_back(top + std::log(sum));
  }
  std::vector<double> result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    long double each = 0;
    for (std::size_t k = i; k < values.size() && values[i] > -1e300; ++k)
      each += static_cast<long double>(cotangent[k]) * std::exp(static_cast<long double>(values[i]) - y[k]);
    result.push_back(static_cast<double>(each));
  }
  return result;
}

std::vector<double> library_gradient(const std::vector<double>& values,
                                     const std::vector<double>& cotangent) {
  random_case c;
  const auto count = static_cast<std::int64_t>(values.size());
  c.inputs = {{"x", {values, {1, count}}}};
  c.extents = {{"b", 1}, {"n", count}};
  return derivative::gradients(log_sums_op, dlog_sums, c, {{"y", {cotangent, {1, count}}}}).at("x").values;
}

}  // namespace

TEST_CASE("the gradient of log-add-exp over the whole range", "[pass][gradient]") {
  const std::vector<double> g = {0.5, -2.0, 1.25, 3.0, -0.75, 1.0};
  for (const std::vector<double>& values :
       std::vector<std::vector<double>>{{0.1, -0.4, 2.0, 1.0, -1.0, 0.3},
                                        {-inf, -inf, 1.0, -inf, 2.0, 0.5},
                                        {1e4, -1e4, 0.0, 1e4, 9999.0, -3e4},
                                        {-1e30, 1e30, -1e30, 1e30, 0.0, 1.0},
                                        {-3.4e38, 3.4e38, 0.0, 3.4e38, -3.4e38, -inf},
                                        {-700.0, 710.0, 1000.0, -1000.0, 1000.5, 999.0}}) {
    const std::vector<double> expected = log_sum_gradient(values, g), got = library_gradient(values, g);
    for (std::size_t i = 0; i < g.size(); ++i) {
      INFO("x_" << i << " = " << values[i]);
      // y = 1e4 is rounded to 2e-12, and so is exp(x - y) relatively; a few such factors make one gradient.
      CHECK(got[i] == Approx(expected[i]).epsilon(2e-11).margin(1e-300));
    }
  }
}

TEST_CASE("positions of -inf have gradient 0, whatever stands around them", "[pass][gradient]") {
  for (const double got : library_gradient({-inf, -inf, -inf}, {1.0, 2.0, 3.0})) CHECK(got == 0.0);
  for (const double got : library_gradient({-inf, -inf}, {inf, undefined})) CHECK(got == 0.0);
  random_case c;
  c.inputs = {{"x", {{-inf, -inf, 1.0}, {1, 3}}}, {"h0", {{-inf}, {1}}}};
  c.extents = {{"b", 1}, {"n", 3}};
  const tensors got = derivative::gradients(log_sums_op, dlog_sums, c,
                                            {{"y", {{1.0, 2.0, 3.0}, {1, 3}}}, {"end", {{5.0}, {1}}}});
  CHECK(got.at("x").values == std::vector<double>{0.0, 0.0, 8.0});
  CHECK(got.at("h0").values == std::vector<double>{0.0});
}

TEST_CASE("+inf is NaN where it stands and leaves the positions before it alone", "[pass][gradient]") {
  const std::vector<double> got = library_gradient({0.5, 1.0, inf, 2.0, inf, 3.0}, {1, 1, 1, 1, 1, 1}),
                            before_it = library_gradient({0.5, 1.0}, {1, 1});
  CHECK(got[0] == before_it[0]);
  CHECK(got[1] == before_it[1]);
  CHECK(std::isnan(got[2]));
  CHECK(got[3] == 0.0);  // y does not depend on it any more
  CHECK(std::isnan(got[4]));
  CHECK(got[5] == 0.0);
}

TEST_CASE("NaN reaches the gradient from the input and from the cotangent", "[pass][gradient]") {
  const std::vector<double> from_input = library_gradient({0.5, undefined, 1.0}, {1, 1, 1}),
                            from_cotangent = library_gradient({0.5, 0.0, 1.0}, {1, undefined, 1});
  for (const double each : from_input) CHECK(std::isnan(each));
  CHECK(std::isnan(from_cotangent[0]));
  CHECK(std::isnan(from_cotangent[1]));
  CHECK(!std::isnan(from_cotangent[2]));
}

TEST_CASE("axes without positions", "[pass][gradient]") {
  random_case c;
  c.inputs = {{"x", {{}, {2, 0}}}, {"h0", {{0.5, -1.0}, {2}}}};
  c.extents = {{"b", 2}, {"n", 0}};
  const tensors got =
      derivative::gradients(log_sums_op, dlog_sums, c, {{"y", {{}, {2, 0}}}, {"end", {{3.0, 4.0}, {2}}}});
  CHECK(got.at("x").values.empty());
  CHECK(got.at("h0").values == std::vector<double>{3.0, 4.0});  // an empty row ends as it started
  random_case none;
  none.inputs = {{"x", {{}, {2, 0, 4}}}, {"w", {{1, 2, 3, 4}, {4}}}};
  none.scalars = {{"t", 2.0}};
  none.extents = {{"b", 2}, {"n", 0}, {"d", 4}};
  const tensors sums = derivative::gradients(scaled, dscaled, none, {{"y", {{}, {2, 0, 4}}}});
  CHECK(sums.at("w").values == std::vector<double>(4, 0.0));
  CHECK(sums.at("t").values == std::vector<double>{0.0});
}
