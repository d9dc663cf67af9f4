#include "scandsl/pass/reduction.hpp"

#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/prepare.hpp"
#include "support/catch.hpp"

namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;
constexpr integer_tensor<"cu"> cu;
constexpr scalar<"every"> every;

template <class Op, class... X> program reduced(Op combine, X... given) {
  return prepare(op<"reduced">(out<"y">(b) = last(scan(combine, over(n), given...))));
}

inline constexpr auto softmax_along = op<"softmax_along">(out<"y">(b, n) = softmax(over(n), x(b, n)));
inline constexpr auto dsoftmax_along = gradient(softmax_along);

}  // namespace

TEST_CASE("sums, products, extrema and log-sums are reduced in any order", "[pass][reduction]") {
  for (const program& each :
       {reduced(plain_sum, x(b, n)), reduced(product, x(b, n)), reduced(maximum, x(b, n)),
        reduced(minimum, x(b, n)), reduced(log_add_exp, x(b, n))}) {
    CHECK(commutes(each, 0));
    CHECK(is_reduction(each));
  }
}

TEST_CASE("a decayed sum is not, for its order matters", "[pass][reduction]") {
  const program decayed = reduced(decayed_sum, a(b, n), x(b, n));
  CHECK_FALSE(commutes(decayed, 0));
  CHECK_FALSE(is_reduction(decayed));
}

TEST_CASE("softmax is a reduction, and its gradient, whose sums join the log-sum", "[pass][reduction]") {
  CHECK(is_reduction(kernel_program<softmax_along, 0>));
  const program& backward = kernel_program<dsoftmax_along, 0>;
  CHECK(backward.scans[0].joins_log_sum);
  CHECK(is_reduction(backward));
}

TEST_CASE("what is wanted at every step, by chunk or by sequence is no reduction", "[pass][reduction]") {
  CHECK_FALSE(is_reduction(prepare(op<"every_step">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n))))));
  CHECK_FALSE(is_reduction(
      prepare(op<"by_chunk">(out<"y">(b) = last(scan(plain_sum, over(n).restart_every(every), x(b, n)))))));
  CHECK_FALSE(is_reduction(prepare(
      op<"by_sequence">(out<"y">(s, b) = last(scan(plain_sum, over(n).restart_at(cu(s)), x(b, n)))))));
  CHECK_FALSE(is_reduction(prepare(op<"elementwise">(out<"y">(b, n) = exp(x(b, n))))));
}

TEST_CASE("of plain sums whose last values are followed by something a gradient wants these alone",
          "[pass][reduction]") {
  const auto squares = last(scan(plain_sum, over(n), x(b, n) * x(b, n)));
  const auto norm = op<"norm">(out<"y">(b) = exp(a(b)) * sqrt(squares));
  const auto scaled = op<"scaled">(out<"y">(b, n) = x(b, n) / squares);
  const auto sum = op<"sum">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n)));
  for (const program& each : {program(norm), program(scaled), program(sum)})
    CHECK_FALSE(gradient_has_states(prepare(each)));
  CHECK(only_reduces(prepare(gradient(norm))));
  CHECK(only_reduces(prepare(gradient(scaled))));

  const auto followed = op<"followed">(out<"y">(b, n) = exp(scan(plain_sum, over(n), x(b, n))));
  CHECK(gradient_has_states(prepare(followed)));
  CHECK_FALSE(only_reduces(prepare(gradient(followed))));
  CHECK(gradient_has_states(reduced(decayed_sum, a(b, n), x(b, n))));
}
