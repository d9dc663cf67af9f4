#include "scandsl/pass/rotation.hpp"

#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/prepare.hpp"
#include "support/catch.hpp"

namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"theta"> theta;
constexpr integer_tensor<"given"> given;
constexpr integer_scalar<"offset"> offset;

template <class Position, class Theta> program encoded(Position position, Theta angle) {
  return prepare(op<"encoded">(out<"y">(b, n, d) = x(b, n, d) * cos_of_product(position, angle)));
}

bool may_turn(const program& p, const char* along) {
  const int axis = p.find_axis(make_name(along));
  for (int i = 0; i < p.nodes.count; ++i)
    if (may_turn_along(p, i, axis)) return true;
  return false;
}
bool rotates(const program& p, const char* along) {
  const int axis = p.find_axis(make_name(along));
  for (int i = 0; i < p.nodes.count; ++i)
    if (rotates_along(p, i, axis)) return true;
  return false;
}

inline constexpr auto forward =
    op<"forward">(out<"y">(b, n, d) = x(b, n, d) * cos_of_product(index(n) + offset, theta(d)));
/// Whose positions do not advance evenly.
inline constexpr auto shifted =
    op<"shifted">(out<"y">(b, n, d) = x(b, n, d) * cos_of_product(index(n) % 7, theta(d)));
inline constexpr auto summed = op<"summed">(
    out<"y">(b, n, d) = scan(plain_sum, over(n), x(b, n, d) * sin_of_product(index(n), theta(d))));

}  // namespace

TEST_CASE("a sine rotates along an axis on which its position advances evenly", "[pass][rotation]") {
  CHECK(rotates(encoded(index(n), theta(d)), "n"));
  CHECK(rotates(encoded(index(n) + offset, theta(d)), "n"));
  CHECK(rotates(encoded(offset - index(n), theta(b, d)), "n"));
  CHECK(rotates(encoded(index(n) + given(b), theta(d)), "n"));
  CHECK_FALSE(rotates(encoded(index(n), theta(d)), "b"));
  CHECK_FALSE(rotates(encoded(index(n), theta(d)), "d"));
}

TEST_CASE("else it does not", "[pass][rotation]") {
  CHECK_FALSE(rotates(encoded(given(b, n), theta(d)), "n"));
  CHECK_FALSE(rotates(encoded(index(n) / 2, theta(d)), "n"));
  CHECK_FALSE(rotates(encoded(index(n) % 7, theta(d)), "n"));
  CHECK_FALSE(rotates(encoded(index(n), theta(n)), "n"));
}

TEST_CASE("where it may advance by one, or stay, it may turn", "[pass][rotation]") {
  // [doc:may_turn]
  CHECK(may_turn(encoded(given(b, n), theta(d)), "n"));
  CHECK(may_turn(encoded(given(b, n), theta(d)), "b"));
  CHECK(may_turn(encoded(index(n) / 2 + offset, theta(d)), "n"));
  CHECK(may_turn(encoded(select(index(n) < offset, 0, index(n) % 7), theta(d)), "n"));
  CHECK_FALSE(may_turn(encoded(index(n), theta(d)), "n"));  // which rotates
  // [/doc:may_turn]
  CHECK_FALSE(may_turn(encoded(index(n) % 7, theta(n)), "n"));
  CHECK_FALSE(may_turn(encoded(index(n) % 7, theta(d)), "b"));
}

TEST_CASE("most likely along the axis whose positions are counted", "[pass][rotation]") {
  const auto turns = [](const program& p) {
    const int axis = axis_to_turn_along(p);
    return axis < 0 ? std::string_view("none") : p.axes[axis].view();
  };
  CHECK(turns(encoded(select(offset != 0, given(b, n), index(n)), theta(d))) == "n");
  CHECK(turns(encoded(given(b), theta(d))) == "b");
  CHECK(turns(encoded(given(b, n), theta(d))) == "n");  // of axes that are alike the last
  CHECK(turns(encoded(offset, theta(d))) == "none");
}

TEST_CASE("maps are walked along the axis on which they rotate; scans stay on theirs", "[pass][rotation]") {
  const auto walked = [](const program& p, const schedule& s) { return p.axes[s.axis].view(); };
  CHECK(walked(kernel_program<forward, 0>, kernel_schedule<forward, 0>) == "n");
  CHECK(walked(kernel_program<shifted, 0>, kernel_schedule<shifted, 0>) == "b");
  CHECK(walked(kernel_program<summed, 0>, kernel_schedule<summed, 0>) == "n");
}
