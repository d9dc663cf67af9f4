#include "scandsl/expr/operators.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "expr/quantity.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

/// The state of an operator as numbers, and its functions on such states.
template <class Operator> struct evaluated {
  static constexpr std::size_t components = static_cast<std::size_t>(Operator::components);
  using numbers = std::array<double, components>;
  Operator op;

  template <class State> static numbers read(const State& from) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return numbers{quantity(std::get<I>(from)).value...};
    }(std::make_index_sequence<components>{});
  }
  static auto written(const numbers& from) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return state(quantity(from[I])...);
    }(std::make_index_sequence<components>{});
  }
  numbers combine(const numbers& left, const numbers& right) const {
    return read(op.combine(written(left), written(right)));
  }
  double project(const numbers& from) const { return quantity(op.project(written(from))).value; }
  template <class... V> numbers lift(V... values) const { return read(op.lift(quantity(values)...)); }
  template <class... V> numbers seed(V... values) const { return read(op.seed(quantity(values)...)); }
};
template <class Operator> evaluated(Operator) -> evaluated<Operator>;

bool close(double got, double expected) {
  return got == expected || std::fabs(got - expected) <= 1e-12 * std::max(1.0, std::fabs(expected)) ||
         (std::isnan(got) && std::isnan(expected));
}
template <class Numbers> bool close(const Numbers& got, const Numbers& expected) {
  bool all = true;
  for (std::size_t i = 0; i < got.size(); ++i) all = all && close(got[i], expected[i]);
  return all;
}

/// Identity and associativity on lifted elements, their combinations, and the identity itself.
template <class Operator, class Lift> void check_laws(Operator op, Lift lift) {
  const evaluated e{op};
  std::mt19937 random(2);
  std::uniform_real_distribution<double> draw(-3, 3);
  std::vector<typename evaluated<Operator>::numbers> samples{e.op.identity};
  for (int i = 0; i < 6; ++i) samples.push_back(lift(e, draw(random), draw(random)));
  samples.push_back(e.combine(samples[1], samples[2]));
  samples.push_back(e.combine(e.combine(samples[3], samples[4]), samples[5]));
  for (const auto& p : samples) {
    CHECK(close(e.combine(e.op.identity, p), p));
    CHECK(close(e.combine(p, e.op.identity), p));
    for (const auto& q : samples)
      for (const auto& r : samples)
        CHECK(close(e.combine(e.combine(p, q), r), e.combine(p, e.combine(q, r))));
  }
}

constexpr auto of_one = [](const auto& e, double x, double) { return e.lift(x); };

}  // namespace

TEST_CASE("the standard operators are associative and have their identity", "[expr][operators]") {
  check_laws(plain_sum, of_one);
  check_laws(product, of_one);
  check_laws(maximum, of_one);
  check_laws(minimum, of_one);
  check_laws(log_add_exp, of_one);
  check_laws(running_max_sum, of_one);
  check_laws(welford, of_one);
  check_laws(decayed_sum,
             [](const auto& e, double x, double y) { return e.lift(1 / (1 + std::exp(-x)), y); });
}

TEST_CASE("the identity law holds at infinite elements", "[expr][operators]") {
  for (const double x : {-inf, inf}) {
    const evaluated sums{running_max_sum};
    const evaluated logs{log_add_exp};
    CHECK(close(logs.combine(logs.op.identity, logs.lift(x)), logs.lift(x)));
    const auto joined = sums.combine(sums.op.identity, sums.lift(x));
    CHECK(sums.project(joined) == x);
  }
  // A prefix of -inf stays -inf in both forms of log-add-exp.
  const evaluated sums{running_max_sum};
  CHECK(sums.project(sums.op.identity) == -inf);
  CHECK(sums.project(sums.combine(sums.lift(-inf), sums.lift(-inf))) == -inf);
}

TEST_CASE("operators fold to what their names say", "[expr][operators]") {
  const std::vector<double> x = {0.5, -1, 2, 2, -0.25}, a = {0.9, 0.5, 0.1, 0.7, 0.3};
  const auto folded = [&](const auto& e, auto lift) {
    auto state = e.op.identity;
    for (std::size_t i = 0; i < x.size(); ++i) state = e.combine(state, lift(i));
    return e.project(state);
  };
  const auto plain = [&](auto op) {
    const evaluated e{op};
    return folded(e, [&](std::size_t i) { return e.lift(x[i]); });
  };
  double exps = 0, mean = 0, squares = 0, h = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    exps += std::exp(x[i]);
    mean += x[i] / 5;
    h = a[i] * h + x[i];
  }
  for (const double each : x) squares += (each - mean) * (each - mean);
  CHECK(plain(plain_sum) == Approx(3.25));
  CHECK(plain(product) == Approx(0.5));
  CHECK(plain(maximum) == 2);
  CHECK(plain(minimum) == -1);
  CHECK(plain(log_add_exp) == Approx(std::log(exps)));
  CHECK(plain(running_max_sum) == Approx(std::log(exps)));
  CHECK(plain(welford) == Approx(squares / 5));
  const evaluated decayed{decayed_sum};
  CHECK(folded(decayed, [&](std::size_t i) { return decayed.lift(a[i], x[i]); }) == Approx(h));
}

TEST_CASE("an initial value becomes a state", "[expr][operators]") {
  const evaluated decayed{decayed_sum};
  const evaluated sums{plain_sum};
  const evaluated variances{welford};
  CHECK(decayed.project(decayed.seed(3.0)) == 3);
  CHECK(decayed.combine(decayed.seed(3.0), decayed.lift(0.5, 1.0)) == decayed.combine({1, 3}, {0.5, 1}));
  CHECK(sums.seed(2.0) == std::array<double, 1>{2});
  CHECK(variances.seed(4.0, 1.0, 2.0) == std::array<double, 3>{4, 1, 2});
  CHECK(variances.project(variances.op.identity) == 0);  // of an empty stretch
}
