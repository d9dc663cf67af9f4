#include "scandsl/pass/telescope.hpp"

#include <algorithm>
#include <cmath>

#include "scandsl/ir/lower.hpp"
#include "scandsl/ir/oracle.hpp"
#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/jvp.hpp"
#include "scandsl/pass/prepare.hpp"
#include "support/catch.hpp"

namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;
constexpr scalar<"exclusive"> exclusive;
constexpr scalar<"reverse"> reverse;

constexpr program inclusive = gradient(op<"inclusive">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n))));
constexpr program before =
    gradient(op<"before">(out<"y">(b, n) = scan(log_add_exp, over(n).exclusive(), x(b, n))));
constexpr program by_flags = gradient(op<"by_flags">(
    out<"y">(b, n) = scan(log_add_exp, over(n).reversed(reverse).exclusive(exclusive), x(b, n))));
constexpr program weighted =
    gradient(op<"weighted">(out<"y">(b, n) = a(b, n) * scan(log_add_exp, over(n), x(b, n))));
constexpr program decayed =
    gradient(op<"decayed">(out<"y">(b, n) = scan(decayed_sum, over(n), a(b, n), x(b, n))));

constexpr program forward = jvp(op<"forward">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n))));

constexpr int scaled_scans(const program& p) {
  int count = 0;
  for (const scan_decl& s : p.scans)
    if (s.scaled_by >= 0) count += p.scans[s.scaled_by].log_sum && s.components == 1 ? 1 : 100;
  return count;
}

constexpr bool reads_carry_of_scaled_scan(const program& p) {
  for (const node& each : p.nodes)
    if (each.op == opcode::carry && p.scans[each.target].scaled_by >= 0) return true;
  return false;
}

}  // namespace

TEST_CASE("a recurrence by ratios of a log-sum's sums becomes a plain sum", "[telescope]") {
  STATIC_REQUIRE(scaled_scans(telescope(prepare(inclusive))) == 1);
  STATIC_REQUIRE(scaled_scans(telescope(prepare(before))) == 1);
  STATIC_REQUIRE(scaled_scans(telescope(prepare(by_flags))) == 1);
  STATIC_REQUIRE(scaled_scans(telescope(prepare(weighted))) == 1);
  // What its sum and its cotangent make is the sum behind it.
  STATIC_REQUIRE_FALSE(reads_carry_of_scaled_scan(telescope(prepare(inclusive))));
  STATIC_REQUIRE(reads_carry_of_scaled_scan(telescope(prepare(before))));
  STATIC_REQUIRE(telescope(prepare(inclusive)).tensors.count == prepare(inclusive).tensors.count);
}

TEST_CASE("other recurrences stay as they are", "[telescope]") {
  STATIC_REQUIRE(telescope(prepare(decayed)) == prune(prepare(decayed)));
  STATIC_REQUIRE_FALSE(is_telescoped(telescope(prepare(forward))));  // it walks along with the sum
  STATIC_REQUIRE_FALSE(is_telescoped(prepare(inclusive)));
}

// In the oracle the m of a log-sum stays where a row's first element is its largest: what telescope asks for.
TEST_CASE("in one frame both compute the same gradients", "[telescope]") {
  const std::int64_t rows = 3, steps = 17;
  oracle_tensor elements{{}, {rows, steps}}, cotangents = elements, factors = elements;
  for (std::int64_t i = 0; i < rows * steps; ++i) {
    const auto t = static_cast<double>(i);
    elements.values.push_back(3.0 * std::sin(1.7 * t) - 4.0);
    cotangents.values.push_back(std::cos(2.9 * t));
    factors.values.push_back(0.5 + std::sin(0.4 * t));
  }
  for (const bool flag : {false, true})
    for (const program* p : {&inclusive, &before, &by_flags, &weighted}) {
      CAPTURE(std::string(p->id.view()), flag);
      for (std::int64_t row = 0; row < rows; ++row)
        for (const std::int64_t first : {std::int64_t{0}, steps - 1})
          elements.values[static_cast<std::size_t>(row * steps + first)] =
              first == 0 || p == &by_flags ? 5.0 : -4.0;
      std::map<std::string, oracle_tensor> inputs = {{"x", elements}, {"dy", cotangents}};
      std::map<std::string, double> flags;
      if (p == &weighted) inputs["a"] = factors;
      if (p == &by_flags) flags = {{"exclusive", flag ? 1.0 : 0.0}, {"reverse", flag ? 1.0 : 0.0}};
      const program robust = prepare(*p);
      const auto expected = oracle(robust, inputs, flags, {}),
                 got = oracle(telescope(robust), inputs, flags, {});
      REQUIRE(expected.size() == got.size());
      for (const auto& [id, values] : expected)
        for (std::size_t i = 0; i < values.values.size(); ++i) {
          CAPTURE(id, i);
          CHECK(std::fabs(got.at(id).values[i] - values.values[i]) <=
                1e-13 * std::max(1.0, std::fabs(values.values[i])));
        }
    }
}
