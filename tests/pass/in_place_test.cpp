#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/prepare.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"k"> k;
constexpr tensor<"x"> x;
constexpr tensor<"w"> w;
constexpr tensor<"start"> start;
constexpr integer_tensor<"place"> place;

/// Whether the first output may overwrite an input.
template <const program& P> constexpr bool allows(const char* output, const char* input) {
  return works_in_place<P>().allows(P.find_tensor(make_name(output)), P.find_tensor(make_name(input)));
}

constexpr auto product_of = op<"product_of">(out<"y">(b, n) = x(b, n) * w(b, n));
constexpr auto total = last(scan(log_add_exp, over(n), x(b, n)));
constexpr auto shares = op<"softmax">(out<"y">(b, n) = exp(x(b, n) - total));
constexpr auto logcumsumexp = op<"logcumsumexp">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n)));
constexpr auto backward = gradient(logcumsumexp);
constexpr auto scanned = scan(decayed_sum, over(n).starting_from(start(b)), w(b, n), x(b, n));
constexpr auto with_states = op<"with_states">(out<"y">(b, n) = scanned, out<"finish">(b) = last(scanned));
constexpr auto early = op<"early">(out<"y">(b, n) = (x(b, n) - total) * start(b), out<"lse">(b) = total);
constexpr auto two_kernels =
    op<"two_kernels">(out<"y">(b, n) = scan(plain_sum, over(b), exp(x(b, n) - total)));
constexpr auto less_one =
    op<"less_one">(out<"y">(b, n) = exp(x(b, n) - total), out<"one">(b) = total - x(b, n[place(b)]));
constexpr auto one_of_all = op<"one_of_all">(out<"y">(b, n) = x(b, n) - x(b, n[place(b)]));
constexpr auto permuted = op<"permuted">(out<"y">(b, n) = w(b, n) + x(b, k[place(b, n)]));

}  // namespace

TEST_CASE("elements that are read where they are written may be overwritten", "[in_place]") {
  CHECK(allows<product_of>("y", "x"));
  CHECK(allows<product_of>("y", "w"));
  CHECK(allows<with_states>("y", "x"));
  CHECK(allows<with_states>("finish", "start"));
}

TEST_CASE("a later sweep in the same direction may overwrite what earlier ones read", "[in_place]") {
  CHECK(kernel_schedule<shares, 0>.sweeps == 2);
  CHECK(allows<shares>("y", "x"));
}

TEST_CASE("what is read again, elsewhere or by another kernel may not be overwritten", "[in_place]") {
  CHECK(kernel_schedule<backward, 0>.sweeps == 2);
  CHECK_FALSE(allows<backward>("dx", "x"));  // sweeps in opposite directions
  CHECK(allows<early>("y", "x"));
  CHECK_FALSE(allows<early>("lse", "start"));  // written before the second sweep, which reads start
  CHECK_FALSE(allows<two_kernels>("y", "x"));
  CHECK(allows<permuted>("y", "w"));
  CHECK_FALSE(allows<permuted>("y", "x"));
}

TEST_CASE("single elements of a lane may be overwritten once a sweep's last values are waited for",
          "[in_place]") {
  CHECK(allows<less_one>("y", "x"));
  CHECK_FALSE(allows<one_of_all>("y", "x"));  // no thread waits for the others
}
