#include "scandsl/pass/expand_sums.hpp"

#include <algorithm>

#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/prepare.hpp"
#include "support/catch.hpp"
#include "support/generate.hpp"

using namespace scandsl;
using generate::random_case;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"w"> w;

/// The sum of x over b, n and d, in steps that become one node; and of w over d too, which it lacks.
constexpr program sums = [] {
  const program p = op<"sums">(out<"y">(b, n, d) = x(b, n, d), out<"z">(n) = w(n));
  builder made;
  made.result = p;
  const axis_mask all = p.tensors[p.stores[0].tensor].mask(), along_d = axis_bit(p.find_axis(d.id));
  made.result.tensors[p.stores[0].tensor].axes.count = 0;
  made.result.stores[0].value = made.sum(made.sum(p.stores[0].value, along_d), all & ~along_d);
  made.result.stores[1].value = made.sum(p.stores[1].value, along_d);
  return prune(made.result);
}();
constexpr int sum_nodes(const program& p) {
  int count = 0;
  for (const node& each : p.nodes) count += each.op == opcode::sum;
  return count;
}
static_assert(sum_nodes(sums) == 2 && sums.nodes.count == 4);
static_assert(sum_nodes(expand_sums(sums)) == 0 && expand_sums(sums).scans.count == 4);
static_assert(sum_nodes(prepare(sums)) == 0);

// A sum runs the way the newest scan along its axis runs, and shares its walk.
constexpr auto expanded = expand_sums(
    gradient(op<"decayed">(out<"y">(n, d) = scan(decayed_sum, over(n), tensor<"a">{}(d), x(n, d)))));
static_assert(expanded.scans.count == 3 && expanded.scans[2].same_direction(expanded.scans[1]) &&
              expanded.scans[2].reversed);
static_assert(kernels_of<expanded>.programs.count == 1 && kernel_schedule<expanded, 0>.sweeps == 2);

// What a scan gives by packed sequences is summed by them, in the same walk, and then over them.
constexpr axis<"s"> s;
constexpr tensor<"a"> a;
constexpr tensor<"offsets"> offsets;
constexpr auto packed_walk = scan(decayed_sum, over(n).restart_at(offsets(s)), a(d), x(n, d));
/// The sum of what the walk gives, over n and d, and that of x.
constexpr program packed_sums = [] {
  builder made;
  made.result = op<"packed_sums">(out<"total">(n, d) = packed_walk, out<"of_x">(n, d) = x(n, d));
  for (store_decl& store : made.result.stores) {
    store.value = made.sum(store.value, made.result.tensors[store.tensor].mask());
    made.result.tensors[store.tensor].axes.count = 0;
  }
  return prune(made.result);
}();
constexpr program dpacked = gradient(op<"packed">(out<"y">(n, d) = packed_walk));
static_assert(kernels_of<dpacked>.programs.count == 2 && kernel_schedule<dpacked, 0>.sweeps == 2);
constexpr int packed_scans(const program& p) {
  int count = 0;
  for (const scan_decl& each : p.scans) count += each.offsets >= 0;
  return count;
}
static_assert(packed_scans(expand_sums(packed_sums)) == 2);  // the sum of x alone goes through no sequences

// Sums of angles begin along the axis along which these rotate; what is summed before is merged with them.
constexpr tensor<"theta"> theta;
// [doc:turning_sums]
constexpr auto encoding =
    gradient(op<"encoding">(out<"y">(b, n, d) = x(b, n, d) * cos_of_product(index(n), theta(d))));
constexpr program turning = sum_where_angles_rotate(encoding);
static_assert(turning.scans.count == 1 && turning.scans[0].axis == turning.find_axis(n.id));  // along n,
static_assert(sum_nodes(encoding) == 2 && sum_nodes(turning) == 1);                           // then over b
// [/doc:turning_sums]
static_assert(has_sums_of_angles(encoding));
// Where none rotate for sure, on a CPU along an axis along which they may turn, as along the one on which
// positions are given.
constexpr integer_tensor<"places"> places;
template <class Places> constexpr program encoding_at(Places at) {
  return gradient(op<"given">(out<"y">(b, n, d) = x(b, n, d) * cos_of_product(at, theta(d))));
}
constexpr program given = encoding_at(places(b, n)), shared = encoding_at(places(n));
constexpr bool begins_along_n(const program& p) {
  return p.scans.count == 1 && p.scans[0].axis == p.find_axis(n.id) && sum_nodes(p) == 1;
}
static_assert(sum_where_angles_rotate(given).scans.count == 0);
static_assert(begins_along_n(sum_where_angles_may_turn(given)));
static_assert(begins_along_n(sum_where_angles_may_turn(shared)));
static_assert(sum_where_angles_may_turn(encoding) == turning);
static_assert(has_turning_program<given> && begins_along_n(walked_program<given>));
constexpr program apart = reductions_apart(gradient(
    op<"apart">(out<"y">(b, n, d) = softmax(over(n), x(b, n, d)) * cos_of_product(places(b, n), theta(d)))));
static_assert(has_turning_program<apart> && walked_program<apart>.reduces_apart &&
              !walked_program<given>.reduces_apart);
static_assert(!has_turning_program<encoding> && !has_turning_program<sums>);
// With the sums merged, what multiplies all terms is multiplied once: x, and outside of it the position.
constexpr auto both =
    gradient(op<"both">(out<"cosine">(b, n, d) = x(b, n, d) * cos_of_product(index(n), theta(d)),
                        out<"sine">(b, n, d) = x(b, n, d) * sin_of_product(index(n), theta(d))));
constexpr int products(const program& p) {
  int count = 0;
  for (const node& each : p.nodes) count += is_apply<primitive::multiply_op>(each);
  return count;
}
/// What is summed to theta's gradient.
constexpr node element_of_sum(const program& p) { return p.nodes[p.scans[0].element[0]]; }
constexpr program both_turning = simplify(sum_where_angles_rotate(both));
static_assert(is_apply<primitive::multiply_op>(element_of_sum(both_turning)));
static_assert(both_turning.nodes[element_of_sum(both_turning).operand[1]].axes ==
              axis_bit(both_turning.find_axis(n.id)));
static_assert(products(both_turning) == 6);  // two and two with dy, x and n; 7 with n at each of the terms
/// Two terms with factors in common, as they are and with these taken out.
constexpr program terms(int which, bool factored) {
  builder made;
  made.result = op<"terms">(out<"y">(b, n, d) = x(b, n, d) + w(n));
  const auto load = [&](const name& id) {
    return made.load(made.result.tensors[made.result.find_tensor(id)]);
  };
  const auto times = [&](node_id one, node_id other) {
    return made.apply(primitive::index<primitive::multiply_op>, one, other);
  };
  const auto minus = [&](node_id of) { return made.apply(primitive::index<primitive::neg_op>, of); };
  const node_id f = load(x.id), g = load(w.id), h = times(f, made.constant(3.0));
  const node_id pairs[][2] = {{times(f, g), h},
                              {times(f, g), f},
                              {f, minus(times(g, f))},
                              {minus(times(times(f, f), g)), times(f, h)},
                              {f, g},
                              {times(f, f), times(g, times(f, f))},
                              {minus(f), minus(times(h, g))}};
  const int function =
      which % 2 == 0 ? primitive::index<primitive::add_op> : primitive::index<primitive::subtract_op>;
  const node_id(&pair)[2] = pairs[which / 2];
  made.result.stores[0].value = factored ? detail::common_factors{made}.of(function, pair[0], pair[1])
                                         : made.apply(function, pair[0], pair[1]);
  return prune(made.result);
}
constexpr int kinds_of_terms = 14;
static_assert(products(terms(0, true)) == 1 && products(terms(0, false)) == 2);  // f (g + 3)
static_assert(products(terms(10, true)) == 2);                                   // (1 + g) f f
static_assert(terms(8, true) == terms(8, false));                                // nothing in common

static_assert(!has_sums_of_angles(expanded) && !has_sums_of_angles(sums));
// A sum along nothing else stays, and so does one whose share of another varies along it.
constexpr auto moving =
    gradient(op<"moving">(out<"y">(b, n, d) = x(b, n, d) * cos_of_product(index(n), theta(b, d))));
static_assert(sum_where_angles_rotate(moving).scans.count == 0);
/// The sum over n of w(b, n) times the sum over b of a cosine.
constexpr program weighted = [] {
  builder made;
  made.result =
      op<"weighted">(out<"y">(b, n, d) = cos_of_product(index(n), theta(b, d)), out<"z">(b, n, d) = w(b, n));
  const axis_mask along_b = axis_bit(made.result.find_axis(b.id)),
                  along_n = axis_bit(made.result.find_axis(n.id));
  const node_id inner = made.sum(made.result.stores[0].value, along_b),
                product =
                    made.apply(primitive::index<primitive::multiply_op>, made.result.stores[1].value, inner);
  made.result.stores[1].value = made.sum(product, along_n);
  made.result.tensors[made.result.stores[1].tensor].axes = {};
  for (const name& kept : {b.id, d.id})
    made.result.tensors[made.result.stores[1].tensor].axes.push_back(
        static_cast<std::int16_t>(made.result.find_axis(kept)));
  return made.result;
}();
static_assert(has_sums_of_angles(weighted) && sum_where_angles_rotate(weighted).scans.count == 0);

}  // namespace

TEST_CASE("a sum of packed scans' values is that of all sequences", "[pass][expand_sums]") {
  random_case c;
  c.inputs = {{"x", {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {5, 2}}}, {"a", {{0.5, 2}, {2}}}};
  c.extents = {{"n", 5}, {"d", 2}, {"s", 1}};
  for (const std::vector<double>& boundaries :
       std::vector<std::vector<double>>{{}, {0, 5}, {0, 2, 2, 3, 5}, {0, 0, 5, 5}}) {
    if (!boundaries.empty()) {
      c.inputs["offsets"] = {boundaries, {static_cast<std::int64_t>(boundaries.size())}};
      c.extents["s"] = static_cast<std::int64_t>(boundaries.size()) - 1;
    }
    double total = 0;
    for (int j = 0; j < 2; ++j) {
      double carry = 0;
      for (int i = 0; i < 5; ++i) {
        if (std::find(boundaries.begin(), boundaries.end(), i) != boundaries.end()) carry = 0;
        carry = carry * c.inputs["a"].values[static_cast<std::size_t>(j)] + 2 * i + j + 1;
        total += carry;
      }
    }
    for (const program& p : {packed_sums, expand_sums(packed_sums)}) {
      CHECK(c.expected(p).at("total").values == std::vector<double>{total});
      CHECK(c.expected(p).at("of_x").values == std::vector<double>{55});
    }
  }
}

TEST_CASE("sums and the scans that they become have the same values", "[pass][expand_sums]") {
  random_case c;
  c.inputs = {{"x", {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 3, 2}}}, {"w", {{1, 10, 100}, {3}}}};
  c.extents = {{"b", 2}, {"n", 3}, {"d", 2}};
  const auto got = c.expected(sums);
  CHECK(got.at("y").values == std::vector<double>{78});
  CHECK(got.at("z").values == std::vector<double>{2, 20, 200});  // twice: d has two positions
  CHECK(generate::worst_difference(got, c.expected(expand_sums(sums))) == 0.0);
}

TEST_CASE("sums of angles have the same values in another order", "[pass][expand_sums]") {
  random_case c;
  c.inputs = {{"x", {{1, 2, 3, -4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 3, 2}}},
              {"theta", {{0.25, 1.5}, {2}}},
              {"dy", {{1, -1, 2, 3, 5, 8, 13, 21, -34, 55, 89, 144}, {2, 3, 2}}}};
  c.extents = {{"b", 2}, {"n", 3}, {"d", 2}};
  const auto got = c.expected(encoding);
  CHECK(got.at("dtheta").values[0] != 0.0);
  CHECK(generate::worst_difference(got, c.expected(turning)) < 1e-12);
}

TEST_CASE("factors in common are taken out of two terms", "[pass][expand_sums]") {
  random_case c;
  c.inputs = {{"x", {{1, 2, 3, -4, 5, 6, 7, 8, 9, -10, 11, 12}, {2, 3, 2}}}, {"w", {{1, -0.5, 2}, {3}}}};
  c.extents = {{"b", 2}, {"n", 3}, {"d", 2}};
  for (int which = 0; which < kinds_of_terms; ++which) {
    INFO(which);
    const auto right = c.expected(terms(which, false));
    CHECK(right.at("y").values[2] != 0.0);
    CHECK(generate::worst_difference(right, c.expected(terms(which, true))) < 1e-14);
  }
}

TEST_CASE("a sum over no positions is 0", "[pass][expand_sums]") {
  random_case c;
  c.inputs = {{"x", {{}, {2, 0, 2}}}, {"w", {{}, {0}}}};
  c.extents = {{"b", 2}, {"n", 0}, {"d", 2}};
  CHECK(c.expected(sums).at("y").values == std::vector<double>{0.0});
  CHECK(c.expected(expand_sums(sums)).at("y").values == std::vector<double>{0.0});
}
