#include "scandsl/expr/primitives.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "expr/quantity.hpp"
#include "support/catch.hpp"

using namespace scandsl;
using namespace scandsl::primitive;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class F> void for_each_primitive(F f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f(std::type_identity<at<static_cast<int>(I)>>{}), ...);
  }(std::make_index_sequence<static_cast<std::size_t>(count)>{});
}

template <class P> inline constexpr bool takes_integers = argument_kind<P>(0) == value_kind::integer;

template <class P>
concept differentiable = requires(quantity q) {
  requires !takes_integers<P>;
  requires P::result == value_kind::real&& P::arity <= 2;
  requires !std::is_same_v<P, stop_gradient_op>;
};

/// The partial derivatives by P's own rule, for the cotangent g.
template <class P> std::vector<double> partials_of(double g, double x, double y) {
  std::vector<double> result;
  if constexpr (P::arity == 1) {
    result.push_back(P::pullback(quantity(g), quantity(x), quantity(P::value(x)))[0].value);
  } else {
    for (const quantity& each : P::pullback(quantity(g), quantity(x), quantity(y), quantity(P::value(x, y))))
      result.push_back(each.value);
  }
  return result;
}

template <class P> double value_at(double x, double y) {
  if constexpr (P::arity == 1)
    return P::value(x);
  else
    return P::value(x, y);
}

static_assert(argument_kind<select_op>(0) == value_kind::truth &&
              argument_kind<select_op>(1) == value_kind::real);
static_assert(argument_kind<and_op>(1) == value_kind::truth && argument_kind<less_op>(0) == value_kind::real);
static_assert(argument_kind<modulo_op>(1) == value_kind::integer &&
              argument_kind<to_real_op>(0) == value_kind::integer);
static_assert(result_kind(primitive::index<add_op>, value_kind::integer) == value_kind::integer &&
              result_kind(primitive::index<add_op>, value_kind::real) == value_kind::real &&
              result_kind(primitive::index<less_op>, value_kind::integer) == value_kind::truth);
static_assert(less_op::result == value_kind::truth && add_op::result == value_kind::real);
static_assert(std::is_same_v<primitive::at<primitive::index<tanh_op>>, tanh_op>);
static_assert(primitive::index<int> == -1);

}  // namespace

TEST_CASE("every primitive has a number and a name of its own", "[expr][primitives]") {
  std::set<std::string_view> names;
  for_each_primitive([&]<class P>(std::type_identity<P>) {
    CHECK(std::is_same_v<primitive::at<primitive::index<P>>, P>);
    CHECK(names.insert(P::name).second);
    CHECK((!P::symbol.empty() && !P::latex.empty()));
  });
  CHECK(names.size() == static_cast<std::size_t>(count));
}

TEST_CASE("a pullback is the derivative of the value", "[expr][primitives]") {
  int checked = 0;
  for_each_primitive([&]<class P>(std::type_identity<P>) {
    if constexpr (differentiable<P>) {
      ++checked;
      for (const double x : {0.15, 0.5, 0.9, 1.7, -0.35, -0.8})
        for (const double y : {0.25, 0.7, 1.3, -0.45}) {
          if (std::isnan(value_at<P>(x, y)) || std::isnan(value_at<P>(x, -y))) continue;
          INFO(P::name << "(" << x << ", " << y << ")");
          const double h = 1e-6;
          const auto got = partials_of<P>(3, x, y);
          if (std::is_base_of_v<product_function, P>)
            CHECK(got[0] == 0);  // a whole number: no derivative
          else
            CHECK(got[0] ==
                  Approx(3 * (value_at<P>(x + h, y) - value_at<P>(x - h, y)) / (2 * h)).margin(1e-8));
          if constexpr (P::arity == 2)
            CHECK(got[1] ==
                  Approx(3 * (value_at<P>(x, y + h) - value_at<P>(x, y - h)) / (2 * h)).margin(1e-8));
        }
    }
  });
  CHECK(checked == 30);
}

TEST_CASE("a pullback is linear in the cotangent", "[expr][primitives]") {
  for_each_primitive([&]<class P>(std::type_identity<P>) {
    if constexpr (differentiable<P>) {
      const auto once = partials_of<P>(1, 0.6, 0.3), scaled = partials_of<P>(-2.5, 0.6, 0.3);
      for (std::size_t i = 0; i < once.size(); ++i) CHECK(scaled[i] == Approx(-2.5 * once[i]));
    }
  });
}

TEST_CASE("ties and stops follow the stated convention", "[expr][primitives]") {
  CHECK(partials_of<max_op>(1, 2, 2) == std::vector<double>{1, 0});
  CHECK(partials_of<min_op>(1, 2, 2) == std::vector<double>{1, 0});
  CHECK(partials_of<abs_op>(1, 0, 0) == std::vector<double>{0});
  CHECK(stop_gradient_op::pullback(quantity(5), quantity(1), quantity(1))[0].value == 0);
  const auto chosen = select_op::pullback(quantity(7), quantity(1), quantity(2), quantity(3), quantity(2));
  CHECK((chosen[0].value == 0 && chosen[1].value == 7 && chosen[2].value == 0));
  const auto other = select_op::pullback(quantity(7), quantity(0), quantity(2), quantity(3), quantity(3));
  CHECK((other[1].value == 0 && other[2].value == 7));
  const auto attached =
      attach_derivative_op::pullback(quantity(2), quantity(1), quantity(4), quantity(0.5), quantity(1));
  CHECK((attached[0].value == 2 && attached[1].value == 1 && attached[2].value == 0));
}

TEST_CASE("values hold over the whole range", "[expr][primitives]") {
  CHECK(sigmoid_op::value(1e4) == 1);
  CHECK(sigmoid_op::value(-1e4) == 0);
  CHECK(sigmoid_op::value(-700.0) == Approx(std::exp(-700.0)));
  CHECK(softplus_op::value(1e4) == 1e4);
  CHECK(softplus_op::value(-700.0) == Approx(std::exp(-700.0)));
  CHECK(softplus_op::value(-infinity) == 0);
  CHECK(silu_derivative_op::value(infinity) == 1);
  CHECK(silu_derivative_op::value(-infinity) == 0);
  CHECK(silu_derivative_op::value(1e300) == 1);
  CHECK(silu_derivative_op::value(-700.0) == Approx(-699 * std::exp(-700.0)));
  CHECK(silu_derivative_op::value(30.0) == Approx(1 + 29 * std::exp(-30.0)).epsilon(1e-15));
  CHECK(logaddexp_op::value(-infinity, -infinity) == -infinity);
  CHECK(logaddexp_op::value(infinity, infinity) == infinity);
  CHECK(logaddexp_op::value(infinity, -infinity) == infinity);
  CHECK(logaddexp_op::value(1e4, -1e4) == 1e4);
  CHECK(logaddexp_op::value(3.0, 3.0) == Approx(3 + std::log(2.0)));
  CHECK(exp_difference_op::value(-infinity, -infinity) == 1);
  CHECK(exp_difference_op::value(infinity, infinity) == 1);
  CHECK(exp_difference_op::value(-infinity, 0.0) == 0);
  CHECK(logaddexp_op::value(80.0f, 80.0f) == Approx(80 + std::log(2.0)));
  CHECK(softplus_op::value(100.0f) == 100.0f);
}

TEST_CASE("quotients of integers are rounded down", "[expr][primitives]") {
  const auto check = [](auto x, auto y, auto quotient, auto rest) {
    CHECK(floor_divide_op::value(x, y) == quotient);
    CHECK(modulo_op::value(x, y) == rest);
  };
  check(7, 2, 3, 1);
  check(-7, 2, -4, 1);
  check(7, -2, -4, -1);
  check(-7, -2, 3, -1);
  check(-8, 2, -4, 0);
  check(5, 0, 0, 5);  // no trap
  CHECK(floor_divide_op::value(std::numeric_limits<std::int32_t>::min(), -1) ==
        std::numeric_limits<std::int32_t>::min());  // no trap either
  check(std::int64_t{1} << 40, std::int64_t{3}, std::int64_t{366503875925}, std::int64_t{1});
}

TEST_CASE("NaN propagates from either side", "[expr][primitives]") {
  for_each_primitive([&]<class P>(std::type_identity<P>) {
    INFO(P::name);
    if constexpr (takes_integers<P>)
      return;
    else if constexpr (P::result == value_kind::real && P::arity == 1)
      CHECK(std::isnan(P::value(not_a_number)));
    else if constexpr (P::result == value_kind::real && P::arity == 2)
      CHECK((std::isnan(P::value(not_a_number, 0.5)) && std::isnan(P::value(0.5, not_a_number))));
  });
}

TEST_CASE("derivatives are finite where functions saturate", "[expr][primitives]") {
  for (const double x : {-1e3, -50.0, 50.0, 1e3}) {
    for (const double each : {partials_of<sigmoid_op>(1, x, 0)[0], partials_of<softplus_op>(1, x, 0)[0],
                              partials_of<tanh_op>(1, x, 0)[0]})
      CHECK((each >= 0 && each <= 1));
  }
  CHECK(partials_of<tanh_op>(1, 20, 0)[0] == Approx(4 * std::exp(-40.0)));
  CHECK(partials_of<sigmoid_op>(1, 100, 0)[0] == Approx(std::exp(-100.0)));
  for (const auto& [x, y] : std::vector<std::pair<double, double>>{
           {-infinity, -infinity}, {-infinity, 2}, {2, -infinity}, {1e4, -1e4}}) {
    const auto shares = partials_of<logaddexp_op>(1, x, y);
    CHECK((shares[0] >= 0 && shares[0] <= 1 && shares[1] >= 0 && shares[1] <= 1));
    if (x == -infinity) CHECK(shares[0] == 0);
    if (y == -infinity) CHECK(shares[1] == 0);
  }
}
