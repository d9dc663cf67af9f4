#include "scandsl/pass/log_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scandsl/ir/lower.hpp"
#include "scandsl/ir/oracle.hpp"
#include "support/catch.hpp"

namespace {

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"h"> h;
constexpr tensor<"offsets"> offsets;

constexpr auto project_one = [](auto state_) {
  auto [value] = state_;
  return value;
};
/// The same operator in a user's words, with the operands of combine the other way round.
constexpr auto flipped = scan_op(
    state(-inf), [](auto v) { return state(v); },
    [](auto l, auto r) {
      auto [p] = l;
      auto [q] = r;
      return state(logaddexp(q, p));
    },
    project_one);
/// Something else that uses logaddexp.
constexpr auto weighted = scan_op(
    state(-inf), [](auto v) { return state(v); },
    [](auto l, auto r) {
      auto [p] = l;
      auto [q] = r;
      return state(logaddexp(p, q) + 0.0 * q);
    },
    project_one);

constexpr auto walk = over(n).restart_at(offsets(s)).starting_from(value_or(h(s), -inf));
constexpr program with_options =
    op<"with_options">(out<"y">(n) = scan(log_add_exp, walk, x(n)),
                       out<"before">(n) = scan(log_add_exp, walk.exclusive().reversed(), x(n)),
                       out<"last">(s) = last(scan(log_add_exp, walk, x(n))));
constexpr program no_start = op<"no_start">(out<"y">(n) = scan(log_add_exp, over(n).exclusive(), x(n)));
constexpr program by_user = op<"by_user">(out<"y">(n) = scan(flipped, over(n), x(n)));
constexpr program other =
    op<"other">(out<"y">(n) = scan(weighted, over(n), x(n)), out<"z">(n) = scan(plain_sum, over(n), x(n)),
                out<"m">(n) = scan(running_max_sum, over(n), x(n)));
constexpr program nested =
    op<"nested">(out<"y">(n) = scan(log_add_exp, over(n), scan(log_add_exp, over(n).reversed(), x(n))));

constexpr bool all_have_components(const program& p, int components) {
  for (const scan_decl& each : p.scans)
    if (each.components != components) return false;
  return true;
}

bool same(double got, double expected) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  return got == expected || std::fabs(got - expected) <= 1e-13 * std::max(1.0, std::fabs(expected));
}

}  // namespace

TEST_CASE("log-add-exp is carried as a maximum and a sum", "[log_sum]") {
  STATIC_REQUIRE(all_have_components(log_sum(with_options), 2));
  STATIC_REQUIRE(all_have_components(log_sum(by_user), 2));
  STATIC_REQUIRE(all_have_components(log_sum(nested), 2));
  STATIC_REQUIRE(log_sum(with_options).scans.count == with_options.scans.count);
}

TEST_CASE("other scans stay as they are", "[log_sum]") { STATIC_REQUIRE(log_sum(other) == prune(other)); }

TEST_CASE("a second application changes nothing", "[log_sum]") {
  for (const program* p : {&with_options, &no_start, &by_user, &other, &nested})
    CHECK(log_sum(log_sum(*p)) == log_sum(*p));
}

TEST_CASE("an absent initial state is the identity, a given one is a sum of 1", "[log_sum]") {
  constexpr program bare = log_sum(no_start);
  STATIC_REQUIRE(bare.scans[0].initial[0] == no_node);
  STATIC_REQUIRE(bare.scans[0].initial[1] == no_node);
  STATIC_REQUIRE(bare.scans[0].identity[0] == -inf);
  STATIC_REQUIRE(bare.scans[0].identity[1] == 0.0);
  constexpr program seeded = log_sum(with_options);
  STATIC_REQUIRE(seeded.nodes[seeded.scans[0].initial[1]].value == 1.0);
}

TEST_CASE("the meaning stays, with infinities, NaN and wide ranges", "[log_sum]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> rows = {{0.5, -1, 2, 0.25, 1, -3},
                                                 {-inf, -inf, -inf, -inf, -inf, -inf},
                                                 {-inf, -inf, 1, -inf, 3, 700},
                                                 {1, inf, 2, -inf, inf, 0},
                                                 {1, 2, nan, 4, inf, -inf},
                                                 {1e4, -1e4, 0, 1e4, -1e300, 1e300},
                                                 {3, 3, 3, 3, 3, 3}};
  for (const auto& row : rows)
    for (const program* p : {&with_options, &no_start, &by_user, &nested})
      for (const bool bound : {false, true}) {
        const oracle_tensor given{row, {6}};
        std::map<std::string, oracle_tensor> inputs{{"x", given}};
        if (p == &with_options && bound) inputs["offsets"] = {{0, 2, 2, 6}, {4}};
        if (p == &with_options && bound) inputs["h"] = {{-inf, 0.5, 2}, {3}};
        const auto expected = oracle(*p, inputs), got = oracle(log_sum(*p), inputs);
        INFO(p->id.view() << " on a row from " << row[0] << " to " << row[5]);
        for (const auto& [id, want] : expected)
          for (std::size_t i = 0; i < want.values.size(); ++i)
            CHECK(same(got.at(id).values[i], want.values[i]));
      }
}

namespace {

// What a softmax and the gradient of a log-sum are made of.
constexpr program shares =
    op<"shares">(out<"share">(n) = exp(x(n) - scan(log_add_exp, over(n), x(n))),
                 out<"kept">(n) = exp_difference(scan(log_add_exp, over(n).exclusive(), x(n)),
                                                 scan(log_add_exp, over(n), x(n))),
                 out<"softmax">(n) = exp(x(n) - last(scan(log_add_exp, over(n), x(n)))));
constexpr int logarithms(const program& p) {
  int count = 0;
  for (const node& each : p.nodes) count += is_apply<primitive::log_op>(each);
  return count;
}
static_assert(logarithms(log_sum(shares)) == 0 && log_sum(shares).scans.count == 1);
static_assert(logarithms(log_sum(with_options)) == 3);

}  // namespace

TEST_CASE("exponentials of differences with a log-sum lose nothing to its size", "[log_sum]") {
  // Near 1e15 a log-sum is rounded to 1/8; the shares are those of 0, 1, 2, 3 all the same.
  for (const double offset : {0.0, 1e15, -1e15}) {
    const std::map<std::string, oracle_tensor> inputs{
        {"x", {{offset, offset + 1, offset + 2, offset + 3}, {4}}}};
    const auto got = oracle(log_sum(shares), inputs);
    double sum = 0.0;
    for (std::size_t t = 0; t < 4; ++t) {
      const double before = sum, each = std::exp(static_cast<double>(t));
      sum += each;
      CHECK(got.at("share").values[t] == Approx(each / sum).epsilon(1e-14));
      CHECK(got.at("kept").values[t] == Approx(before / sum).epsilon(1e-14));
    }
    for (std::size_t t = 0; t < 4; ++t)
      CHECK(got.at("softmax").values[t] == Approx(std::exp(static_cast<double>(t)) / sum).epsilon(1e-14));
  }
}

TEST_CASE("nothing is kept of nothing, and all of what does not move", "[log_sum]") {
  const double none = -std::numeric_limits<double>::infinity();
  const auto got =
      oracle(log_sum(shares), {{"x", {{none, none, 1.0, none, -none, 2.0}, {6}}}}).at("kept").values;
  for (const double each : got) CHECK(!std::isnan(each));
  CHECK(got[2] == 0.0);
  CHECK(got[3] == 1.0);
  CHECK(got[4] == 0.0);
  CHECK(got[5] == 1.0);
}

namespace {

constexpr axis<"b"> b;
constexpr tensor<"g"> g;
constexpr auto row_share = exp(x(b, n) - last(scan(log_add_exp, over(n), x(b, n))));
/// As the gradient of a row's log-sum has it.
constexpr program weighted_rows =
    op<"weighted_rows">(out<"y">(b, n) = select(x(b, n) == -inf, 0.0, row_share* g(b)));

}  // namespace

TEST_CASE("the gradient by an element of -inf is 0, whatever the cotangent", "[log_sum]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::map<std::string, oracle_tensor> inputs{
      {"x", {{1, -inf, 3, -inf, -inf, -inf, -inf, 700, -inf, -inf, nan, 2}, {4, 3}}},
      {"g", {{inf, -3, nan, 2}, {4}}}};
  const auto got = oracle(log_sum(weighted_rows), inputs).at("y").values,
             expected = oracle(weighted_rows, inputs).at("y").values;
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("at " << i);
    CHECK(same(got[i], expected[i]));
    if (inputs.at("x").values[i] == -inf) CHECK(got[i] == 0.0);
  }
}
