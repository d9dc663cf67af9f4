#include <limits>

#include "exec/sweep_programs.hpp"
#include "support/catch.hpp"

using namespace exec_test;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Writes `value` at `at` of every row of x.
void put(operands& given, const std::vector<std::int64_t>& at, double value) {
  oracle_tensor& x = given.inputs.at("x");
  const std::int64_t length = x.extents[1];
  for (std::int64_t row = 0; row < x.extents[0]; ++row)
    for (const std::int64_t t : at)
      if (t < length) x.values[static_cast<std::size_t>(row * length + t)] = value;
}

std::vector<std::int64_t> range(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> result;
  for (std::int64_t t = from; t < to; ++t) result.push_back(t);
  return result;
}

/// Lanes, and rows in pieces, in both directions.
template <class F> void for_each_shape(F f) {
  for (const scan_case& shape : {scan_case{3, 60}, scan_case{20, 33}, scan_case{1, 8300}})
    for (const bool reversed : {false, true})
      for (const bool exclusive : {false, true}) {
        scan_case c = shape;
        c.reversed = reversed;
        c.exclusive = exclusive;
        f(c);
      }
}

void expect_right(const compiled& program_, const operands& given, double tolerance = 1e-4) {
  INFO(program_.p->id.view());
  CHECK(mismatch(program_, given, tolerance) == "");
}

}  // namespace

TEST_CASE("prefixes of -inf, +inf and NaN follow the mathematics", "[exec][values]") {
  for_each_shape([&](const scan_case& c) {
    INFO(c);
    for (const compiled* each : {&statistics_scans, &simple_scans}) {
      operands given = make_operands(*each, c, 11);
      if (each == &statistics_scans) given.unbound = {"y_variance", "l_variance"};
      if (each == &simple_scans) given.unbound = {"y_product", "l_product"};
      put(given, range(0, c.length / 3), -inf);
      put(given, range(c.length - 7, c.length), -inf);
      expect_right(*each, given);
      put(given, range(0, c.length), -inf);
      expect_right(*each, given);
      given = make_operands(*each, c, 12);
      if (each == &statistics_scans) given.unbound = {"y_variance", "l_variance"};
      put(given, {c.length / 2 - 1, c.length / 2 + 9}, inf);
      expect_right(*each, given);
      put(given, {c.length / 4, c.length - 3}, not_a_number);
      expect_right(*each, given);
    }
  });
}

TEST_CASE("spreads of 1e4 and the ends of the float range lose nothing", "[exec][values]") {
  for_each_shape([&](const scan_case& c) {
    INFO(c);
    operands given = make_operands(statistics_scans, c, 13);
    given.unbound = {"y_variance", "l_variance"};
    for (double& each : given.inputs.at("x").values) each *= 5000;
    expect_right(statistics_scans, given, 1e-6);
    for (double& each : given.inputs.at("x").values) each *= 3e34;
    expect_right(statistics_scans, given, 1e-6);
    for (double& each : given.inputs.at("x").values) each = -1e4;  // all equal: y is x + log(t)
    expect_right(statistics_scans, given, 1e-6);
  });
}

TEST_CASE("a recurrence that has become infinite stays so", "[exec][values]") {
  for_each_shape([&](const scan_case& c) {
    INFO(c);
    operands given = make_operands(decayed_scans, c, 14);
    given.unbound = {"y_mean", "l_mean"};
    given.inputs.at("a").values.assign(static_cast<std::size_t>(c.length), 0.5);
    put(given, {c.length / 3}, inf);  // the decay over a piece underflows: 0 * inf is no answer
    expect_right(decayed_scans, given);
    put(given, {c.length / 3 + 5}, not_a_number);
    expect_right(decayed_scans, given);
  });
}

TEST_CASE("a product that overflows keeps the zero before it", "[exec][values]") {
  for_each_shape([&](const scan_case& c) {
    INFO(c);
    operands given = make_operands(decayed_scans, c, 15);
    given.unbound = {"y_mean", "l_mean"};
    given.inputs.at("a").values.assign(static_cast<std::size_t>(c.length), 2.0);
    put(given, range(0, c.length), 0.0);
    expect_right(decayed_scans, given);
    given = make_operands(simple_scans, c, 16);
    put(given, range(0, c.length), 3.0);
    put(given, {2, c.length - 3}, 0.0);
    given.unbound = {"y_sum", "l_sum"};
    expect_right(simple_scans, given);
  });
}
