#include <algorithm>
#include <map>

#include "property/on_cpu.hpp"
#include "scandsl/pass/prepare.hpp"
#include "support/derivative.hpp"
#include "support/generate_positions.hpp"

// Random programs of integers: their derivatives in the interpreter, and the executor against it.

using namespace scandsl;
using generate::random_case;

namespace {

constexpr unsigned all_seeds = 48;

template <unsigned... Seed> std::vector<const program*> drawn(std::integer_sequence<unsigned, Seed...>) {
  return {&generate::program_of_positions<Seed>...};
}
const std::vector<const program*>& programs() {
  static const std::vector<const program*> all = drawn(std::make_integer_sequence<unsigned, all_seeds>{});
  return all;
}

random_case case_of(const program& p, const generate::sizes& size, unsigned seed) {
  return generate::make_case(p, size, seed);
}

}  // namespace

TEST_CASE("random programs of positions cover the integers", "[property][positions]") {
  std::map<int, int> functions, opcodes;
  int of_two = 0;
  for (const program* p : programs())
    for (const node& each : p->nodes) {
      ++opcodes[static_cast<int>(each.op)];
      if (each.op == opcode::apply && (is_integer(each) || is_truth(each))) ++functions[each.function];
      of_two += each.op == opcode::gather && each.operand[1] != no_node;
    }
  using namespace primitive;
  for (const int function :
       {primitive::index<add_op>, primitive::index<subtract_op>, primitive::index<multiply_op>,
        primitive::index<neg_op>, primitive::index<floor_divide_op>, primitive::index<modulo_op>,
        primitive::index<min_op>, primitive::index<max_op>, primitive::index<select_op>,
        primitive::index<less_op>, primitive::index<equal_op>}) {
    INFO(signature_of(function).arity << " of function " << function);
    CHECK(functions[function] > 0);
  }
  for (const opcode op : {opcode::index, opcode::extent, opcode::gather, opcode::scan, opcode::last})
    CHECK(opcodes[static_cast<int>(op)] > 3);
  CHECK(of_two > 1);
}

TEST_CASE("passes keep the meaning of programs of positions", "[property][positions]") {
  for (std::size_t which = 0; which < programs().size(); ++which) {
    const program& before = *programs()[which];
    INFO("program_of_positions<" << which << ">");
    const random_case c = case_of(before, {}, 1);
    for (const program& after : {prune(before), simplify(before)}) {
      const auto got = derivative::restricted_to(after, c).expected(after);
      CHECK(generate::worst_difference(c.expected(before), got) <= 1e-13);
    }
    CHECK(simplify(simplify(before)) == simplify(before));
  }
}

TEST_CASE("gradients of programs of positions agree with forward mode and with differences",
          "[property][positions][gradient]") {
  std::mt19937 random(23);
  int different = 0;
  for (std::size_t which = 0; which < programs().size(); ++which) {
    const program& p = *programs()[which];
    const program dp = gradient(p), tp = jvp(p);
    INFO("program_of_positions<" << which << ">");
    for (unsigned seed = 0; seed < 2; ++seed) {
      random_case c = case_of(p, {2, 9, 4, 3}, seed);
      derivative::spread(p, c, random);
      CHECK(derivative::adjoint_mismatch(p, dp, tp, c, random) < 1e-13);
      if (!derivative::is_differentiable(p)) continue;
      ++different;
      CHECK(derivative::difference_mismatch(p, dp, c, random) < 1e-7);
    }
  }
  CHECK(different > 60);
}
