#include "scandsl/pass/address.hpp"

#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"
#include "support/generate.hpp"
#include "support/interpreted.hpp"

namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr axis<"m"> m;
constexpr axis<"k"> k;
constexpr axis<"part"> part;
constexpr tensor<"x"> x;
constexpr tensor<"t"> t;
constexpr tensor<"v"> v;
constexpr integer_tensor<"i"> i;
constexpr integer_scalar<"shift"> shift;
constexpr integer_scalar<"interval"> interval;
constexpr scalar<"scale"> scale;

constexpr program indices = op<"indices">(out<"y">(b, n) = x(b, n) * index(n) + (index(n) + shift) % 3,
                                          out<"z">(n, b) = cos_of_product(index(b) - index(n), x(b, n)));
constexpr program extents =
    op<"extents">(out<"y">(b, n, d) = x(b, n) * extent(n) + (extent(n) - 1 - index(n)) + extent(d) * t(d));
constexpr program gathers = op<"gathers">(
    out<"y">(b, n, m, k) = t(m[i(n)]) * t(m[shift]) + v(m[i(n)], k) * v(m, k[index(n) % 3]) * v(m, k),
    out<"z">(b, n) = v(m[index(b)], k[i(n)]) + value_or(tensor<"o">{}(m[i(n) - 1]), 0.5));
constexpr program table_of_positions =
    op<"tables">(out<"y">(n, d) = t(m[table<"sizes">{}(k[index(d)]) + index(n)]) + scale);
constexpr program in_a_scan = op<"scan">(
    out<"y">(b, n) = scan(plain_sum, over(n).restart_every(interval), x(b, n) * index(n) + t(m[index(n)])),
    out<"last">(b) = last(scan(maximum, over(n).reversed(), x(b, n) - extent(n))));
constexpr program slices =
    op<"slices">(out<"y">(b, n, part, m, k) = stack(part, v(m[i(n)], k), x(b, n)) * v(m, k) +
                                              tensor<"w">{}(part, m[index(n) + index(part)]));
constexpr program backward = gradient(gathers);
constexpr program backward_of_scan = gradient(in_a_scan);

constexpr int count(const program& p, opcode op) {
  int found = 0;
  for (const node& each : p.nodes) found += each.op == op;
  return found;
}
constexpr int count(const program& p, tensor_role role) {
  int found = 0;
  for (const tensor_decl& each : p.tensors) found += each.role == role;
  return found;
}
constexpr int count_tensors(const program& p, const char* id) {
  int found = 0;
  for (const tensor_decl& each : p.tensors) found += each.id == make_name(id);
  return found;
}
constexpr int count_extents(const program& p) {
  int found = 0;
  for (const parameter_decl& each : p.parameters) found += each.is_extent;
  return found;
}
/// Whether tensors say of each of their dimensions how nodes read it, and no node is a position or an extent.
constexpr bool is_addressed(const program& p) {
  for (const node& each : p.nodes) {
    if (each.op == opcode::index || each.op == opcode::extent) return false;
    if (each.op != opcode::load && each.op != opcode::gather) continue;
    const tensor_decl& read = p.tensors[each.target];
    for (int dimension = 0; dimension < read.axes.count; ++dimension)
      if ((read.place[dimension] == tensor_decl::computed) !=
          (each.op == opcode::gather && (each.function >> dimension & 1U) != 0))
        return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a position is an element of a tensor of positions", "[pass][address]") {
  constexpr program p = address(indices);
  STATIC_REQUIRE(count(indices, opcode::index) == 2);
  STATIC_REQUIRE(is_addressed(p));
  STATIC_REQUIRE(count(p, tensor_role::positions) == 2);  // one an axis
  STATIC_REQUIRE(count(p, opcode::load) == 3);
  for (int a : {p.find_axis(make_name("n")), p.find_axis(make_name("b"))}) {
    const tensor_decl wanted = detail::positions_along(a);
    const int found = p.find_tensor(wanted.id);
    REQUIRE(found >= 0);
    CHECK(p.tensors[found] == wanted);
    CHECK(p.tensors[found].mask() == axis_bit(a));
    CHECK(holds_integers(p.tensors[found]));
  }
}

TEST_CASE("tensors of positions are numbered as their axes", "[pass][address]") {
  STATIC_REQUIRE(detail::numbered_name("positions ", 0).view() == "positions 0");
  STATIC_REQUIRE(detail::numbered_name("positions ", 9).view() == "positions 9");
  STATIC_REQUIRE(detail::numbered_name("positions ", 10).view() == "positions 10");
  STATIC_REQUIRE(detail::numbered_name("a", 107).view() == "a107");
  STATIC_REQUIRE(detail::numbered_name("a", 230).view() == "a230");
}

TEST_CASE("an extent is a parameter, apart from a scalar of the axis's name", "[pass][address]") {
  constexpr program p = address(extents);
  STATIC_REQUIRE(is_addressed(p));
  STATIC_REQUIRE(count_extents(p) == 2);
  STATIC_REQUIRE(count(p, opcode::parameter) == 2);
  constexpr program same_name =
      address(op<"same">(out<"y">(b, n) = x(b, n) * scandsl::scalar<"n">{} + extent(n)));
  STATIC_REQUIRE(count_extents(same_name) == 1);
  STATIC_REQUIRE(same_name.parameters.count == 2);
  STATIC_REQUIRE(same_name.parameters[0].id == same_name.parameters[1].id);
}

TEST_CASE("each way of reading a tensor is a tensor of its own", "[pass][address]") {
  constexpr program p = address(gathers);
  STATIC_REQUIRE(is_addressed(p));
  // Where positions are computed says how memory is walked; how they are computed does not.
  STATIC_REQUIRE(count_tensors(p, "t") == 1);
  STATIC_REQUIRE(count(p, opcode::gather) == 6);
  STATIC_REQUIRE(count_tensors(p, "v") == 4);
  for (const tensor_decl& each : p.tensors)
    if (each.id == make_name("o")) CHECK((each.optional && each.fallback == 0.5));
  constexpr program both = address(unroll(slices));
  STATIC_REQUIRE(is_addressed(both));
  STATIC_REQUIRE(count_tensors(both, "w") == 2);
  for (const tensor_decl& each : both.tensors)
    if (each.id == make_name("w")) {
      CHECK((each.place[0] == 1 || each.place[0] == 2));
      CHECK(each.place[1] == tensor_decl::computed);
    }
}

TEST_CASE("a program that reads tensors where it stands is left alone", "[pass][address]") {
  constexpr program plain = op<"plain">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n) * scale));
  STATIC_REQUIRE(address(plain) == prune(plain));
}

TEST_CASE("an addressed program means what it meant", "[pass][address]") {
  for (const program* p : {&indices, &extents, &gathers, &table_of_positions, &in_a_scan, &slices, &backward,
                           &backward_of_scan}) {
    INFO(p->id.view());
    const program before = prune(*p);
    for (const program& after : {address(before), address(unroll(before))}) {
      CHECK(is_addressed(after));
      CHECK(address(after) == after);
      for (unsigned seed = 0; seed < 4; ++seed) {
        const generate::random_case c = generate::make_case(before, {}, seed);
        const auto got = c.expected(support::interpreted(after));
        // Terms of a sum along several axes come in another order.
        CHECK(generate::worst_difference(c.expected(before), got) <= 1e-13);
      }
    }
  }
}
