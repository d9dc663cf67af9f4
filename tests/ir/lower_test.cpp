#include "scandsl/ir/lower.hpp"

#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"g"> g;
constexpr tensor<"h"> h;
constexpr tensor<"cuts"> cuts;
constexpr scalar<"t"> t;
constexpr scalar<"flag"> flag;
constexpr scalar<"every"> every;

constexpr int count(const program& p, opcode op) {
  int found = 0;
  for (const node& each : p.nodes) found += each.op == op;
  return found;
}
template <class P> constexpr int count(const program& p) {
  int found = 0;
  for (const node& each : p.nodes) found += is_apply<P>(each);
  return found;
}
/// The operator of the value stored in output number i.
constexpr const node& stored(const program& p, int i = 0) { return p.nodes[p.stores[i].value]; }

// ---- elementwise

constexpr auto elementwise = op<"elementwise">(out<"y">(b, n) = exp(x(b, n)) * t + exp(x(b, n)));
static_assert(elementwise.id == make_name("elementwise"));
static_assert(count(elementwise, opcode::load) == 1 && count<primitive::exp_op>(elementwise) == 1);
static_assert(elementwise.nodes.count == 5 && elementwise.scans.count == 0);
static_assert(elementwise.axes.count == 2 && elementwise.tensors.count == 2 &&
              elementwise.parameters.count == 1);
static_assert(stored(elementwise).axes == 0b11);

constexpr auto optional = op<"optional">(out<"y">(n).optional() = value_or(g(n), 2.5) + value_or(t, -1.0));
static_assert(optional.tensors[0].optional && optional.tensors[0].fallback == 2.5);
static_assert(optional.parameters[0].optional && optional.parameters[0].fallback == -1.0);
static_assert(optional.tensors[1].role == tensor_role::output && optional.tensors[1].optional);

// An argument of a function is evaluated once, however often the body names it.
constexpr auto once = op<"once">(out<"y">(n) = square(square(exp(x(n)))));
static_assert(once.nodes.count == 4);

// A rule travels with the value.
constexpr auto ruled = op<"ruled">(
    out<"y">(n) = fn([](auto z) { return z * z; }).derivative([](auto z, auto) { return 2.0 * z; })(x(n)));
static_assert(is_apply<primitive::attach_derivative_op>(stored(ruled)));
static_assert(is_apply<primitive::stop_gradient_op>(ruled.nodes[stored(ruled).operand[0]]));
static_assert(ruled.nodes[stored(ruled).operand[1]].op == opcode::load);

// ---- scans

constexpr auto running = op<"running">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n)));
static_assert(running.scans.count == 1 && stored(running).op == opcode::scan);
static_assert(running.scans[0].axes == 0b11 && running.scans[0].components == 1);
static_assert(running.scans[0].initial[0] == no_node && running.scans[0].every == no_node);
static_assert(running.scans[0].offsets == -1 && running.scans[0].segment_axis == -1);

constexpr auto before = op<"before">(out<"y">(b, n) = scan(plain_sum, over(n).exclusive(), x(b, n)));
static_assert(stored(before).op == opcode::carry);

constexpr auto either = op<"either">(out<"y">(b, n) = scan(plain_sum, over(n).exclusive(flag), x(b, n)));
static_assert(is_apply<primitive::select_op>(stored(either)) && either.scans.count == 1);
static_assert(either.nodes[stored(either).operand[1]].op == opcode::carry);
static_assert(either.nodes[stored(either).operand[2]].op == opcode::scan);

constexpr auto final_value = op<"final">(out<"y">(b) = last(scan(plain_sum, over(n).reversed(), x(b, n))));
static_assert(stored(final_value).op == opcode::last && final_value.scans[0].reversed);
static_assert(stored(final_value).axes == axis_bit(final_value.find_axis(b.id)));

// Equal scans are one scan, also where one output is the running value and another the last.
constexpr auto sum_of_x = scan(plain_sum, over(n), x(b, n));
constexpr auto shared =
    op<"shared">(out<"y">(b, n) = sum_of_x + scan(plain_sum, over(n), x(b, n)), out<"z">(b) = last(sum_of_x));
static_assert(shared.scans.count == 1 && shared.stores.count == 2);
constexpr auto apart = op<"apart">(out<"y">(b, n) = sum_of_x + scan(plain_sum, over(n).reversed(), x(b, n)));
static_assert(apart.scans.count == 2);

// Everything that a walk may be told.
constexpr auto told = op<"told">(
    out<"y">(b, n) = scan(
        decayed_sum, over(n).reversed(flag).restart_every(every).restart_at(cuts(s)).starting_from(h(s, b)),
        sigmoid(g(n)), x(b, n)));
constexpr const scan_decl& walk = told.scans[0];
static_assert(walk.reverse_parameter == told.find_parameter(flag.id) && !walk.reversed);
static_assert(told.nodes[walk.every].op == opcode::parameter && told.nodes[walk.every].axes == 0);
static_assert(told.tensors[walk.offsets].role == tensor_role::offsets && told.tensors[walk.offsets].optional);
static_assert(told.axes[walk.segment_axis] == s.id);
static_assert((walk.axes & axis_bit(walk.segment_axis)) == 0);
static_assert(walk.components == 2 && walk.identity[0] == 1.0 && walk.identity[1] == 0.0);
static_assert(told.nodes[walk.initial[0]].op == opcode::constant &&
              told.nodes[walk.initial[1]].op == opcode::load);
static_assert(is_apply<primitive::sigmoid_op>(told.nodes[walk.element[0]]));

// An initial state widens the scan.
constexpr auto widened = op<"widened">(out<"y">(b, n) = scan(plain_sum, over(n).starting_from(h(b)), x(n)));
static_assert(widened.scans[0].axes ==
              (axis_bit(widened.find_axis(b.id)) | axis_bit(widened.find_axis(n.id))));

/// Operands come before users, a scan's elements and initial states before its values.
constexpr bool is_ordered(const program& p) {
  for (int i = 0; i < p.nodes.count; ++i) {
    const node& each = p.nodes[i];
    for (const node_id operand : each.operand)
      if (operand >= i) return false;
    if (each.op != opcode::carry && each.op != opcode::scan && each.op != opcode::last) continue;
    const scan_decl& from = p.scans[each.target];
    for (int k = 0; k < from.components; ++k)
      if (from.element[k] >= i || from.initial[k] >= i || from.combined[k] >= i || from.every >= i)
        return false;
  }
  return true;
}
static_assert(is_ordered(elementwise) && is_ordered(told) && is_ordered(shared) && is_ordered(either));

constexpr auto chained = op<"chained">(
    out<"y">(b, n) = scan(welford, over(b).reversed(), silu(scan(running_max_sum, over(n), x(b, n)))));
static_assert(is_ordered(chained) && chained.scans.count == 2 && chained.scans[1].components == 3);

}  // namespace

TEST_CASE("a program can be built at run time too", "[ir][lower]") {
  const program again = op<"told">(
      out<"y">(b, n) = scan(
          decayed_sum, over(n).reversed(flag).restart_every(every).restart_at(cuts(s)).starting_from(h(s, b)),
          sigmoid(g(n)), x(b, n)));
  // Not equal node by node: the order in which a combine's arguments are evaluated is the compiler's.
  CHECK(again.nodes.count == told.nodes.count);
  CHECK(again.scans.count == told.scans.count);
  CHECK(again.tensors == told.tensors);
  CHECK(again.parameters == told.parameters);
  CHECK(is_ordered(again));
}

TEST_CASE("a combine uses its states and numbers only", "[ir][lower]") {
  for (const program* p : {&running, &told, &chained})
    for (const scan_decl& each : p->scans)
      for (int k = 0; k < each.components; ++k) CHECK(p->nodes[each.combined[k]].axes == 0);
}

// What types show is refused by static_assert: tests/compile_fail.
TEST_CASE("an operand with two fallbacks is refused", "[ir][lower]") {
  CHECK_THROWS(op<"p">(out<"y">(n) = value_or(g(n), 1.0) + value_or(g(n), 2.0)));
}
