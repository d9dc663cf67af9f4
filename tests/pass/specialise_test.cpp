#include "scandsl/ir/lower.hpp"
#include "scandsl/ir/oracle.hpp"
#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/specialise.hpp"
#include "support/catch.hpp"
#include "support/operands.hpp"

using namespace scandsl;

namespace {

constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"bias"> bias;
constexpr scalar<"cap"> cap;
constexpr scalar<"scale"> scale;
constexpr scalar<"backwards"> backwards;
constexpr integer_scalar<"shift"> shift;

// [doc:specialise]
constexpr auto biased = x(n) + value_or(bias(n), 0.0);
constexpr auto capped = select(cap != 0.0, cap* tanh(biased / cap), biased);
constexpr program with_choices = op<"sums">(out<"y">(n) = scan(plain_sum, over(n), capped));
constexpr program plain = specialise(with_choices, cap = 0.0, without(bias));
constexpr program same = op<"sums">(out<"y">(n) = scan(plain_sum, over(n), x(n)));
static_assert(plain == simplify(same));
// [/doc:specialise]

const tensors inputs = {{"x", {{0.5, -1, 2, 0}, {4}}}, {"bias", {{1, 2, -1, 3}, {4}}}};

tensors of(const program& p) { return operands_of(p, inputs); }

}  // namespace

TEST_CASE("a specialised program computes what the program does in such calls", "[specialise]") {
  static constexpr program half = specialise(with_choices, cap = 2.0);
  CHECK(half.parameters.count == 0);
  CHECK(half.find_tensor(make_name("bias")) >= 0);
  CHECK(oracle(half, inputs).at("y").values == oracle(with_choices, inputs, {{"cap", 2.0}}).at("y").values);
  CHECK(oracle(plain, of(plain)).at("y").values ==
        oracle(with_choices, {{"x", inputs.at("x")}}, {{"cap", 0.0}}).at("y").values);
}

TEST_CASE("a direction that is known is fixed", "[specialise]") {
  static constexpr program either =
      op<"either">(out<"y">(n) = scan(plain_sum, over(n).reversed(backwards), x(n)));
  static constexpr program forwards = specialise(either, backwards = 0),
                           back = specialise(either, backwards = 1);
  CHECK(forwards.parameters.count == 0);
  CHECK(oracle(forwards, of(forwards)).at("y").values ==
        oracle(either, of(either), {{"backwards", 0.0}}).at("y").values);
  CHECK(oracle(back, of(back)).at("y").values ==
        oracle(either, of(either), {{"backwards", 1.0}}).at("y").values);
}

TEST_CASE("outputs may be left out", "[specialise]") {
  static constexpr program two = op<"two">(out<"y">(n) = x(n) * scale, out<"z">(n).optional() = exp(x(n)));
  static constexpr program one = specialise(two, without(tensor<"z">{}), scale = 1.0);
  static constexpr program copy = op<"two">(out<"y">(n) = x(n));
  CHECK(one == simplify(copy));
}

TEST_CASE("integers stay integers", "[specialise]") {
  static constexpr program moved = op<"moved">(out<"y">(n) = x(n) * (index(n) + shift));
  static constexpr program by_three = specialise(moved, shift = 3);
  CHECK(oracle(by_three, of(by_three)).at("y").values ==
        oracle(moved, of(moved), {{"shift", 3.0}}).at("y").values);
}

TEST_CASE("a specialised program has a gradient", "[specialise]") {
  static constexpr program first = gradient(specialise(with_choices, cap = 0.0), x),
                           last = specialise(gradient(with_choices, x), cap = 0.0);
  tensors given = of(last);
  given["dy"] = {{1, -2, 0.5, 3}, {4}};
  tensors of_first = of(first);
  of_first["dy"] = given["dy"];
  CHECK(oracle(first, of_first).at("dx").values == oracle(last, given).at("dx").values);
}
