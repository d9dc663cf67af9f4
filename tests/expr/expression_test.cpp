#include "scandsl/expr/expression.hpp"

#include "scandsl/expr/equation.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr scalar<"t"> t;

template <class E, class... Axes> constexpr bool varies_along(const E&, Axes...) {
  return E::axes.count == static_cast<int>(sizeof...(Axes)) && (E::axes.has(Axes::id) && ...);
}
template <class E> constexpr value_kind kind_of(const E&) { return E::kind; }
template <class E> constexpr bool optional_equation(const E&) { return E::is_optional; }

// Axes are a union, met in any order; numbers and scalars have none.
static_assert(varies_along(x(b, n), b, n));
static_assert(varies_along(x(b, n) + y(d), d, n, b));
static_assert(varies_along(x(b, n) * x(n, b) - 2, b, n));
static_assert(varies_along(t * 2));
static_assert(varies_along(x()));
static_assert(varies_along(select(x(b) < y(n), 1.0, y(d)), b, n, d));
static_assert(varies_along(value_or(x(n, d), 0.0), n, d));
static_assert(varies_along(-x(n), n) && varies_along(+x(n), n));

// Comparisons and their combinations are conditions.
static_assert(kind_of(x(n)) == value_kind::real);
static_assert(kind_of(x(n) < 1) == value_kind::truth);
static_assert(kind_of(!(x(n) >= 1) && (x(n) != 2 || 3 == x(n))) == value_kind::truth);
static_assert(kind_of(select(x(n) > 0, x(n), 0)) == value_kind::real);

// What may stand in an expression.
static_assert(operand<double> && operand<int> && operand<decltype(x(n))> && operand<decltype(t)>);
static_assert(!operand<bool> && !operand<const char*>);
static_assert(as_expression(3).value == 3.0 && as_expression(2.5f).value == 2.5);
static_assert(std::is_same_v<decltype(x(n) > y(n)), decltype(y(n) < x(n))>);  // one primitive serves both
static_assert(std::is_same_v<decltype(x(n) >= 1), decltype(1 <= x(n))>);

static_assert(optional_equation(out<"z">(b, n).optional() = x(n)));
static_assert(!optional_equation(out<"z">(b, n) = x(n)));
static_assert(is_equation<decltype(out<"z">(n) = 2.0)>);

}  // namespace

TEST_CASE("a name holds what it was made from", "[expr]") {
  CHECK(x.id.view() == "x");
  CHECK(decltype(x(b, n))::rank == 2);
  CHECK(decltype(x(b, n))::axes.items[0] == b.id);
  CHECK(decltype(x(b, n))::axes.items[1] == n.id);
  CHECK(value_or(x(n), 0.5).fallback == 0.5);
  CHECK(value_or(t, -1).fallback == -1.0);
}

TEST_CASE("assignment binds", "[expr]") {
  float memory[6] = {};
  const auto bound = x = view(memory, 2, 3);
  CHECK(bound.text.value() == x.id);
  CHECK(bound.view.data == memory);
  CHECK((t = 3).value == 3.0);
  CHECK((t = 2.5f).value == 2.5);
  const auto output = out<"z"> = view(memory, 6);
  CHECK(output.text.value().view() == "z");
  const auto erased = x = erase(view(memory, 2, 3));
  CHECK(erased.view->rank == 2);
}
