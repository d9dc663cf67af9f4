#include "scandsl/expr/scan.hpp"

#include "scandsl/expr/operators.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"h"> h;
constexpr tensor<"cuts"> cuts;
constexpr scalar<"k"> k;
constexpr scalar<"flag"> flag;

template <class E, class... Axes> constexpr bool varies_along(const E&, Axes...) {
  return E::axes.count == static_cast<int>(sizeof...(Axes)) && (E::axes.has(Axes::id) && ...);
}
template <class Over> constexpr bool is_reversed(const Over&) { return Over::is_reversed; }
template <class Over> constexpr name segments_of(const Over&) { return Over::segment_axis; }

// A scan varies along its axis and its operands'; an initial state adds its own.
static_assert(varies_along(scan(plain_sum, over(n), x(b, n)), b, n));
static_assert(varies_along(scan(decayed_sum, over(n), x(n), h(b)), b, n));
static_assert(varies_along(scan(plain_sum, over(n).starting_from(h(b)), x(n)), b, n));

// last loses the axis, and gains the packed sequences'.
static_assert(varies_along(last(scan(plain_sum, over(n), x(b, n))), b));
static_assert(varies_along(last(scan(plain_sum, over(n).restart_at(cuts(s)), x(b, n))), b, s));
static_assert(varies_along(reduce(welford, over(n), x(b, n)), b));
static_assert(varies_along(sum(over(n), x(b, n)), b));
static_assert(varies_along(scan(plain_sum, over(n).restart_at(cuts(s)).starting_from(h(s)), x(n)), n));

// Directions toggle; the other options do not touch them.
static_assert(!is_reversed(over(n)) && is_reversed(over(n).reversed()) &&
              !is_reversed(over(n).reversed().reversed()));
static_assert(
    is_reversed(over(n).reversed().exclusive().restart_every(4).restart_at(cuts(s)).starting_from(1.0)));
static_assert(!is_reversed(over(n).reversed(flag)));

// Offsets name the axis of packed sequences: their own name when they are written bare.
static_assert(segments_of(over(n)) == name{});
static_assert(segments_of(over(n).restart_at(cuts(s))) == s.id);
static_assert(segments_of(over(n).restart_at(cuts)) == cuts.id);

static_assert(is_scan_operator<std::remove_const_t<decltype(welford)>> && !is_scan_operator<int>);
static_assert(decltype(welford)::components == 3 && decltype(plain_sum)::components == 1);
static_assert(state_size<decltype(state(1.0, x(n), 2))> == 3 && state_size<int> == -1);

}  // namespace

TEST_CASE("options of a walk keep what they were given", "[expr][scan]") {
  const auto walk = over(n).restart_every(16).reversed(value_or(flag, 1.0));
  CHECK(walk.every.value == 16);
  CHECK(walk.reverse_flag.fallback == 1.0);
  CHECK(over(n).restart_every(value_or(k, 0)).every.fallback == 0);
}

TEST_CASE("a state comes apart by structured bindings", "[expr][scan]") {
  const auto [one, two] = state(1.5, 2);
  CHECK(one == 1.5);
  CHECK(two == 2);
}

TEST_CASE("an operator keeps its identity as numbers", "[expr][scan]") {
  const auto pair = scan_op(
      state(-inf, 2), [](auto v) { return state(v, v); }, [](auto l, auto) { return l; },
      [](auto from) { return std::get<0>(from); });
  CHECK(pair.identity == std::array<double, 2>{-inf, 2});
}
