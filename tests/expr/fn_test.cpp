#include "scandsl/expr/fn.hpp"

#include <cmath>

#include "expr/quantity.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

template <class E> constexpr int axis_count(const E&) { return E::axes.count; }

constexpr auto cube = fn([](auto z) { return z * z * z; });
constexpr auto scaled = fn([](auto z, auto k) { return z * k; });
static_assert(axis_count(cube(x(n))) == 1);
static_assert(axis_count(scaled(x(n), x(b))) == 2);
static_assert(axis_count(scaled(x(n), 3.0)) == 1);
static_assert(expression<decltype(square(x(b, n)))>);
static_assert(expression<decltype(square(cube(square(x(n)))))>);  // functions of functions

}  // namespace

TEST_CASE("a user function takes operands and numbers", "[expr][fn]") {
  CHECK(cube(quantity(2)).value == 8);
  CHECK(scaled(quantity(2), 2.5).value == 5);
  CHECK(scaled(3.0, quantity(2)).value == 6);
}

TEST_CASE("a derivative rule leaves the value alone and sees it", "[expr][fn]") {
  double seen = 0;
  const auto plain = fn([](auto z) { return z * z; });
  const auto ruled = plain.derivative([&seen](auto z, auto y) {
    seen = y.value;
    return 2.0 * z;
  });
  CHECK(ruled(quantity(3)).value == 9);
  CHECK(seen == 9);
  const auto two = fn([](auto p, auto q) { return p / q; }).derivative([](auto, auto q, auto y) {
    return partials(1.0 / q, -y / q);
  });
  CHECK(two(quantity(3), quantity(2)).value == 1.5);
}
