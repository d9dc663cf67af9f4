#include "scandsl/ir/builder.hpp"

#include "support/catch.hpp"

using namespace scandsl;

namespace {

tensor_decl input_along(builder& b, const char* id, std::initializer_list<const char*> axes) {
  tensor_decl declared{make_name(id), {}, tensor_role::input, false, 0.0};
  for (const char* each : axes) declared.axes.push_back(static_cast<std::int16_t>(b.axis(make_name(each))));
  return declared;
}

}  // namespace

TEST_CASE("equal nodes are one node", "[ir][builder]") {
  builder b;
  const node_id x = b.load(input_along(b, "x", {"n"}));
  CHECK(b.load(input_along(b, "x", {"n"})) == x);
  CHECK(b.constant(2) == b.constant(2));
  CHECK(b.constant(0.0) != b.constant(-0.0));
  const node_id sum = b.apply(primitive::index<primitive::add_op>, x, b.constant(2));
  CHECK(b.apply(primitive::index<primitive::add_op>, x, b.constant(2)) == sum);
  CHECK(b.apply(primitive::index<primitive::multiply_op>, x, b.constant(2)) != sum);
  CHECK(b.parameter({make_name("t")}) == b.parameter({make_name("t")}));
  CHECK(b.result.parameters.count == 1);
  CHECK(b.result.tensors.count == 1);
}

TEST_CASE("a sum loses the axes that it runs along", "[ir][builder]") {
  builder b;
  const node_id x = b.load(input_along(b, "x", {"b", "n"}));
  b.axis(make_name("d"));
  const node_id along_b = b.sum(x, 0b001);
  CHECK(b.result.nodes[along_b].axes == 0b010);
  CHECK(b.sum(x, 0) == x);
  CHECK(summed_axes(b.result.nodes[b.sum(along_b, 0b110)]) == 0b111);  // a sum of a sum is one sum
  CHECK(b.result.nodes[b.sum(along_b, 0b110)].operand[0] == x);
  CHECK(b.result.nodes[b.sum(along_b, 0b001)].operand[0] == along_b);  // but each axis counts once only
  CHECK(summed_axes(b.result.nodes[x]) == 0);
}

TEST_CASE("a node varies along its operands' axes", "[ir][builder]") {
  builder b;
  const node_id x = b.load(input_along(b, "x", {"b", "n"})), v = b.load(input_along(b, "v", {"d"}));
  const node_id product = b.apply(primitive::index<primitive::multiply_op>, x, v);
  CHECK(b.result.nodes[x].axes == 0b011);
  CHECK(b.result.nodes[v].axes == 0b100);
  CHECK(b.result.nodes[product].axes == 0b111);
  CHECK(b.result.nodes[b.constant(1)].axes == 0);
}

TEST_CASE("last loses the scanned axis and gains the segments'", "[ir][builder]") {
  builder b;
  scan_decl s;
  s.axis = static_cast<std::int16_t>(b.axis(make_name("n")));
  s.axes = axis_bit(s.axis) | axis_bit(b.axis(make_name("b")));
  s.components = 1;
  const int plain = b.scan(s);
  CHECK(b.scan(s) == plain);
  CHECK(b.result.nodes[b.scan_value(opcode::scan, plain, 0)].axes == 0b11);
  CHECK(b.result.nodes[b.scan_value(opcode::last, plain, 0)].axes == 0b10);
  s.segment_axis = static_cast<std::int16_t>(b.axis(make_name("s")));
  s.offsets = 0;
  const int packed = b.scan(s);
  CHECK(packed != plain);
  CHECK(b.result.nodes[b.scan_value(opcode::last, packed, 0)].axes == 0b110);
}

TEST_CASE("a name means one thing", "[ir][builder]") {
  builder b;
  b.load(input_along(b, "x", {"b", "n"}));
  CHECK_THROWS(b.load(input_along(b, "x", {"n", "b"})));
  tensor_decl output = input_along(b, "x", {"b", "n"});
  output.role = tensor_role::output;
  CHECK_THROWS(b.tensor(output));
  tensor_decl optional = input_along(b, "x", {"b", "n"});
  optional.optional = true;
  CHECK_THROWS(b.load(optional));
  b.parameter({make_name("t"), true, 1.0});
  CHECK_THROWS(b.parameter({make_name("t"), true, 2.0}));
  CHECK_THROWS(b.parameter({make_name("t")}));
}

TEST_CASE("terms are nodes with the language's operators", "[ir][builder]") {
  builder b;
  const term x(b, b.load(input_along(b, "x", {"n"})));
  const term y = select(x < 1, exp(-x), 2.0 * x);
  const node& chosen = b.result.nodes[y.id];
  CHECK(is_apply<primitive::select_op>(chosen));
  CHECK(is_truth(b.result.nodes[chosen.operand[0]]));
  CHECK_FALSE(is_truth(chosen));
  CHECK(is_apply<primitive::exp_op>(b.result.nodes[chosen.operand[1]]));
  CHECK(b.result.nodes[b.result.nodes[chosen.operand[2]].operand[0]].value == 2.0);
}

TEST_CASE("terms check what the types of expressions check", "[ir][builder]") {
  builder b;
  const term x(b, b.load(input_along(b, "x", {"n"})));
  CHECK_THROWS(select(x, x, x));
  CHECK_THROWS(exp(x < 1));
  CHECK_THROWS(term(1.0) + term(2.0));
}
