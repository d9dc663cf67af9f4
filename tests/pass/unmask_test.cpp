#include "scandsl/pass/unmask.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "scandsl/ir/lower.hpp"
#include "scandsl/ir/oracle.hpp"
#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/prepare.hpp"
#include "support/catch.hpp"

namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"z"> z;
constexpr tensor<"a"> a;
constexpr tensor<"w"> w;

constexpr auto log_sum_of_x = reduce(log_add_exp, over(n), x(b, n));
constexpr program total = prepare(gradient(op<"total">(out<"y">(b) = log_sum_of_x), x));
/// It says 0 of another x, of a share that is added and not multiplied with, or of a quotient; something
/// else; or what the share is multiplied with may be infinite where x is -inf alone.
constexpr program of_others = prepare(
    op<"of_others">(out<"u">(b, n) = select(z(b, n) == -inf, 0.0, a(b) * exp(x(b, n) - log_sum_of_x)),
                    out<"v">(b, n) = select(x(b, n) == -inf, 0.0, a(b) + exp(x(b, n) - log_sum_of_x)),
                    out<"t">(b, n) = select(x(b, n) == -inf, 0.0, a(b) / exp(x(b, n) - log_sum_of_x)),
                    out<"q">(b, n) = select(x(b, n) == -inf, 1.0, a(b) * exp(x(b, n) - log_sum_of_x)),
                    out<"r">(b, n) = select(x(b, n) == -inf, 0.0, w(b, n) * exp(x(b, n) - log_sum_of_x)),
                    out<"p">(b, n) = select(x(b, n) == -inf, 0.0, x(b, n) * exp(x(b, n) - log_sum_of_x))));

}  // namespace

TEST_CASE("a share that is 0 in a frame is not masked", "[unmask]") {
  STATIC_REQUIRE(has_masked_shares(total));
  STATIC_REQUIRE_FALSE(has_masked_shares(unmask(total)));
  STATIC_REQUIRE_FALSE(has_masked_shares(of_others));
  STATIC_REQUIRE(unmask(of_others) == prune(of_others));
}

TEST_CASE("with a finite maximum both compute the same", "[unmask]") {
  constexpr double none = -std::numeric_limits<double>::infinity();
  const oracle_tensor elements{{1.0, none, 0.5, none, -700.0, 3.0, none, 3.0}, {2, 4}},
      cotangents{{2.0, -3.0}, {2}};
  const std::map<std::string, oracle_tensor> inputs = {{"x", elements}, {"dy", cotangents}};
  const auto expected = oracle(total, inputs, {}, {}), got = oracle(unmask(total), inputs, {}, {});
  REQUIRE(got.at("dx").values.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CAPTURE(i);
    CHECK(got.at("dx").values[i] == expected.at("dx").values[i]);
    CHECK((elements.values[i] != none || got.at("dx").values[i] == 0));
  }
}
