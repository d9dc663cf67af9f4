#include "scandsl/ir/lower.hpp"
#include "scandsl/ir/oracle.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"
#include "support/operands.hpp"

using namespace scandsl;

namespace {

constexpr axis<"n"> n;
constexpr axis<"v"> v;
constexpr tensor<"x"> x;
constexpr tensor<"w"> w;

constexpr auto lse = last(scan(log_add_exp, over(v), x(n, v) * w(v)));
constexpr auto source = op<"source">(out<"lse">(n) = lse, out<"y">(n, v).optional() = square(x(n, v) - lse));
constexpr auto both = value_and_gradient(source, x);

const tensors inputs = {{"x", {{0.5, -1, 2, 0, 3, 1}, {2, 3}}},
                        {"w", {{1, 2, -1}, {3}}},
                        {"dlse", {{1, -2}, {2}}},
                        {"dy", {{1, 0, 2, -1, 3, 1}, {2, 3}}}};

tensors of(const program& p) { return operands_of(p, inputs); }

}  // namespace

TEST_CASE("value_and_gradient has the outputs of the program and those of its gradient", "[gradient]") {
  const program alone = gradient(source, x);
  const tensors values = oracle(source, of(source)), gradients = oracle(alone, of(alone)),
                all = oracle(both, of(both));
  REQUIRE(all.size() == 3);
  CHECK(all.at("lse").values == values.at("lse").values);
  CHECK(all.at("y").values == values.at("y").values);
  CHECK(all.at("dx").values == gradients.at("dx").values);
}

TEST_CASE("value_and_gradient computes what both need once", "[gradient]") {
  CHECK(both.scans.count == 1);
  CHECK(both.nodes.count < source.nodes.count + gradient(source, x).nodes.count);
  CHECK(both.tensors[both.find_tensor(make_name("y"))].optional);
}
