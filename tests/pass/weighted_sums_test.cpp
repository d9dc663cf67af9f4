#include "scandsl/pass/weighted_sums.hpp"

#include <cmath>
#include <random>

#include "scandsl/ir/lower.hpp"
#include "scandsl/ir/oracle.hpp"
#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/prepare.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"g"> g;
constexpr tensor<"c"> c;
constexpr scalar<"chunk"> chunk;

constexpr auto shares = softmax(over(n), x(b, n));
inline constexpr program normalised = op<"normalised">(out<"y">(b, n) = shares);
inline constexpr program dnormalised = gradient(normalised);
inline constexpr program pooled = op<"pooled">(out<"y">(b) = sum(over(n), g(b, n) * shares / c(b)));
inline constexpr program pooled_backwards =
    op<"pooled_backwards">(out<"y">(b) = sum(over(n).reversed(), -(shares*(g(b, n) + c(b)))));
inline constexpr program two_pooled =
    op<"two_pooled">(out<"y">(b) = sum(over(n), g(b, n) * shares), out<"z">(b) = sum(over(n), c(b) * shares));
/// The shares are walked again anyway, and nothing waits for the sum.
inline constexpr program beside =
    op<"beside">(out<"y">(b, n) = shares, out<"z">(b) = sum(over(n), g(b, n) * shares));
inline constexpr program waited_for =
    op<"waited_for">(out<"y">(b, n) = shares - sum(over(n), g(b, n) * shares));
/// Not sums of shares times something that is known beforehand.
inline constexpr program squares = op<"squares">(out<"y">(b) = sum(over(n), shares* shares));
inline constexpr program nested =
    op<"nested">(out<"y">(b) = sum(over(n), shares* scan(plain_sum, over(n), g(b, n))));
inline constexpr program of_another =
    op<"of_another">(out<"y">(b) = sum(over(n), exp(g(b, n) - last(scan(log_add_exp, over(n), x(b, n))))));
inline constexpr program restarting = op<"restarting">(
    out<"y">(b) = sum(
        over(n), g(b, n) * exp(x(b, n) - last(scan(log_add_exp, over(n).restart_every(chunk), x(b, n))))));
inline constexpr program running = op<"running">(out<"y">(b, n) = scan(plain_sum, over(n), g(b, n) * shares));
inline constexpr program across = op<"across">(out<"y">(n) = sum(over(b), g(b, n) * shares));

constexpr int joined_in(const program& p) {
  return detail::weighted_sums_of(simplify(expand_sums(drop_rules(p)))).count;
}

}  // namespace

TEST_CASE("sums of shares join the walk of their log-sum", "[pass][weighted_sums]") {
  STATIC_REQUIRE(joined_in(dnormalised) == 1);
  STATIC_REQUIRE(joined_in(pooled) == 1);
  STATIC_REQUIRE(joined_in(pooled_backwards) == 1);
  STATIC_REQUIRE(joined_in(two_pooled) == 2);
  STATIC_REQUIRE(joined_in(waited_for) == 1);
  constexpr program together = prepare(two_pooled);
  STATIC_REQUIRE(together.scans.count == 1);
  STATIC_REQUIRE(together.scans[0].components == 4);  // maximum, sum, and the two
  STATIC_REQUIRE(!together.scans[0].log_sum);
}

TEST_CASE("other sums stay walks of their own", "[pass][weighted_sums]") {
  for (const program* p : {&beside, &squares, &nested, &of_another, &restarting, &running, &across}) {
    INFO(p->id.view());
    CHECK(joined_in(*p) == 0);
  }
}

TEST_CASE("a joined sum is the same number", "[pass][weighted_sums]") {
  std::mt19937 random(91);
  std::normal_distribution<double> normal;
  for (const double spread : {1.0, 50.0, 1e3})
    for (const program* p : {&dnormalised, &pooled, &pooled_backwards, &two_pooled, &waited_for, &beside}) {
      std::map<std::string, oracle_tensor> inputs;
      for (const tensor_decl& t : p->tensors) {
        if (t.role != tensor_role::input) continue;
        oracle_tensor& made = inputs[std::string(t.id.view())];
        for (const std::int16_t a : t.axes) made.extents.push_back(p->axes[a] == b.id ? 3 : 11);
        const int count = t.axes.count == 2 ? 33 : 3;
        for (int i = 0; i < count; ++i) made.values.push_back((t.id == x.id ? spread : 1.0) * normal(random));
      }
      inputs["x"].values[4] = -inf;
      const auto expected = oracle(*p, inputs), got = oracle(prepare(*p), inputs);
      INFO(p->id.view() << ", spread " << spread);
      for (const auto& [id, want] : expected)
        for (std::size_t i = 0; i < want.values.size(); ++i)
          CHECK(got.at(id).values[i] == Approx(want.values[i]).epsilon(1e-12).margin(1e-13));
    }
}

namespace {

/// How often the sweeps of P's kernels read or write all of a tensor over (b, n), whatever the executor.
template <const program& P> int passes_over_memory() {
  int passes = 0;
  const auto is_large = [](const program& kernel, int tensor) {
    return kernel.tensors[tensor].axes.count == 2;
  };
  [&]<int... K>(std::integer_sequence<int, K...>) {
    const auto add = [&](const program& kernel, const walk_table& table) {
      for (int i = 0; i < table.sweeps; ++i) {
        for (const stream_read& read : table.sweep[i].reads)
          passes += read.from == source::memory && is_large(kernel, read.tensor);
        for (const std::int16_t store : table.sweep[i].stores)
          passes += is_large(kernel, kernel.stores[store].tensor);
      }
    };
    (add(kernel_program<P, K>, kernel_table<P, K>), ...);
  }(std::make_integer_sequence<int, kernels_of<P>.programs.count>{});
  return passes;
}

constexpr tensor<"u"> u;
constexpr tensor<"v"> v;
inline constexpr program rotated =
    op<"rotated">(out<"y">(b, n) = shares * u(n), out<"z">(b, n) = shares * v(n));
inline constexpr program drotated = gradient(rotated, x);

}  // namespace

TEST_CASE("traffic of a softmax over the walked axis", "[pass][weighted_sums]") {
  CHECK(passes_over_memory<normalised>() == 3);   // x twice, y
  CHECK(passes_over_memory<dnormalised>() == 5);  // x and dy twice, dx
  CHECK(passes_over_memory<pooled>() == 2);       // x and g once
  CHECK(passes_over_memory<rotated>() == 4);      // x twice, y, z
  CHECK(passes_over_memory<drotated>() == 7);     // x, dy and dz twice, dx
  for (const auto count : {kernels_of<rotated>.programs.count, kernels_of<drotated>.programs.count})
    CHECK(count == 1);
}
