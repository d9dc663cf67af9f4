#include "scandsl/pass/gradient.hpp"

#include "scandsl/pass/describe.hpp"
#include "support/catch.hpp"
#include "support/derivative.hpp"

using namespace scandsl;
using derivative::tensors;
using generate::random_case;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;
constexpr tensor<"w"> w;
constexpr tensor<"h"> h;
constexpr tensor<"offsets"> offsets;
constexpr scalar<"t"> t;
constexpr scalar<"chunk"> chunk;
constexpr scalar<"flip"> flip;
constexpr scalar<"before"> before;

// ---- what the results are made of

constexpr auto logcumsumexp = op<"logcumsumexp">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n)));
constexpr auto dlogcumsumexp = gradient(logcumsumexp);
constexpr auto ddlogcumsumexp = gradient(dlogcumsumexp);
static_assert(dlogcumsumexp.scans.count == 2 && dlogcumsumexp.scans[1].reversed);
static_assert(dlogcumsumexp.scans[1].components == 2);
static_assert(ddlogcumsumexp.scans.count == 4);
static_assert(ddlogcumsumexp.find_tensor(make_name("ddx")) >= 0 &&
              ddlogcumsumexp.find_tensor(make_name("ddy")) >= 0);
static_assert(simplify(dlogcumsumexp) == dlogcumsumexp);

// The adjoint of a running sum is a running sum from the other end; restarts, packed sequences and flags
// stay.
constexpr auto summed = op<"summed">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n)));
constexpr auto summed_back =
    op<"dsummed">(out<"dx">(b, n) = scan(plain_sum, over(n).reversed(), tensor<"dy">{}(b, n)));
constexpr bool same_scan(const scan_decl& one, const scan_decl& other) {
  return one.same_walk(other) && one.same_direction(other) && one.components == other.components;
}
constexpr auto dsummed = gradient(summed);
static_assert(dsummed.scans.count == 1 && dsummed.nodes.count == summed_back.nodes.count &&
              same_scan(dsummed.scans[0], summed_back.scans[0]) && dsummed.find_tensor(x.id) < 0);
constexpr auto chunks = op<"chunks">(
    out<"y">(b, n) =
        scan(plain_sum, over(n).reversed(flip).exclusive(before).restart_every(chunk).restart_at(offsets(s)),
             x(b, n)));
static_assert(gradient(chunks).scans.count == 1 && gradient(chunks).scans[0].components == 1);
static_assert(gradient(chunks).nodes.count == simplify(chunks).nodes.count);

// Only h is carried back, with the decays beside it; second order is no wider.
constexpr auto decayed = op<"decayed">(out<"y">(b, n) = scan(decayed_sum, over(n), a(n), x(b, n)));
constexpr auto ddecayed = gradient(decayed), dddecayed = gradient(ddecayed);
static_assert(ddecayed.scans.count == 2 && ddecayed.scans[1].components == 2);
constexpr int widest(const program& p) {
  int most = 0;
  for (const scan_decl& each : p.scans) most = each.components > most ? each.components : most;
  return most;
}
static_assert(widest(dddecayed) == 2 && dddecayed.scans.count == 4);

// A sum's adjoint is a broadcast, a log-sum's the share of each position: no further scan.
constexpr auto total = op<"total">(out<"y">(b) = sum(over(n), x(b, n)));
static_assert(gradient(total).scans.count == 0);
constexpr auto softmax =
    op<"softmax">(out<"y">(b, n) = exp(x(b, n) - last(scan(log_add_exp, over(n), x(b, n)))));
static_assert(gradient(softmax).scans.count == 1);

// A broadcast operand takes one sum over all axes that it lacks.
constexpr auto scaled = op<"scaled">(out<"y">(b, n, d) = t * w(d) * x(b, n, d));
constexpr int sums_of(const program& p) {
  int count = 0;
  for (const node& each : p.nodes) count += each.op == opcode::sum;
  return count;
}
static_assert(gradient(scaled).scans.count == 0 && sums_of(gradient(scaled)) == 2);

// With respect to what is asked for.
static_assert(gradient(scaled, x).stores.count == 1 && sums_of(gradient(scaled, x)) == 0);
static_assert(gradient(scaled, t, w).stores.count == 2);
static_assert(gradient(scaled).stores.count == 3 &&
              gradient(scaled).tensors[gradient(scaled).stores[2].tensor].axes.count == 0);

// A single gradient must be bound, one of several need not; the same of cotangents.
constexpr const tensor_decl& named(const program& p, const char* id) {
  return p.tensors[p.find_tensor(make_name(id))];
}
constexpr auto dscaled = gradient(scaled), dscaled_x = gradient(scaled, x);
static_assert(named(dscaled, "dx").optional && !named(dscaled_x, "dx").optional);
static_assert(!named(dscaled, "dy").optional);
constexpr auto two = op<"two">(out<"y">(n) = x(n) * a(n), out<"z">(n).optional() = x(n));
constexpr auto dtwo = gradient(two);
static_assert(named(dtwo, "dy").optional && named(dtwo, "dz").optional && named(dtwo, "dz").fallback == 0.0);

// Names that are taken get another d.
constexpr auto clash = op<"clash">(out<"y">(n) = x(n) * tensor<"dx">{}(n)*tensor<"dy">{}(n));
constexpr auto dclash = gradient(clash);
static_assert(named(dclash, "ddy").role == tensor_role::input &&
              named(dclash, "ddx").role == tensor_role::output &&
              named(dclash, "dddx").role == tensor_role::output &&
              named(dclash, "dddy").role == tensor_role::output);
constexpr auto third_order = gradient(gradient(gradient(op<"cube">(out<"y">(n) = x(n) * x(n) * x(n)))));
static_assert(third_order.find_tensor(make_name("dddx")) >= 0);

// What says that nothing depends on an operand.
constexpr auto stopped = op<"stopped">(out<"y">(n) = select(x(n) < a(n), stop_gradient(a(n)), 1.0));
static_assert(gradient(stopped).nodes.count == 1 && gradient(stopped).nodes[0].value == 0.0);

// ---- values

program of_primitive(int function, int arity, bool of_condition, bool of_position) {
  builder made;
  made.result.id = make_name("primitive");
  const int axis = made.axis(make_name("n"));
  const char* const ids[] = {"x", "y", "z"};
  node_id operands[3] = {no_node, no_node, no_node};
  for (int i = of_position ? 1 : 0; i < arity; ++i) {
    tensor_decl operand{make_name(ids[i]), {}, tensor_role::input, false, 0.0};
    operand.axes.push_back(static_cast<std::int16_t>(axis));
    operands[i] = made.load(operand);
  }
  if (of_position) operands[0] = made.constant(3.0);  // a position is an integer: there is no slope along it
  if (of_condition)
    operands[0] = made.apply(primitive::index<primitive::less_op>, operands[0], made.constant(1.2));
  tensor_decl output{make_name("out"), {}, tensor_role::output, false, 0.0};
  output.axes.push_back(static_cast<std::int16_t>(axis));
  const node_id value = made.apply(function, operands[0], operands[1], operands[2]);
  made.result.stores.push_back({static_cast<std::int16_t>(made.tensor(output)), value});
  return made.result;
}

random_case points(const std::vector<std::vector<double>>& values) {
  random_case c;
  const char* const ids[] = {"x", "y", "z"};
  int i = 0;
  for (const std::vector<double>& each : values)
    c.inputs[ids[i++]] = {each, {static_cast<std::int64_t>(each.size())}};
  c.extents["n"] = static_cast<std::int64_t>(values[0].size());
  return c;
}

/// A value in P's domain. What ends somewhere, ends at its first argument.
template <class P> double within_domain(double value, int argument) {
  using namespace primitive;
  constexpr bool of_positive =
      std::is_same_v<P, log_op> || std::is_same_v<P, sqrt_op> || std::is_same_v<P, pow_op>;
  if (argument > 0) return value;
  if (of_positive) return std::fabs(value);
  return std::is_same_v<P, log1p_op> ? std::fabs(value) - 1 : value;
}

/// On either side of 0, and where functions saturate or grow. No two arguments are near each other.
const std::vector<std::vector<double>> point_sets[] = {
    {{0.3, 0.9, 1.7, 2.4}, {1.1, 0.4, 2.6, 1.3}, {0.7, 2.2, 0.6, 1.9}},
    {{-0.5, -0.9, -1.7, -2.4}, {-1.1, 0.4, -2.6, -1.3}, {0.7, -2.2, -0.6, 1.9}},
    {{-6.5, 5.5, -4.2, 7.3}, {3.4, -5.1, 6.2, -2.8}, {-7.1, 4.6, 5.3, -3.7}}};

template <class P> void check_primitive() {
  if constexpr (P::result == value_kind::real && primitive::argument_kind<P>(0) != value_kind::integer &&
                !std::is_same_v<P, primitive::stop_gradient_op> &&
                !std::is_same_v<P, primitive::attach_derivative_op>) {
    INFO(P::name);
    constexpr bool of_position = std::is_base_of_v<primitive::product_function, P>;
    const program p =
        of_primitive(primitive::index<P>, P::arity, std::is_same_v<P, primitive::select_op>, of_position);
    const program dp = gradient(p), ddp = gradient(dp), tp = jvp(p);
    std::mt19937 random(5);
    for (const auto& set : point_sets) {
      CAPTURE(set[0][0]);
      for (const double scale : {1.0, 1.13, 1.28}) {
        std::vector<std::vector<double>> at = set;
        for (std::size_t i = 0; i < at.size(); ++i)
          for (double& each : at[i]) each = within_domain<P>(scale * each, static_cast<int>(i));
        const random_case c = derivative::restricted_to(p, points(at));
        CHECK(derivative::difference_mismatch(p, dp, c, random) < 1e-9);
        CHECK(derivative::adjoint_mismatch(p, dp, tp, c, random) < 1e-14);
        random_case second = c;
        second.inputs["dout"] = {{0.8, -1.1, 0.4, 1.6}, {4}};
        second = derivative::restricted_to(dp, second);
        CHECK(derivative::difference_mismatch(dp, ddp, second, random) < 1e-9);
      }
    }
  }
}

}  // namespace

TEST_CASE("every primitive's gradient agrees with differences, twice", "[pass][gradient]") {
  []<class... P>(std::type_identity<std::tuple<P...>>) {
    (check_primitive<P>(), ...);
  }(std::type_identity<primitive::primitive_list>{});
}

namespace {

/// First and second order against differences and against forward mode.
void check_both_orders(const program& p, random_case c, unsigned seed = 3) {
  const program dp = gradient(p), ddp = gradient(dp), tp = jvp(p), tdp = jvp(dp);
  std::mt19937 random(seed);
  derivative::spread(p, c, random);
  CHECK(derivative::difference_mismatch(p, dp, c, random) < 1e-8);
  CHECK(derivative::adjoint_mismatch(p, dp, tp, c, random) < 1e-13);
  random_case second = c;
  for (const auto& [id, values] : derivative::random_like(derivative::outputs_of(p, c), "d", random))
    second.inputs[id] = values;
  second = derivative::restricted_to(dp, second);
  CHECK(derivative::difference_mismatch(dp, ddp, second, random) < 1e-8);
  CHECK(derivative::adjoint_mismatch(dp, ddp, tdp, second, random) < 1e-13);
}

oracle_tensor values_of(std::vector<std::int64_t> extents, unsigned seed) {
  std::mt19937 random(seed);
  oracle_tensor result{{}, std::move(extents)};
  std::int64_t size = 1;
  for (const std::int64_t extent : result.extents) size *= extent;
  for (std::int64_t i = 0; i < size; ++i) result.values.push_back(0.7 * derivative::normal(random));
  return result;
}

constexpr std::int64_t rows = 2, length = 7, sequences = 4;

/// The operands of the programs below; packed in four sequences, two of them empty.
random_case operands_for(const program& p, std::map<std::string, double> scalars = {}) {
  random_case c;
  c.inputs = {{"x", values_of({rows, length}, 1)},
              {"a", values_of({rows, length}, 2)},
              {"w", values_of({length}, 3)},
              {"v", values_of({rows}, 4)},
              {"h", values_of({sequences, rows}, 5)},
              {"h0", values_of({rows}, 6)},
              {"offsets", {{0, 0, 3, 3, 7}, {sequences + 1}}}};
  c.scalars = std::move(scalars);
  c.extents = {{"b", rows}, {"n", length}, {"s", sequences}};
  return derivative::restricted_to(p, c);
}

constexpr tensor<"v"> v;
constexpr tensor<"h0"> h0;

constexpr auto all_ways =
    over(n).reversed(flip).exclusive(before).restart_every(chunk).restart_at(offsets(s));
constexpr auto decay = sigmoid(a(b, n));
constexpr auto carried = scan(decayed_sum, all_ways.starting_from(h(s, b)), decay, x(b, n));
constexpr auto carried_op =
    op<"carried">(out<"y">(b, n) = carried, out<"end">(s, b).optional() = last(carried));
constexpr auto log_carried = scan(log_add_exp, all_ways.starting_from(h(s, b)), x(b, n) * w(n));
constexpr auto log_carried_op =
    op<"log_carried">(out<"y">(b, n) = log_carried, out<"end">(s, b).optional() = last(log_carried));

}  // namespace

TEST_CASE("initial and final states, restarts, packed sequences and flags, in every combination",
          "[pass][gradient]") {
  for (const double every : {0.0, 1.0, 2.0, 3.0, 100.0})
    for (const double back : {0.0, 1.0})
      for (const double exclusive : {0.0, 1.0}) {
        INFO("chunk " << every << " flip " << back << " before " << exclusive);
        const std::map<std::string, double> scalars{{"chunk", every}, {"flip", back}, {"before", exclusive}};
        for (const program& p : {carried_op, log_carried_op}) {
          random_case c = operands_for(p, scalars);
          check_both_orders(p, c);
          c.inputs.erase("offsets");  // one sequence
          c.inputs["h"] = values_of({1, rows}, 5);
          c.extents["s"] = 1;
          check_both_orders(p, c);
        }
      }
}

namespace {

// Operators about which the pass knows nothing.
constexpr auto online = op<"online">(out<"y">(b, n) = scan(running_max_sum, over(n), x(b, n)));
constexpr auto variance = op<"variance">(
    out<"y">(b, n) =
        sqrt(0.1 + scan(welford, over(n).restart_every(chunk).starting_from(2, v(b), 0.5), x(b, n))),
    out<"end">(b) = last(scan(welford, over(n).reversed(), x(b, n) * w(n))));
constexpr auto signature = scan_op(
    state(0.0, 0.0, 0.0), [](auto z) { return state(z, z * z, z); },
    [](auto left, auto right) {
      auto [p, q, r] = left;
      auto [f, g, k] = right;
      return state(p + f, q + g + p * f, r + k + q * f + p * g);
    },
    [](auto whole) {
      auto [p, q, r] = whole;
      return r + q;
    });
constexpr auto signed_path =
    op<"signature">(out<"y">(b, n) = scan(signature, over(n).restart_every(chunk), x(b, n)));
constexpr auto circular = scan_op(
    state(1.0, 0.0, 0.0), [](auto p, auto q) { return state(1.0 + 0.1 * p, 0.3 * q, 0.2 * p * q); },
    [](auto left, auto right) {
      auto [p, q, r] = left;
      auto [f, g, k] = right;
      return state(p * f + q * k + r * g, p * g + q * f + r * k, p * k + q * g + r * f);
    },
    [](auto whole) {
      auto [p, q, r] = whole;
      return p + 2.0 * r;
    });
constexpr auto dense = op<"dense">(out<"y">(b, n) = scan(circular, over(n), x(b, n), w(n)));
constexpr auto chained = op<"chained">(
    out<"y">(b, n) =
        mish(scan(running_max_sum, over(n),
                  scan(decayed_sum, over(n).restart_every(chunk), sigmoid(x(b, n)),
                       scan(log_add_exp, over(n).reversed().starting_from(h0(b)), x(b, n) + v(b))))));
constexpr auto crossed =
    op<"crossed">(out<"y">(n, b) = scan(plain_sum, over(b),
                                        mish(scan(product, over(n).exclusive(), 1 + 0.1 * x(b, n))) * w(n)));

constexpr auto no_derivation =
    fn([](auto z) { return z * z * z; }).derivative([](auto z, auto) { return 5.0 * z; });
constexpr auto with_rule = op<"with_rule">(out<"y">(n) = no_derivation(w(n)));

}  // namespace

TEST_CASE("operators of users are differentiated with nothing said about it", "[pass][gradient]") {
  for (const program& p : {online, variance, signed_path, dense, chained, crossed})
    for (const double every : {0.0, 3.0}) {
      INFO(p.id.view() << " chunk " << every);
      const random_case c = operands_for(p, {{"chunk", every}});
      check_both_orders(p, derivative::restricted_to(p, c));
    }
}

TEST_CASE("a rule replaces the derived derivative", "[pass][gradient]") {
  random_case c = operands_for(with_rule);
  const tensors cotangents{{"y", values_of({length}, 9)}};
  const auto got = derivative::gradients(with_rule, gradient(with_rule), c, cotangents).at("w");
  for (std::size_t i = 0; i < got.values.size(); ++i)
    CHECK(got.values[i] == Approx(5.0 * c.inputs["w"].values[i] * cotangents.at("y").values[i]));
}

namespace {

random_case scaled_case() {
  random_case c;
  c.inputs = {{"x", values_of({2, 3, 4}, 1)}, {"w", values_of({4}, 2)}};
  c.scalars = {{"t", 0.7}};
  c.extents = {{"b", 2}, {"n", 3}, {"d", 4}};
  return c;
}

}  // namespace

TEST_CASE("an operand that lacks axes takes the sum along them", "[pass][gradient]") {
  check_both_orders(scaled, scaled_case());
}

TEST_CASE("the checks above notice a gradient that is missing", "[pass][gradient]") {
  std::mt19937 random(3);
  CHECK_THROWS_AS(derivative::difference_mismatch(scaled, gradient(scaled, x, t), scaled_case(), random),
                  std::logic_error);
  CHECK(derivative::difference_mismatch(scaled, gradient(scaled, x, w), scaled_case(), random) > 1e-3);
}

TEST_CASE("what lacks a name is refused", "[pass][gradient]") {
  CHECK_THROWS_AS(gradient(scaled, a), const char*);
  CHECK_THROWS_AS(gradient(scaled, tensor<"y">{}), const char*);
  constexpr auto long_name = op<"long">(out<"y">(n) = tensor<"a_name_of_23_characters">{}(n));
  CHECK_THROWS_AS(gradient(long_name), const char*);
}
