#include "scandsl/ir/program.hpp"

#include <limits>

#include "support/catch.hpp"

using namespace scandsl;

namespace {

node constant(double value) {
  node n;
  n.value = value;
  return n;
}

/// A program may be a template argument: it is structural.
constexpr program empty{};
template <program P> constexpr int node_count = P.nodes.count;
static_assert(node_count<empty> == 0);
static_assert(&ref<empty>::value == &empty);

}  // namespace

TEST_CASE("a list says when it is full", "[ir][program]") {
  fixed_list<int, 2> list;
  CHECK(list.push_back(7) == 0);
  CHECK(list.push_back(8) == 1);
  CHECK_THROWS(list.push_back(9));
  CHECK(list.count == 2);
  int sum = 0;
  for (const int each : list) sum += each;
  CHECK(sum == 15);
}

TEST_CASE("nodes are equal when their bits are", "[ir][program]") {
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  CHECK(constant(1) == constant(1));
  CHECK_FALSE(constant(1) == constant(2));
  CHECK_FALSE(constant(0.0) == constant(-0.0));
  CHECK(constant(not_a_number) == constant(not_a_number));
  node load = constant(0);
  load.op = opcode::load;
  CHECK_FALSE(load == constant(0));
}

TEST_CASE("scans are equal when they compute the same", "[ir][program]") {
  scan_decl one;
  one.components = 1;
  scan_decl two = one;
  two.element[1] = 5;  // beyond the components
  CHECK(one == two);
  two.identity[0] = -0.0;
  CHECK_FALSE(one == two);
  two = one;
  two.reversed = true;
  CHECK_FALSE(one == two);
  CHECK(one.same_walk(two));
  CHECK_FALSE(one.same_direction(two));
  two.every = 3;
  CHECK_FALSE(one.same_walk(two));
}

TEST_CASE("names are found, or not", "[ir][program]") {
  program p;
  p.axes.push_back(make_name("n"));
  p.tensors.push_back({make_name("x"), {}, tensor_role::input, false, 0.0});
  p.parameters.push_back({make_name("t")});
  CHECK(p.find_axis(make_name("n")) == 0);
  CHECK(p.find_axis(make_name("x")) == -1);
  CHECK(p.find_tensor(make_name("x")) == 0);
  CHECK(p.find_tensor(make_name("t")) == -1);
  CHECK(p.find_parameter(make_name("t")) == 0);
}

TEST_CASE("a tensor's mask holds its axes", "[ir][program]") {
  tensor_decl declared;
  declared.axes.push_back(3);
  declared.axes.push_back(0);
  CHECK(declared.mask() == 0b1001);
}
