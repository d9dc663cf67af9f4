#include "scandsl/pass/unroll.hpp"

#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"
#include "support/generate.hpp"
#include "support/interpreted.hpp"

namespace {

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr axis<"m"> m;
constexpr axis<"s"> s;
constexpr axis<"part"> part;
constexpr axis<"other"> other;
constexpr tensor<"x"> x;
constexpr tensor<"z"> z;
constexpr tensor<"w"> w;
constexpr tensor<"offsets"> offsets;
constexpr tensor<"h"> h;
constexpr integer_tensor<"i"> i;
constexpr integer_scalar<"every"> every;

constexpr auto pair = stack(part, x(n, d) * w(d), sin(x(n, d)));

constexpr program stored = op<"stored">(out<"y">(n, part, d) = pair, out<"alone">(n, d) = x(n, d) + 1.0);
constexpr program loaded =
    op<"loaded">(out<"y">(n, part, d) = pair * z(part, d) + value_or(tensor<"o">{}(d, part), 0.5),
                 out<"repeated">(part, d) = w(d));
constexpr program numbered = op<"numbered">(out<"y">(n, part, d) = pair * index(part) + extent(part));
constexpr auto running = scan(plain_sum, over(n), pair);
constexpr program scans = op<"scanned">(out<"y">(n, part, d) = running, out<"last">(part, d) = last(running),
                                        out<"shared">(n, part, d) = scan(plain_sum, over(n), x(n, d)) * pair);
constexpr program nested = op<"nested">(
    out<"y">(n, part, d) = scan(maximum, over(n).reversed(), running + z(part, d)),
    out<"start">(n, part, d) =
        scan(decayed_sum, over(n).restart_every(every).starting_from(last(running)), sigmoid(x(n, d)), pair));
constexpr program packed = op<"packed">(
    out<"y">(n, part, d) =
        scan(log_add_exp, over(n).restart_at(offsets(s)).starting_from(value_or(h(s, part, d), 0.0)), pair));
constexpr program two_stacks =
    op<"two">(out<"y">(part, n, other, d) = stack(other, pair, pair* pair, z(part, d) - pair));
constexpr program gathers = op<"gathered">(out<"y">(n, part, d) = pair * z(part, m[i(n) + index(part)]) +
                                                                  tensor<"v">{}(m[index(part)], d));
constexpr program backward = gradient(stored);
constexpr program backward_of_nested = gradient(nested);
constexpr program backward_of_two = gradient(two_stacks);

/// With one more output: an output's sum along axes, as gradients have them.
constexpr program with_sum(const program& p, int store, const char* id,
                           std::initializer_list<const char*> along) {
  builder b{p};
  tensor_decl total{make_name(id), {}, tensor_role::output, false, 0.0, primitive::value_kind::real, {}};
  axis_mask axes = 0;
  for (const char* each : along) axes |= axis_bit(p.find_axis(make_name(each)));
  for (const std::int16_t each : p.tensors[p.stores[store].tensor].axes)
    if ((axes & axis_bit(each)) == 0) total.axes.push_back(each);
  const node_id sum = b.sum(p.stores[store].value, axes);
  b.result.stores.push_back({static_cast<std::int16_t>(b.tensor(total)), sum});
  return b.result;
}
constexpr program sum_along_stack = with_sum(loaded, 0, "sum", {"part"});
constexpr program sum_beside_stack = with_sum(loaded, 0, "sum", {"n", "d"});
constexpr program sum_of_all = with_sum(loaded, 0, "sum", {"d", "part", "n"});
constexpr program sum_of_the_same = with_sum(stored, 1, "sum", {"part"});

constexpr program four = op<"four">(out<"y">(n, part) = stack(part, w(n), 1.0, 2.0, -w(n)));
constexpr program five = op<"five">(out<"y">(n, part) = stack(part, w(n), 1.0, 2.0, 3.0, -w(n)));
constexpr program walked_stack =
    op<"walked">(out<"y">(n, part) = scan(plain_sum, over(part), stack(part, w(n), 2.0 * w(n))),
                 out<"other">(n, other) = stack(other, w(n), -w(n)));
constexpr program segments =
    op<"segments">(out<"y">(part, d) = last(scan(plain_sum, over(n).restart_at(offsets(part)), x(n, d))) +
                                       stack(part, 1.0, w(d)));

constexpr int count(const program& p, opcode op) {
  int found = 0;
  for (const node& each : p.nodes) found += each.op == op;
  return found;
}
constexpr int count_stores(const program& p, const char* output) {
  int found = 0;
  for (const store_decl& each : p.stores) found += p.tensors[each.tensor].id == make_name(output);
  return found;
}
constexpr int count_tensors(const program& p, const char* id) {
  int found = 0;
  for (const tensor_decl& each : p.tensors) found += each.id == make_name(id);
  return found;
}
/// Whether a value varies, or a sum or scan runs, along an axis.
constexpr bool walks(const program& p, const char* along) {
  const int axis = p.find_axis(make_name(along));
  if (axis < 0) return false;
  axis_mask walked = 0;
  for (const node& each : p.nodes) walked |= each.axes | summed_axes(each);
  for (const scan_decl& each : p.scans) walked |= each.axes;
  return (walked & axis_bit(axis)) != 0;
}

}  // namespace

TEST_CASE("each position of a stack is stored, loaded and computed apart", "[pass][unroll]") {
  STATIC_REQUIRE(walks(stored, "part"));
  constexpr program apart = unroll(stored);
  STATIC_REQUIRE(!walks(apart, "part"));
  STATIC_REQUIRE(count_stores(apart, "y") == 2);
  STATIC_REQUIRE(count_stores(apart, "alone") == 1);
  STATIC_REQUIRE(count(apart, opcode::index) == 0);
  // What does not vary along the stack is there once.
  STATIC_REQUIRE(count(apart, opcode::load) == 2);
  STATIC_REQUIRE(apart.tensors[apart.stores[0].tensor].place[1] == 1);
  STATIC_REQUIRE(apart.tensors[apart.stores[1].tensor].place[1] == 2);

  constexpr program sliced = unroll(loaded);
  STATIC_REQUIRE(!walks(sliced, "part"));
  STATIC_REQUIRE(count_tensors(sliced, "z") == 2);
  STATIC_REQUIRE(count_tensors(sliced, "o") == 2);
  STATIC_REQUIRE(count_tensors(sliced, "w") == 1);
  STATIC_REQUIRE(count_stores(sliced, "repeated") == 2);
}

TEST_CASE("a sum along a stack is a sum of terms", "[pass][unroll]") {
  constexpr program terms = unroll(sum_along_stack);
  STATIC_REQUIRE(!walks(terms, "part"));
  STATIC_REQUIRE(count_stores(terms, "sum") == 1);
  STATIC_REQUIRE(count(terms, opcode::sum) == 0);

  STATIC_REQUIRE(count_stores(unroll(sum_beside_stack), "sum") == 2);
  STATIC_REQUIRE(count(unroll(sum_beside_stack), opcode::sum) == 2);
  STATIC_REQUIRE(count(unroll(sum_of_all), opcode::sum) == 1);  // of the parts' terms, along n and d
  STATIC_REQUIRE(count_stores(unroll(sum_of_the_same), "sum") == 1);
  STATIC_REQUIRE(count(unroll(sum_of_the_same), opcode::sum) == 0);
}

TEST_CASE("a scan of a stack is a scan of each part", "[pass][unroll]") {
  STATIC_REQUIRE(scans.scans.count == 2);
  STATIC_REQUIRE(unroll(scans).scans.count == 3);  // the one of x alone is shared
  STATIC_REQUIRE(nested.scans.count == 3);
  STATIC_REQUIRE(unroll(nested).scans.count == 6);
  STATIC_REQUIRE(!walks(unroll(nested), "part"));
}

TEST_CASE("stacks of stacks are written out along both axes", "[pass][unroll]") {
  constexpr program apart = unroll(two_stacks);
  STATIC_REQUIRE(!walks(apart, "part"));
  STATIC_REQUIRE(!walks(apart, "other"));
  STATIC_REQUIRE(count_stores(apart, "y") == 6);
}

TEST_CASE("long stacks stay, and axes that a scan walks", "[pass][unroll]") {
  STATIC_REQUIRE(detail::max_unrolled_parts == 4);
  STATIC_REQUIRE(count_stores(unroll(four), "y") == 4);
  STATIC_REQUIRE(unroll(five) == prune(five));
  STATIC_REQUIRE(count_stores(unroll(five), "y") == 1);
  // sum(...) is a scan's last value.
  constexpr program walked_sum =
      op<"sum">(out<"y">(n, part, d) = pair, out<"sum">(n, d) = sum(over(part), pair));
  STATIC_REQUIRE(unroll(walked_sum) == prune(walked_sum));
  constexpr program apart = unroll(walked_stack);
  STATIC_REQUIRE(walks(apart, "part"));
  STATIC_REQUIRE(!walks(apart, "other"));
  STATIC_REQUIRE(count_stores(apart, "y") == 1);
  STATIC_REQUIRE(count_stores(apart, "other") == 2);
  STATIC_REQUIRE(unroll(segments) == prune(segments));
}

TEST_CASE("a program without stacks is left alone", "[pass][unroll]") {
  constexpr program plain = op<"plain">(out<"y">(n, d) = x(n, d) * w(d) + index(n));
  STATIC_REQUIRE(unroll(plain) == prune(plain));
}

TEST_CASE("a program that is written out means what it meant", "[pass][unroll]") {
  for (const program* p : {&stored, &loaded, &numbered, &scans, &nested, &packed, &two_stacks, &gathers,
                           &four, &walked_stack, &sum_along_stack, &sum_beside_stack, &sum_of_all,
                           &sum_of_the_same, &backward, &backward_of_nested, &backward_of_two}) {
    INFO(p->id.view());
    const program before = prune(*p), after = unroll(*p);
    CHECK(unroll(after) == after);
    for (unsigned seed = 0; seed < 4; ++seed) {
      const generate::random_case c = generate::make_case(before, {}, seed);
      const auto expected = c.expected(before), got = c.expected(support::interpreted(after));
      // Terms of a sum along several axes come in another order.
      CHECK(generate::worst_difference(expected, got) <= 1e-13);
    }
  }
}
