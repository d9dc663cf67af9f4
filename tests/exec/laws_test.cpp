#include <algorithm>
#include <cmath>
#include <functional>

#include "exec/sweep_programs.hpp"
#include "support/catch.hpp"

using namespace exec_test;

// ---- a scan operator's laws, on states

namespace {

using namespace names;
using states = std::vector<double>;

inline constexpr auto every_operator = op<"every">(
    out<"y0">(n) = scan(plain_sum, over(n), x(n)), out<"y1">(n) = scan(product, over(n), x(n)),
    out<"y2">(n) = scan(maximum, over(n), x(n)), out<"y3">(n) = scan(minimum, over(n), x(n)),
    out<"y4">(n) = scan(log_add_exp, over(n), x(n)), out<"y5">(n) = scan(running_max_sum, over(n), x(n)),
    out<"y6">(n) = scan(decayed_sum, over(n), a(n), x(n)), out<"y7">(n) = scan(welford, over(n), x(n)),
    out<"y8">(n) = scan(kept_mean, over(n), a(n), x(n), a(n)));
inline constexpr auto carried = log_sum(every_operator);

struct operator_under_test {
  const char* name;
  states identity;
  void (*combine)(states& left, const states& right);
  states (*lift)(double x, double y);  ///< of an element x, weighted or decayed by y
  bool takes_infinities;
};

template <const program& P, int Scan> void combine_states(states& left, const states& right) {
  constexpr int components = P.scans[Scan].components;
  using combine = combiner<ref<P>, Scan, (1U << components) - 1U>;
  typename combine::template states<double> l, r;
  std::copy_n(left.begin(), components, l.begin());
  std::copy_n(right.begin(), components, r.begin());
  combine::apply(l, r);
  std::copy_n(l.begin(), components, left.begin());
}

template <const program& P, int Scan>
operator_under_test under_test(const char* name, states (*lift)(double, double),
                               bool takes_infinities = true) {
  const scan_decl& s = P.scans[Scan];
  return {name, {s.identity, s.identity + s.components}, combine_states<P, Scan>, lift, takes_infinities};
}

states alone(double x, double) { return {x}; }

const std::vector<operator_under_test>& operators() {
  static const std::vector<operator_under_test> all = {
      under_test<every_operator, 0>("plain_sum", alone),
      under_test<every_operator, 1>("product", alone),
      under_test<every_operator, 2>("maximum", alone),
      under_test<every_operator, 3>("minimum", alone),
      under_test<every_operator, 4>("log_add_exp", alone),
      under_test<every_operator, 5>("running_max_sum", [](double x, double) { return states{x, 1}; }),
      under_test<every_operator, 6>("decayed_sum", [](double x, double y) { return states{y, x}; }),
      under_test<every_operator, 7>(
          "welford", [](double x, double) { return states{1, x, 0}; }, false),
      under_test<every_operator, 8>(
          "kept_mean", [](double x, double y) { return states{y, x * y, y}; }, false),
      under_test<carried, 4>("log_add_exp as (max, sum)", [](double x, double) { return states{x, 1}; })};
  return all;
}

bool close(const states& left, const states& right) {
  for (std::size_t k = 0; k < left.size(); ++k) {
    const double l = left[k], r = right[k];
    if (l == r || (std::isnan(l) && std::isnan(r))) continue;
    if (!(std::fabs(l - r) <= 1e-12 * std::max({1.0, std::fabs(l), std::fabs(r)}))) return false;
  }
  return true;
}

/// States of one to four elements, the weights in (0, 1].
states random_state(const operator_under_test& op_, std::mt19937& random) {
  const auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto element = [&] {
    if (!op_.takes_infinities || draw(0, 1) < 0.6) return op_.lift(draw(-3, 3), draw(0.1, 1));
    const double ends[] = {-inf, -1e4, 0.0, 1e4, inf};
    return op_.lift(ends[static_cast<std::size_t>(draw(0, 4.999))], 1.0);
  };
  states s = element();
  for (int more = static_cast<int>(draw(0, 3.999)); more > 0; --more) op_.combine(s, element());
  return s;
}

}  // namespace

TEST_CASE("the identity is neutral on both sides", "[exec][laws]") {
  std::mt19937 random(31);
  for (const operator_under_test& each : operators())
    for (int i = 0; i < 500; ++i) {
      const states s = random_state(each, random);
      states left = each.identity, right = s;
      each.combine(left, s);
      each.combine(right, each.identity);
      INFO(each.name);
      CHECK(close(left, s));
      CHECK(close(right, s));
    }
}

TEST_CASE("combine is associative", "[exec][laws]") {
  std::mt19937 random(32);
  for (const operator_under_test& each : operators())
    for (int i = 0; i < 500; ++i) {
      const states s = random_state(each, random), t = random_state(each, random),
                   u = random_state(each, random);
      states left = s, right = t, all = s;
      each.combine(left, t);
      each.combine(left, u);
      each.combine(right, u);
      each.combine(all, right);
      INFO(each.name);
      CHECK(close(left, all));
    }
}

// ---- laws of scans, on runs

namespace {

struct named_scan {
  const compiled* program_;
  std::string name;
  double tolerance;  ///< 0: the same bits
};
/// Two orders of adding up to 100 numbers: so many roundings apart at most.
constexpr double rounding = sums_by_stretches ? 100 * 0x1p-24 : 0;
const named_scan seeded_scans[] = {{&simple_scans, "sum", rounding},
                                   {&simple_scans, "product", rounding},
                                   {&simple_scans, "max", 0},
                                   {&simple_scans, "min", 0},
                                   {&decayed_scans, "decayed", rounding},
                                   {&statistics_scans, "log", std::max(1e-6, rounding)}};

/// Runs one scan of its program alone.
tensors run_alone(const named_scan& which, operands given) {
  for (const store_decl& store : which.program_->p->stores) {
    const std::string id(which.program_->p->tensors[store.tensor].id.view());
    if (id != "y_" + which.name && id != "l_" + which.name) given.unbound.insert(id);
  }
  return run_on_cpu(*which.program_, given).outputs;
}

/// The part [from, to) of a case along n, with its own initial state.
operands part_of(const operands& whole, std::int64_t from, std::int64_t to,
                 const std::vector<double>& state) {
  operands part = whole;
  for (const char* id : {"x", "a"}) {
    const auto found = part.inputs.find(id);
    if (found == part.inputs.end()) continue;
    oracle_tensor& values = found->second;
    const std::int64_t length = values.extents.back(),
                       rows = values.extents.size() == 2 ? values.extents[0] : 1;
    std::vector<double> kept;
    for (std::int64_t row = 0; row < rows; ++row)
      kept.insert(kept.end(), values.values.begin() + row * length + from,
                  values.values.begin() + row * length + to);
    values.values = kept;
    values.extents.back() = to - from;
  }
  part.inputs["h"] = {state, {1, static_cast<std::int64_t>(state.size())}};
  return part;
}

bool same(const named_scan& which, double one, double other) {
  return one == other || std::fabs(one - other) <= which.tolerance * std::max(1.0, std::fabs(one));
}

/// The same bits, or where stretches are added on their own the same up to rounding.
bool alike(const named_scan& which, double one, double other) {
  return one == other || (sums_by_stretches && same(which, one, other));
}

}  // namespace

TEST_CASE("a sequence fed in parts, by states, is the whole sequence", "[exec][laws]") {
  for (const named_scan& which : seeded_scans)
    for (const std::vector<std::int64_t>& cuts :
         {std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}, {0, 0, 50, 77, 77, 130}, {0, 64, 128, 129}}) {
      const std::int64_t batch = 18, length = cuts.back();
      scan_case c{batch, length};
      c.seeded = true;
      const operands given = make_operands(*which.program_, c, 41);
      const tensors whole = run_alone(which, given);
      std::vector<double> state = given.inputs.at("h").values;
      bool right = true;
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        const tensors part = run_alone(which, part_of(given, cuts[i], cuts[i + 1], state));
        state = part.at("l_" + which.name).values;
        const std::int64_t steps = cuts[i + 1] - cuts[i];
        for (std::int64_t row = 0; row < batch; ++row)
          for (std::int64_t t = 0; t < steps; ++t)
            right =
                right &&
                same(which,
                     whole.at("y_" + which.name).values[static_cast<std::size_t>(row * length + cuts[i] + t)],
                     part.at("y_" + which.name).values[static_cast<std::size_t>(row * steps + t)]);
      }
      for (std::size_t row = 0; row < state.size(); ++row)
        right = right && same(which, whole.at("l_" + which.name).values[row], state[row]);
      INFO(which.name << " of length " << length);
      CHECK(right);
    }
}

TEST_CASE("packed sequences, and chunks, are separate scans", "[exec][laws]") {
  const std::vector<std::int64_t> chunks = {0, 32, 64, 96, 100};
  for (const named_scan& which : seeded_scans) {
    scan_case c{5, 100};
    c.seeded = true;
    const operands once = make_operands(*which.program_, c, 42);
    operands packed = once, chunked = once;
    std::vector<double> states;  // the same initial state for every sequence
    for (int s = 0; s < 4; ++s)
      states.insert(states.end(), once.inputs.at("h").values.begin(), once.inputs.at("h").values.end());
    packed.inputs["h"] = {states, {4, 5}};
    packed.inputs["offsets"] = {{chunks.begin(), chunks.end()}, {5}};
    chunked.scalars["chunk"] = 32;
    const tensors from_packed = run_alone(which, packed), from_chunked = run_alone(which, chunked);
    INFO(which.name);
    CHECK(from_packed.at("y_" + which.name).values == from_chunked.at("y_" + which.name).values);
    bool right = true;
    for (std::size_t s = 0; s < 4; ++s) {
      const tensors part =
          run_alone(which, part_of(once, chunks[s], chunks[s + 1], once.inputs.at("h").values));
      for (std::size_t row = 0; row < 5; ++row) {
        right = right && alike(which, part.at("l_" + which.name).values[row],
                               from_packed.at("l_" + which.name).values[s * 5 + row]);
        for (std::int64_t t = chunks[s]; t < chunks[s + 1]; ++t)
          right = right &&
                  alike(which,
                        part.at("y_" + which.name)
                            .values[row * static_cast<std::size_t>(chunks[s + 1] - chunks[s]) +
                                    static_cast<std::size_t>(t - chunks[s])],
                        from_packed.at("y_" + which.name).values[row * 100 + static_cast<std::size_t>(t)]);
      }
    }
    CHECK(right);
  }
}

TEST_CASE("a reversed scan is the scan of the flipped sequence, flipped", "[exec][laws]") {
  for (const named_scan& which : seeded_scans)
    for (const std::int64_t length : {1, 64, 131, 5000}) {
      scan_case c{3, length};
      c.seeded = true;
      operands given = make_operands(*which.program_, c, 43);
      given.scalars["backward"] = 1;
      const tensors backwards = run_alone(which, given);
      given.scalars.clear();
      // Bound to flipped memory: the values stay where they were, the axis runs the other way.
      operands flipped = given;
      for (auto& [id, tensor] : flipped.inputs)
        if (id != "h") {
          const auto rows = static_cast<std::ptrdiff_t>(tensor.values.size()) / length;
          for (std::ptrdiff_t row = 0; row < rows; ++row)
            std::reverse(tensor.values.begin() + row * length, tensor.values.begin() + (row + 1) * length);
        }
      tensors forwards = run_alone(which, flipped);
      std::vector<double>& y = forwards.at("y_" + which.name).values;
      for (std::ptrdiff_t row = 0; row < 3; ++row)
        std::reverse(y.begin() + row * length, y.begin() + (row + 1) * length);
      INFO(which.name << " of length " << length);
      bool right = true;
      for (std::size_t i = 0; i < y.size(); ++i)
        right = right && (length < 4096 ? y[i] == backwards.at("y_" + which.name).values[i]
                                        : std::fabs(y[i] - backwards.at("y_" + which.name).values[i]) <=
                                              1e-4 * std::max(1.0, std::fabs(y[i])));
      CHECK(right);
    }
}
