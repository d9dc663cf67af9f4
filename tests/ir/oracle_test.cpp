#include "scandsl/ir/oracle.hpp"

#include <algorithm>
#include <random>

#include "scandsl/ir/lower.hpp"
#include "support/catch.hpp"
#include "support/reference.hpp"

using namespace scandsl;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr axis<"s"> s;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;
constexpr tensor<"h"> h;
constexpr tensor<"offsets"> offsets;
constexpr scalar<"backward"> backward;
constexpr scalar<"before"> before;
constexpr scalar<"chunk"> chunk;

/// Every option of a scan but the initial state; unbound, they mean their default.
constexpr auto walk = over(n)
                          .reversed(value_or(backward, 0))
                          .exclusive(value_or(before, 0))
                          .restart_every(value_or(chunk, 0))
                          .restart_at(offsets(s));

template <fixed_string N, class Operator, class... E>
constexpr program scan_program(Operator op_, double identity, E... operands) {
  const auto y = scan(op_, walk.starting_from(value_or(h(s, b), identity)), operands...);
  return op<N>(out<"y">(b, n) = y, out<"last">(s, b) = last(y));
}

constexpr program summed = scan_program<"summed">(plain_sum, 0.0, x(b, n));
constexpr program multiplied = scan_program<"multiplied">(product, 1.0, x(b, n));
constexpr program greatest = scan_program<"greatest">(maximum, -inf, x(b, n));
constexpr program least = scan_program<"least">(minimum, inf, x(b, n));
constexpr program log_summed = scan_program<"log_summed">(log_add_exp, -inf, x(b, n));
constexpr program decayed = scan_program<"decayed">(decayed_sum, 0.0, a(n), x(b, n));
constexpr program varied = op<"varied">(out<"y">(b, n) = scan(welford, walk, x(b, n)),
                                        out<"last">(s, b) = last(scan(welford, walk, x(b, n))));
constexpr program normalised =
    op<"normalised">(out<"y">(b, n) = scan(running_max_sum, walk, x(b, n)),
                     out<"last">(s, b) = last(scan(running_max_sum, walk, x(b, n))));

oracle_tensor random_tensor(std::mt19937& random, std::vector<std::int64_t> extents, double low = -2,
                            double high = 2) {
  oracle_tensor result{{}, std::move(extents)};
  std::int64_t size = 1;
  for (const std::int64_t extent : result.extents) size *= extent;
  for (std::int64_t i = 0; i < size; ++i)
    result.values.push_back(std::uniform_real_distribution<double>(low, high)(random));
  return result;
}

bool close(double got, double expected) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  return got == expected || std::fabs(got - expected) <= 1e-12 * std::max(1.0, std::fabs(expected));
}

struct run_case {
  std::int64_t batch = 2, length = 0;
  reference::options options;
  std::vector<double> x, a;
  std::vector<double> start;  ///< (s, b); empty: not bound

  std::int64_t sequences() const {
    return options.offsets.empty() ? 1 : static_cast<std::int64_t>(options.offsets.size()) - 1;
  }
  std::vector<double> row(std::int64_t i) const { return reference::columns{batch, length, 1}.read(x, i); }
  reference::options row_options(std::int64_t i) const {
    reference::options result = options;
    for (std::int64_t k = 0; k < sequences() && !start.empty(); ++k)
      result.initial.push_back({start[static_cast<std::size_t>(k * batch + i)]});
    return result;
  }
};

/// The oracle's outputs equal the reference's on every row; `value` of the reference's final state is what
/// last gives.
template <class Reference, class Value>
bool agrees(const program& p, const run_case& c, Reference expected, Value value) {
  std::map<std::string, oracle_tensor> inputs{{"x", {c.x, {c.batch, c.length}}}};
  if (p.find_tensor(make_name("a")) >= 0) inputs["a"] = {c.a, {c.length}};
  if (!c.start.empty() && p.find_tensor(make_name("h")) >= 0)
    inputs["h"] = {c.start, {c.sequences(), c.batch}};
  if (!c.options.offsets.empty())
    inputs["offsets"] = {{c.options.offsets.begin(), c.options.offsets.end()}, {c.sequences() + 1}};
  std::map<std::string, double> scalars;
  if (c.options.reversed) scalars["backward"] = 1;
  if (c.options.exclusive) scalars["before"] = -3;  // any number but 0 is true
  if (c.options.chunk != 0) scalars["chunk"] = static_cast<double>(c.options.chunk);
  const auto got = oracle(p, inputs, scalars);
  bool right = got.at("y").extents == std::vector<std::int64_t>{c.batch, c.length} &&
               got.at("last").extents == std::vector<std::int64_t>{c.sequences(), c.batch};
  for (std::int64_t i = 0; right && i < c.batch; ++i) {
    const reference::result wanted = expected(c.row(i), c.row_options(i));
    for (std::size_t t = 0; t < wanted.values.size(); ++t)
      right =
          right && close(got.at("y").values[static_cast<std::size_t>(i * c.length) + t], wanted.values[t]);
    for (std::size_t k = 0; k < wanted.last.size(); ++k)
      right =
          right &&
          close(got.at("last").values[k * static_cast<std::size_t>(c.batch) + static_cast<std::size_t>(i)],
                value(wanted.last[k]));
  }
  return right;
}

/// Calls f with every combination of direction, exclusion, restarts, packed sequences and initial states.
template <class F> void for_each_case(F f) {
  std::mt19937 random(11);
  for (const std::int64_t length : {0, 1, 7, 12})
    for (const std::int64_t chunk_size : {0, 1, 3, 12, 40})
      for (int flags = 0; flags < 16; ++flags) {
        run_case c;
        c.length = length;
        c.options = {(flags & 1) != 0, (flags & 2) != 0, chunk_size, {}, {}};
        if ((flags & 4) != 0) c.options.offsets = {0, 0, length / 3, length / 3, length};
        c.x = random_tensor(random, {c.batch, length}).values;
        c.a = random_tensor(random, {length}, 0, 1).values;
        if ((flags & 8) != 0) c.start = random_tensor(random, {c.sequences(), c.batch}).values;
        f(c);
      }
}

}  // namespace

TEST_CASE("the oracle computes every standard scan as the textbook does", "[ir][oracle]") {
  const auto state_value = [](const reference::state& state) { return state[0]; };
  const auto variance_value = [](const reference::state& state) {
    return state[0] > 0 ? state[2] / state[0] : 0;
  };
  int cases = 0;
  for_each_case([&](const run_case& c) {
    ++cases;
    INFO("length " << c.length << " chunk " << c.options.chunk << " reversed " << c.options.reversed
                   << " exclusive " << c.options.exclusive << " packed " << !c.options.offsets.empty()
                   << " initial " << !c.start.empty());
    CHECK(agrees(summed, c, reference::cumulative_sum, state_value));
    CHECK(agrees(multiplied, c, reference::cumulative_product, state_value));
    CHECK(agrees(greatest, c, reference::running_maximum, state_value));
    CHECK(agrees(least, c, reference::running_minimum, state_value));
    CHECK(agrees(log_summed, c, reference::log_cumulative_sum_exp, state_value));
    const auto with_decay = [&](const std::vector<double>& row, const reference::options& o) {
      return reference::decayed_sum(c.a, row, o);
    };
    CHECK(agrees(decayed, c, with_decay, state_value));
    run_case unseeded = c;
    unseeded.start.clear();
    CHECK(agrees(varied, unseeded, reference::variance, variance_value));
    CHECK(agrees(normalised, unseeded, reference::log_cumulative_sum_exp, state_value));
  });
  CHECK(cases == 320);
}

TEST_CASE("the oracle keeps infinities and NaN as the mathematics has them", "[ir][oracle]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::vector<double>> rows = {{-inf, -inf, 0, -inf},
                                                 {1, inf, 2, -inf},
                                                 {nan, 1, inf, -1},
                                                 {3, -inf, nan, inf},
                                                 {1e4, -1e4, 1e4, 709}};
  const auto state_value = [](const reference::state& state) { return state[0]; };
  for (const auto& row : rows) {
    run_case c;
    c.batch = 1;
    c.length = 4;
    c.x = row;
    CHECK(agrees(log_summed, c, reference::log_cumulative_sum_exp, state_value));
    CHECK(agrees(greatest, c, reference::running_maximum, state_value));
    CHECK(agrees(least, c, reference::running_minimum, state_value));
    CHECK(agrees(summed, c, reference::cumulative_sum, state_value));
  }
}

TEST_CASE("the oracle computes any primitive as its definition does", "[ir][oracle]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> ends = {-inf, -1e3, -2.5, -1, -1e-3, -0.0, 0, 1e-3, 0.5, 1, 3, 1e3, inf, nan};
  const auto same_value = [&]<class P>(std::type_identity<P>, double u, double v) {
    if constexpr (primitive::argument_kind<P>(0) == value_kind::integer) {
      if (std::trunc(u) != u || std::trunc(v) != v || std::isinf(u) || std::isinf(v)) return true;
      const auto i = static_cast<std::int64_t>(u), j = static_cast<std::int64_t>(v);
      if constexpr (P::arity == 1)
        return P::template value<double>(i) == detail::oracle_primitive(primitive::index<P>, u, 0, 0);
      else
        return double(P::value(i, j)) == detail::oracle_primitive(primitive::index<P>, u, v, 0);
    } else if constexpr (primitive::argument_kind<P>(0) == value_kind::truth) {
      const bool c = u > 0;
      if constexpr (P::arity == 1)
        return double(P::value(c)) == detail::oracle_primitive(primitive::index<P>, c, 0, 0);
      if constexpr (P::arity == 2)
        return double(P::value(c, v > 0)) == detail::oracle_primitive(primitive::index<P>, c, v > 0, 0);
      if constexpr (P::arity == 3)
        return close(P::value(c, u, v), detail::oracle_primitive(primitive::index<P>, c, u, v));
    } else {
      if constexpr (P::arity == 1)
        return close(P::value(u), detail::oracle_primitive(primitive::index<P>, u, 0, 0));
      if constexpr (P::arity == 2)
        return close(P::value(u, v), detail::oracle_primitive(primitive::index<P>, u, v, 0));
      if constexpr (P::arity == 3)
        return close(P::value(u, v, v), detail::oracle_primitive(primitive::index<P>, u, v, v));
    }
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (([&] {
       using P = primitive::at<static_cast<int>(I)>;
       for (const double u : ends)
         for (const double v : ends) {
           INFO(P::name << "(" << u << ", " << v << ")");
           CHECK(same_value(std::type_identity<P>{}, u, v));
         }
     }()),
     ...);
  }(std::make_index_sequence<static_cast<std::size_t>(primitive::count)>{});
  CHECK_THROWS_AS(detail::oracle_primitive(primitive::count, 0, 0, 0), error);
}

namespace {
constexpr auto soft = op<"soft">(out<"y">(b, n) = exp(x(b, n) - last(scan(log_add_exp, over(n), x(b, n)))));
constexpr auto broadcast =
    op<"broadcast">(out<"y">(d, b) = a(d) + scalar<"t">{}, out<"z">(b, d) = value_or(h(d), 7.0));
constexpr auto chained = op<"chained">(
    out<"y">(b, n) = scan(plain_sum, over(b).reversed(), silu(scan(plain_sum, over(n), x(b, n))) * a(n)));
constexpr auto user = op<"user">(
    out<"y">(n) = fn([](auto v) { return v * 3; }).derivative([](auto, auto) { return 3.0; })(x(n)));
}  // namespace

TEST_CASE("a last value is broadcast back over its axis", "[ir][oracle]") {
  std::mt19937 random(5);
  const oracle_tensor given = random_tensor(random, {3, 6});
  const auto got = oracle(soft, {{"x", given}}).at("y").values;
  const reference::columns rows{3, 6, 1};
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::vector<double> expected = reference::softmax(rows.read(given.values, i)),
                              row = rows.read(got, i);
    for (std::size_t t = 0; t < row.size(); ++t) CHECK(close(row[t], expected[t]));
  }
}

TEST_CASE("tensors are read and written in their declared order of axes", "[ir][oracle]") {
  const auto got = oracle(broadcast, {{"a", {{1, 2, 3}, {3}}}}, {{"t", 0.5}}, {{"b", 2}});
  CHECK(got.at("y").extents == std::vector<std::int64_t>{3, 2});
  CHECK(got.at("y").values == std::vector<double>{1.5, 1.5, 2.5, 2.5, 3.5, 3.5});
  CHECK(got.at("z").values == std::vector<double>(6, 7.0));
}

TEST_CASE("scans chain, also over different axes", "[ir][oracle]") {
  const auto got = oracle(chained, {{"x", {{1, 2, 3, 4}, {2, 2}}}, {"a", {{1, -1}, {2}}}}).at("y").values;
  const auto gate = [](double v) { return v / (1 + std::exp(-v)); };
  CHECK(close(got[0], gate(1) + gate(3)));
  CHECK(close(got[1], -gate(3) - gate(7)));
  CHECK(close(got[2], gate(3)));
  CHECK(close(got[3], -gate(7)));
}

TEST_CASE("a derivative rule does not change the value", "[ir][oracle]") {
  CHECK(oracle(user, {{"x", {{1, -2}, {2}}}}).at("y").values == std::vector<double>{3, -6});
}

TEST_CASE("the oracle rejects what an executor rejects", "[ir][oracle]") {
  const oracle_tensor two{{1, 2}, {1, 2}};
  CHECK_THROWS_AS(oracle(summed, {}), argument_error);
  CHECK_THROWS_AS(oracle(summed, {{"x", two}, {"q", two}}), argument_error);
  CHECK_THROWS_AS(oracle(summed, {{"x", two}, {"y", two}}), argument_error);
  CHECK_THROWS_AS(oracle(summed, {{"x", two}}, {{"q", 1}}), argument_error);
  CHECK_THROWS_AS(oracle(broadcast, {{"a", {{1}, {1}}}}, {}, {{"b", 2}}), argument_error);
  CHECK_THROWS_AS(oracle(broadcast, {{"a", {{1}, {1}}}}, {{"t", 1}}), shape_error);
  CHECK_THROWS_AS(oracle(summed, {{"x", two}}, {}, {{"q", 1}}), argument_error);
  CHECK_THROWS_AS(oracle(summed, {{"x", two}}, {}, {{"n", 3}}), shape_error);
  CHECK_THROWS_AS(oracle(summed, {{"x", {{1, 2}, {2}}}}), shape_error);
  CHECK_THROWS_AS(oracle(summed, {{"x", {{1}, {1, 2}}}}), shape_error);
  CHECK_THROWS_AS(oracle(decayed, {{"x", two}, {"a", {{1, 2, 3}, {3}}}}), shape_error);
  for (const std::vector<double>& bad : {std::vector<double>{0, 1}, {1, 2}, {0, 2, 1, 2}, {0, 3, 2}})
    CHECK_THROWS_AS(oracle(summed, {{"x", two}, {"offsets", {bad, {static_cast<std::int64_t>(bad.size())}}}}),
                    argument_error);
  CHECK_THROWS_AS(oracle(summed, {{"x", two}, {"h", {{1, 2}, {2, 1}}}}),
                  shape_error);  // two states, one sequence
}
