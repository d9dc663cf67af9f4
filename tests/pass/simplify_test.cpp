#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "scandsl/ir/lower.hpp"
#include "scandsl/ir/oracle.hpp"
#include "scandsl/pass/simplify.hpp"
#include "support/catch.hpp"

namespace {

using namespace scandsl;

constexpr axis<"n"> n;
constexpr tensor<"x"> x_tensor;
constexpr tensor<"y"> y_tensor;
constexpr tensor<"z"> z_tensor;
constexpr auto x = x_tensor(n);
constexpr auto y = y_tensor(n);
constexpr auto z = z_tensor(n);
constexpr scalar<"scale"> scale;

template <class E> constexpr program of(E e) { return op<"p">(out<"result">(n) = e); }

/// A number as an expression: C++ would compute 2.0 + 3.0 itself.
constexpr literal c(double value) { return literal{{}, value}; }

/// Whether `from` simplifies to `to`, which is in its simplest form already.
template <class From, class To> constexpr bool becomes(From from, To to) {
  return simplify(of(from)) == prune(of(to)) && simplify(of(to)) == prune(of(to));
}
/// Whether two forms of the same value, over the same operands in the same order, are shared.
template <class A, class B> constexpr bool same(A left, B right) {
  return simplify(of(left)) == simplify(of(right));
}

TEST_CASE("neutral operands go", "[simplify]") {
  STATIC_REQUIRE(becomes(x + 0.0, x));
  STATIC_REQUIRE(becomes(0.0 + x, x));
  STATIC_REQUIRE(becomes(x + -0.0, x));
  STATIC_REQUIRE(becomes(x - 0.0, x));
  STATIC_REQUIRE(becomes(0.0 - x, -x));
  STATIC_REQUIRE(becomes(x * 1.0, x));
  STATIC_REQUIRE(becomes(1.0 * x, x));
  STATIC_REQUIRE(becomes(x / 1.0, x));
  STATIC_REQUIRE(becomes(pow(x, 1.0), x));
  STATIC_REQUIRE(becomes(max(x, -inf), x));
  STATIC_REQUIRE(becomes(max(-inf, x), x));
  STATIC_REQUIRE(becomes(min(x, inf), x));
  STATIC_REQUIRE(becomes(min(inf, x), x));
  STATIC_REQUIRE(becomes(logaddexp(x, -inf), x));
  STATIC_REQUIRE(becomes(logaddexp(-inf, x), x));
  STATIC_REQUIRE(becomes(max(x, x), x));
}

TEST_CASE("signs move outwards", "[simplify]") {
  STATIC_REQUIRE(becomes(x * -1.0, -x));
  STATIC_REQUIRE(becomes(x / -1.0, -x));
  STATIC_REQUIRE(becomes(-(-x), x));
  STATIC_REQUIRE(becomes(x + (-y), x - y));
  STATIC_REQUIRE(becomes(x - (-y), x + y));
  STATIC_REQUIRE(becomes((-x) - y, -(x + y)));
  STATIC_REQUIRE(becomes((-x) * y, -(x * y)));
  STATIC_REQUIRE(becomes(x * (-y), -(x * y)));
  STATIC_REQUIRE(becomes((-x) * (-y), x * y));
  STATIC_REQUIRE(becomes((-x) / y, -(x / y)));
  STATIC_REQUIRE(becomes(x / (-y), -(x / y)));
  STATIC_REQUIRE(becomes(x + (-1.0) * y * z, x - y * z));
}

TEST_CASE("conditions", "[simplify]") {
  STATIC_REQUIRE(becomes(select(x < y, z, z), z));
  STATIC_REQUIRE(becomes(select(x < y, select(x < y, x, y), z), select(x < y, x, z)));
  STATIC_REQUIRE(becomes(select(x < y, z, select(x < y, x, y)), select(x < y, z, y)));
  STATIC_REQUIRE(becomes(select(!!(x < y), x, y), select(x < y, x, y)));
  STATIC_REQUIRE(becomes(select(!(x < y), y, x), select(x < y, x, y)));
  STATIC_REQUIRE(becomes(select(c(1.0) < c(2.0), x, y), x));
  STATIC_REQUIRE(becomes(select(c(2.0) <= c(1.0), x, y), y));
  STATIC_REQUIRE(becomes(select(!(c(0.0) == c(0.0)), x, y), y));
  STATIC_REQUIRE(becomes(select(x < y && c(0.0) < c(1.0), x, y), select(x < y, x, y)));
  STATIC_REQUIRE(becomes(select(x < y && c(1.0) < c(0.0), x, y), y));
  STATIC_REQUIRE(becomes(select(x < y || c(0.0) < c(1.0), x, y), x));
  STATIC_REQUIRE(becomes(select(x < y || x < y, x, y), select(x < y, x, y)));
}

TEST_CASE("constants fold", "[simplify]") {
  STATIC_REQUIRE(same(x * (c(2.0) + c(3.0)), x * 5.0));
  STATIC_REQUIRE(same(x * (c(2.0) - c(3.0) * c(4.0)), x * -10.0));
  STATIC_REQUIRE(becomes(x + c(1.0) / c(4.0), x + 0.25));
  STATIC_REQUIRE(becomes(x + max(c(1.0), c(4.0)), x + 4.0));
  STATIC_REQUIRE(becomes(x + min(c(1.0), -c(4.0)), x + -4.0));
  STATIC_REQUIRE(becomes(x + exp(c(0.0)), x + 1.0));
  STATIC_REQUIRE(becomes(x + log(c(1.0)), x));
  STATIC_REQUIRE(becomes(x + (c(1.0) - c(1.0)), x));
}

TEST_CASE("what may overflow, divide by zero or be NaN stays for run time", "[simplify]") {
  STATIC_REQUIRE(becomes(x + c(1e200) * c(1e200), x + c(1e200) * c(1e200)));
  STATIC_REQUIRE(becomes(x + c(1.0) / c(0.0), x + c(1.0) / c(0.0)));
  STATIC_REQUIRE(becomes(x + (c(inf) - c(inf)), x + (c(inf) - c(inf))));
}

TEST_CASE("a NaN is never hidden", "[simplify]") {
  STATIC_REQUIRE(becomes(0.0 * x, 0.0 * x));
  STATIC_REQUIRE(becomes(x - x, x - x));
  STATIC_REQUIRE(becomes(x / x, x / x));
  STATIC_REQUIRE(becomes(pow(x, 0.0), pow(x, 0.0)));
  STATIC_REQUIRE(becomes(exp_difference(x, x), exp_difference(x, x)));
}

TEST_CASE("commutative operands have one order", "[simplify]") {
  STATIC_REQUIRE(same(x * y + y * x, x * y + x * y));
  STATIC_REQUIRE(same((x + y) * (y + x), (x + y) * (x + y)));
  STATIC_REQUIRE(same(x + logaddexp(y, x), x + logaddexp(x, y)));
  STATIC_REQUIRE(same(x + 2.0 * x, x + x * 2.0));
  STATIC_REQUIRE(same(x + scale * x, x + x * scale));
  STATIC_REQUIRE(same(x + select(x == y, x, y), x + select(y == x, x, y)));
}

TEST_CASE("max and min keep their order, which says who gets the gradient of a tie", "[simplify]") {
  STATIC_REQUIRE(!same(x + max(x, y), x + max(y, x)));
  STATIC_REQUIRE(!same(x + min(x, y), x + min(y, x)));
}

TEST_CASE("identical scans are shared once their operands are", "[simplify]") {
  constexpr auto sum_of = [](auto e) { return scan(plain_sum, over(n), e); };
  constexpr program p = simplify(of(sum_of(x * y) + sum_of(y * x)));
  STATIC_REQUIRE(p.scans.count == 1);
  STATIC_REQUIRE(p == simplify(of(sum_of(x * y) + sum_of(x * y))));
}

TEST_CASE("a combine is simplified too", "[simplify]") {
  constexpr auto plain = scan_op(
      state(0.0), [](auto v) { return state(v); },
      [](auto l, auto r) { return state(1.0 * std::get<0>(l) - (-std::get<0>(r))); },
      [](auto s) { return std::get<0>(s); });
  STATIC_REQUIRE(simplify(of(scan(plain, over(n), x))) == simplify(of(scan(plain_sum, over(n), x))));
}

TEST_CASE("derivative rules outlive simplify and leave with drop_rules", "[simplify]") {
  constexpr auto clip = fn([](auto v) { return max(v, 0.0); }).derivative([](auto v, auto) {
    return select(v < 0.0, 0.1, 1.0);
  });
  constexpr auto has_rule = [](const program& p) {
    for (const node& each : p.nodes)
      if (is_apply<primitive::attach_derivative_op>(each)) return true;
    return false;
  };
  STATIC_REQUIRE(has_rule(simplify(of(clip(x) * 1.0))));
  STATIC_REQUIRE(drop_rules(of(clip(x))) == prune(of(max(x, 0.0))));
  STATIC_REQUIRE(drop_rules(of(stop_gradient(x) * y)) == prune(of(x * y)));
  STATIC_REQUIRE(drop_rules(of(x * 1.0)) == prune(of(x * 1.0)));
  STATIC_REQUIRE(drop_rules(of(scan(plain_sum, over(n), clip(x)))) ==
                 prune(of(scan(plain_sum, over(n), max(x, 0.0)))));
}

TEST_CASE("simplify is idempotent", "[simplify]") {
  constexpr auto idempotent = [](const program& p) { return simplify(simplify(p)) == simplify(p); };
  STATIC_REQUIRE(idempotent(of(scan(welford, over(n), x))));
  STATIC_REQUIRE(idempotent(of(scan(running_max_sum, over(n).reversed(), x))));
  STATIC_REQUIRE(idempotent(of(mish(scan(decayed_sum, over(n), sigmoid(x), y * 2.0)))));
  STATIC_REQUIRE(idempotent(of((2.0 - x * -1.0) * (y * (z * 3.0)))));
}

/// A random program of `size` steps over three tensors and awkward constants, divisions left out: a rule may
/// change the sign of a zero, and 1 / 0 tells.
program random_program(std::mt19937& random, int size) {
  constexpr double numbers[] = {
      0.0, -0.0, 1.0, -1.0, 2.0, 0.5, inf, -inf, std::numeric_limits<double>::quiet_NaN()};
  builder target;
  std::vector<term> values;
  for (const char* name : {"x", "y", "z"}) {
    tensor_decl declared{make_name(name), {}, tensor_role::input, false, 0.0};
    declared.axes.push_back(static_cast<std::int16_t>(target.axis(make_name("n"))));
    values.emplace_back(target, target.load(declared));
  }
  for (const double number : numbers) values.emplace_back(target, target.constant(number));
  const auto pick = [&] { return values[random() % values.size()]; };
  for (int step = 0; step < size; ++step) {
    const term a = pick(), b = pick();
    switch (random() % 12) {
    case 0: values.push_back(-a); break;
    case 1: values.push_back(a + b); break;
    case 2: values.push_back(a - b); break;
    case 3: values.push_back(a * b); break;
    case 4: values.push_back(max(a, b)); break;
    case 5: values.push_back(min(a, b)); break;
    case 6: values.push_back(logaddexp(a, b)); break;
    case 7: values.push_back(select(!(a < b), a, pick())); break;
    case 8: values.push_back(select(a <= b && !(b == pick()), pick(), b)); break;
    case 9: values.push_back(exp(a)); break;
    case 10: values.push_back(pow(abs(a), 1.0)); break;
    case 11: values.push_back(select(!!(a < b) || a == b, a, b)); break;
    }
  }
  tensor_decl output{make_name("result"), target.result.tensors[0].axes, tensor_role::output, false, 0.0};
  target.result.stores.push_back(
      {static_cast<std::int16_t>(target.tensor(output)), values.back().in(target)});
  return target.result;
}

TEST_CASE("random programs keep their values", "[simplify]") {
  const std::vector<double> special = {0.0,   -0.0,   1.0, -1.0, 1.5,         -2.0,
                                       1e300, -1e300, inf, -inf, std::nan("")};
  std::map<std::string, oracle_tensor> inputs;
  for (const char* name : {"x", "y", "z"}) inputs[name].extents = {0};
  std::mt19937 random(1);
  for (int position = 0; position < 200; ++position)
    for (auto& [name, input] : inputs) {
      input.values.push_back(special[random() % special.size()]);
      ++input.extents[0];
    }

  for (int trial = 0; trial < 500; ++trial) {
    const program p = random_program(random, 30), simple = simplify(p);
    INFO("trial " << trial);
    REQUIRE(simplify(simple) == simple);
    // What a simplified program no longer reads must not be bound.
    std::map<std::string, oracle_tensor> used, all;
    for (const auto& [name, input] : inputs) {
      if (simple.find_tensor(make_name(name)) >= 0) used[name] = input;
      if (p.find_tensor(make_name(name)) >= 0) all[name] = input;
    }
    const std::map<std::string, std::int64_t> extents = {{"n", 200}};
    const auto expected = oracle(p, all, {}, extents).at("result").values;
    const auto got = oracle(simple, used, {}, extents).at("result").values;
    bool equal = true;
    for (std::size_t i = 0; i < expected.size(); ++i)
      equal = equal && (expected[i] == got[i] || (std::isnan(expected[i]) && std::isnan(got[i])));
    REQUIRE(equal);
  }
}

}  // namespace
