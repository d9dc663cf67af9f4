#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/prune.hpp"
#include "scandsl/pass/rewrite.hpp"
#include "support/catch.hpp"

namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"g"> g;
constexpr tensor<"h0"> h0;
constexpr tensor<"cu_seqlens"> cu_seqlens;
constexpr scalar<"chunk"> chunk;
constexpr scalar<"reverse"> reverse;
constexpr scalar<"scale"> scale;

/// A program of everything that a scan may refer to.
constexpr auto packed_scan = scan(
    decayed_sum, over(n).reversed(reverse).restart_every(chunk).restart_at(cu_seqlens).starting_from(h0(d)),
    sigmoid(g(b, n, d)), x(b, n, d));
constexpr program lowered = op<"packed">(out<"y">(b, n, d) = packed_scan);
constexpr program packed = prune(lowered);

constexpr program keep_store(program p, int kept) {
  const store_decl store = p.stores[kept];
  p.stores = fixed_list<store_decl, max_stores>{};
  p.stores.push_back(store);
  return p;
}

constexpr program copied(const program& p) {
  return rewrite(p, [](rewriting& copy, const node& old) { return copy.copy(old); });
}

TEST_CASE("prune keeps a program that is needed whole", "[prune]") {
  STATIC_REQUIRE(prune(packed) == packed);
  STATIC_REQUIRE(packed.nodes.count < lowered.nodes.count);  // a projection reads one component of two
  STATIC_REQUIRE(packed.parameters == lowered.parameters);
  STATIC_REQUIRE(packed.tensors == lowered.tensors);
  STATIC_REQUIRE(packed.scans.count == 1);
}

TEST_CASE("prune drops what only another output needed, and renumbers the rest", "[prune]") {
  constexpr axis<"t"> t;
  constexpr tensor<"w"> w;
  constexpr auto other = out<"z">(t) = tanh(scale * w(t));
  constexpr program both = prune(op<"packed">(other, out<"y">(b, n, d) = packed_scan));
  STATIC_REQUIRE(both.axes.count == packed.axes.count + 1);
  STATIC_REQUIRE(both.nodes.count == packed.nodes.count + 4);
  STATIC_REQUIRE(prune(keep_store(both, 1)) == packed);
  STATIC_REQUIRE(prune(keep_store(both, 0)) == prune(op<"packed">(other)));

  constexpr program scans =
      prune(op<"scans">(out<"z">(t) = scan(product, over(t), w(t)), out<"y">(b, n, d) = packed_scan));
  constexpr program kept = prune(keep_store(scans, 1));
  STATIC_REQUIRE(scans.scans.count == 2);
  STATIC_REQUIRE(kept.scans.count == 1);
  STATIC_REQUIRE(kept.scans[0].components == 2);
  STATIC_REQUIRE(kept.tensors == packed.tensors);
  STATIC_REQUIRE(kept.nodes[kept.stores[0].value].target == 0);
}

TEST_CASE("prune keeps all components of a scan, of which the recurrence reads one", "[prune]") {
  constexpr program p = prune(op<"sum">(out<"y">(n) = scan(decayed_sum, over(n), g(n), x(n))));
  STATIC_REQUIRE(p.scans[0].components == 2);
  STATIC_REQUIRE(is_apply<primitive::multiply_op>(p.nodes[p.scans[0].combined[0]]));
}

TEST_CASE("prune drops operands that no output reads", "[prune]") {
  constexpr program p = [] {
    program unused = op<"copy">(out<"y">(n) = x(n));
    unused.tensors.push_back({make_name("unused"), {}, tensor_role::input, false, 0.0});
    unused.parameters.push_back({make_name("unused"), false, 0.0});
    unused.axes.push_back(make_name("unused"));
    return unused;
  }();
  STATIC_REQUIRE(prune(p) == op<"copy">(out<"y">(n) = x(n)));
}

TEST_CASE("prune takes programs built at run time", "[prune]") {
  builder target;
  const int axis_n = target.axis(make_name("n"));
  tensor_decl input{make_name("x"), {}, tensor_role::input, false, 0.0};
  input.axes.push_back(static_cast<std::int16_t>(axis_n));
  const node_id loaded = target.load(input);
  target.apply(primitive::index<primitive::exp_op>, loaded);
  tensor_decl output = input;
  output.id = make_name("y");
  output.role = tensor_role::output;
  target.result.stores.push_back({static_cast<std::int16_t>(target.tensor(output)), loaded});
  REQUIRE(target.result.nodes.count == 2);
  REQUIRE(prune(target.result).nodes.count == 1);
}

TEST_CASE("rewrite copies a program as it is", "[rewrite]") {
  STATIC_REQUIRE(copied(packed) == packed);
  constexpr program softmax =
      op<"softmax">(out<"y">(b, n) = exp(x(b, n) - last(scan(log_add_exp, over(n), x(b, n)))));
  STATIC_REQUIRE(copied(softmax) == softmax);
}

TEST_CASE("rewrite replaces nodes, and scans follow their elements", "[rewrite]") {
  // Without sigmoid(g) the decay is the constant 1, so the scan no longer varies along g's axis d.
  constexpr program p =
      op<"sum">(out<"y">(b, n, d) = scan(decayed_sum, over(n), sigmoid(g(b, n, d)), x(b, n)));
  constexpr program q = rewrite(p, [](rewriting& copy, const node& old) {
    return is_apply<primitive::sigmoid_op>(old) ? copy.target.constant(1.0) : copy.copy(old);
  });
  STATIC_REQUIRE(q == prune(op<"sum">(out<"y">(b, n, d) = scan(decayed_sum, over(n), 1.0, x(b, n)))));
  STATIC_REQUIRE(q.tensors.count == 2);
}

TEST_CASE("rewrite shares values and scans that become equal", "[rewrite]") {
  constexpr auto sum_of = [](auto e) { return scan(plain_sum, over(n), e); };
  constexpr program p = op<"twice">(out<"y">(n) = sum_of(abs(x(n))) + sum_of(exp(x(n))));
  constexpr program q = rewrite(p, [](rewriting& copy, const node& old) {
    return is_apply<primitive::abs_op>(old) || is_apply<primitive::exp_op>(old) ? copy.at(old.operand[0])
                                                                                : copy.copy(old);
  });
  STATIC_REQUIRE(p.scans.count == 2);
  STATIC_REQUIRE(q.scans.count == 1);
  STATIC_REQUIRE(q == prune(op<"twice">(out<"y">(n) = sum_of(x(n)) + sum_of(x(n)))));
}

}  // namespace
