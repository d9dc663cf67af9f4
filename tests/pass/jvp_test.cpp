#include "scandsl/pass/jvp.hpp"

#include "support/catch.hpp"
#include "support/derivative.hpp"

using namespace scandsl;
using derivative::tensors;
using generate::random_case;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;
constexpr tensor<"h"> h;
constexpr scalar<"t"> t;
constexpr scalar<"chunk"> chunk;

// The tangent of a scan runs the same way, with the same restarts.
constexpr auto logcumsumexp =
    op<"logcumsumexp">(out<"y">(b, n) = scan(log_add_exp, over(n).reversed().restart_every(chunk), x(b, n)));
constexpr auto tangent = jvp(logcumsumexp);
static_assert(tangent.scans.count == 2 && tangent.scans[1].reversed &&
              tangent.scans[1].same_walk(tangent.scans[0]) && tangent.scans[1].components == 2);
static_assert(simplify(tangent) == tangent);

// A linear program is its own derivative: nothing but the tangent is read.
constexpr auto summed = op<"summed">(out<"y">(b, n) = scan(plain_sum, over(n).exclusive(), x(b, n)));
static_assert(jvp(summed).scans.count == 1 && jvp(summed).find_tensor(x.id) < 0 &&
              jvp(summed).find_tensor(make_name("tx")) >= 0 && jvp(summed).find_tensor(make_name("ty")) >= 0);

// Of a decayed sum only h has a tangent that is read; the decays are carried for it.
constexpr auto decayed = op<"decayed">(
    out<"y">(b, n) = scan(decayed_sum, over(n).starting_from(value_or(h(b), 0.0)), t* a(b, n), x(b, n)));
static_assert(jvp(decayed).scans.count == 2 && jvp(decayed).scans[1].components == 2);

// Tangents that are not bound are 0, where there are several; a scalar's is a scalar.
constexpr const tensor_decl& named(const program& p, const char* id) {
  return p.tensors[p.find_tensor(make_name(id))];
}
constexpr auto tdecayed = jvp(decayed);
static_assert(named(tdecayed, "tx").optional && named(tdecayed, "th").fallback == 0.0);
static_assert(tdecayed.find_parameter(make_name("tt")) >= 0);
static_assert(!named(jvp(summed), "tx").optional);

// Second order: a name that is taken gets another t.
constexpr auto squared = op<"squared">(out<"y">(n) = x(n) * x(n));
constexpr auto twice = jvp(jvp(squared));
static_assert(twice.find_tensor(make_name("ttx")) >= 0 && twice.find_tensor(make_name("tttx")) >= 0);

}  // namespace

TEST_CASE("tangents of x squared, twice", "[pass][jvp]") {
  random_case c;
  c.inputs = {{"x", {{1.5, -2.0}, {2}}},
              {"tx", {{0.25, 1.0}, {2}}},
              {"ttx", {{3.0, -1.0}, {2}}},   // of x
              {"tttx", {{0.5, 2.0}, {2}}}};  // of tx
  c.extents = {{"n", 2}};
  const tensors got = derivative::outputs_of(twice, c);
  // d(2 x tx) = 2 tx (of x) + 2 x (of tx)
  CHECK(got.at("tty").values == std::vector<double>{2 * 0.25 * 3.0 + 2 * 1.5 * 0.5, -2.0 - 8.0});
}

TEST_CASE("the tangent of a log-add-exp over the whole range", "[pass][jvp]") {
  constexpr auto log_sums = op<"log_sums">(
      out<"y">(n) = scan(log_add_exp, over(n).starting_from(value_or(scalar<"h">{}, -inf)), x(n)));
  const program tp = jvp(log_sums);
  random_case c;
  c.inputs = {{"x", {{-inf, -inf, 1000.0, -1000.0, 1000.0, inf, 0.0}, {7}}},
              {"tx", {{7.0, 7.0, 1.0, 5.0, 3.0, 1.0, 1.0}, {7}}}};
  c.scalars = {{"th", 11.0}};
  c.extents = {{"n", 7}};
  const std::vector<double> got =
      derivative::outputs_of(tp, derivative::restricted_to(tp, c)).at("ty").values;
  CHECK(std::vector<double>(got.begin(), got.begin() + 4) == std::vector<double>{0.0, 0.0, 1.0, 1.0});
  CHECK(got[4] == Approx(2.0));
  CHECK(std::isnan(got[5]));
  CHECK(std::isnan(got[6]));
}

TEST_CASE("a derivative rule serves forward mode too", "[pass][jvp]") {
  constexpr auto given = fn([](auto z) { return z * z; }).derivative([](auto z, auto) { return 7.0 * z; });
  constexpr auto p = op<"given">(out<"y">(n) = given(x(n)));
  random_case c;
  c.inputs = {{"x", {{2.0}, {1}}}, {"tx", {{0.5}, {1}}}};
  c.extents = {{"n", 1}};
  CHECK(derivative::outputs_of(jvp(p), c).at("ty").values == std::vector<double>{7.0});
}
