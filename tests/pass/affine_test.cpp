#include "scandsl/pass/affine.hpp"

#include "scandsl/ir/lower.hpp"
#include "scandsl/ir/oracle.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"a"> a;

constexpr auto decayed = op<"decayed">(out<"y">(n) = scan(decayed_sum, over(n), a(n), x(n)));
constexpr auto summed = op<"summed">(out<"y">(n) = scan(plain_sum, over(n), x(n)));
constexpr auto log_summed = op<"log_summed">(out<"y">(n) = scan(log_add_exp, over(n), x(n)));

/// The derivative of a program's only scan, and the program that its entries are nodes of.
struct differentiated {
  detail::derivation d;
  detail::dependence depends;
  detail::step_derivative step;

  constexpr explicit differentiated(const program& p)
      : d(p), depends(p, [](const node&) { return true; }),
        step(detail::step_differentiation(d, depends, 0).rows(static_cast<detail::component_mask>(~0U))) {}
  constexpr const node& by_carry(std::size_t i, std::size_t j) const { return d.at(step.carry[i][j].id); }
  constexpr const node& by_element(std::size_t i, std::size_t j) const { return d.at(step.element[i][j].id); }
};

// h_t = a_t h_{t-1} + x_t: by h it is a_t, by a the carry, by x 1. The product of the decays plays no part.
static_assert([] {
  const differentiated of(decayed);
  return of.by_carry(1, 1) == decayed.nodes[decayed.scans[0].element[0]] && of.step.carry[1][0].is_zero() &&
         of.by_element(1, 0).op == opcode::carry && of.by_element(1, 0).component == 1 &&
         of.step.element[1][1].equals(1.0) && of.step.carry[0][1].is_zero();
}());
static_assert([] {
  const differentiated of(summed);
  return of.step.carry[0][0].equals(1.0) && of.step.element[0][0].equals(1.0);
}());
// The factors of log-add-exp are exponentials of differences with the scan's own value.
static_assert([] {
  const differentiated of(log_summed);
  const node& by_carry = of.by_carry(0, 0);
  return is_apply<primitive::exp_difference_op>(by_carry) &&
         of.d.at(by_carry.operand[0]).op == opcode::carry &&
         of.d.at(by_carry.operand[1]).op == opcode::scan &&
         is_apply<primitive::select_op>(of.by_element(0, 0));
}());

/// Which entries of a matrix are tensors of their own; the others are 1 on the diagonal and 0 elsewhere.
struct pattern {
  int size = 1;
  const char* entries = "";  ///< row by row; a letter names a tensor, '1' and '0' are fixed
};

constexpr node_id operand_of(builder& b, const name& id) {
  tensor_decl declared{id, {}, tensor_role::input, false, 0.0};
  declared.axes.push_back(static_cast<std::int16_t>(b.axis(make_name("n"))));
  return b.load(declared);
}
constexpr name letter(char c) { return make_name(std::string_view(&c, 1)); }

/// r_t = M_t r_{t-1} + c_t with the vectors c0, c1, ..., from `start` or from 0, as a program with outputs
/// r0, r1, ...
constexpr program recurrence(const pattern& m, bool starts) {
  program empty;
  detail::derivation d(empty);
  builder& b = d.target;
  scan_decl walk;
  walk.axis = static_cast<std::int16_t>(b.axis(make_name("n")));
  detail::affine_recurrence r;
  r.size = m.size;
  r.starts_at_zero = !starts;
  for (int j = 0; j < m.size; ++j) {
    for (int i = 0; i < m.size; ++i) {
      const char entry = m.entries[j * m.size + i];
      const bool fixed = entry == '0' || entry == '1';
      r.matrix[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)] = {
          d, fixed ? b.constant(entry - '0') : operand_of(b, letter(entry))};
    }
    const char vector[] = {'c', static_cast<char>('0' + j), '\0'};
    r.offset[static_cast<std::size_t>(j)] = {d, operand_of(b, make_name(vector))};
    r.initial[static_cast<std::size_t>(j)] = {d, b.constant(0.5 + j)};
  }
  const detail::affine_scan made = declare(d, walk, r);
  for (int j = 0; j < m.size; ++j) {
    const char id[] = {'r', static_cast<char>('0' + j), '\0'};
    tensor_decl output{make_name(id), {}, tensor_role::output, false, 0.0};
    output.axes.push_back(walk.axis);
    const node_id value = b.scan_value(opcode::scan, made.scan, made.component[j]);
    b.result.stores.push_back({static_cast<std::int16_t>(b.tensor(output)), value});
  }
  return b.result;
}
constexpr int components(const pattern& m) { return recurrence(m, false).scans[0].components; }

// What is 0 or 1 for good is not carried.
static_assert(components({1, "1"}) == 1 && components({1, "p"}) == 2 && components({1, "0"}) == 1 + 1);
static_assert(components({2, "1001"}) == 2);
static_assert(components({2, "1p01"}) == 3);  // a shear stays one
static_assert(components({2, "p00p"}) == 3);  // one entry for an equal diagonal
static_assert(components({2, "p00q"}) == 4);
static_assert(components({2, "pq0p"}) == 5);       // products of shears have no equal diagonal to rely on
static_assert(components({3, "1p001q001"}) == 6);  // the corner fills
static_assert(components({3, "pqrstuvwz"}) == 12);
static_assert(recurrence({1, "1"}, false).scans[0].identity[0] == 0.0);

using tensors = std::map<std::string, oracle_tensor>;

tensors inputs_for(const program& p, std::size_t length) {
  tensors result;
  int seed = 1;
  for (const tensor_decl& t : p.tensors) {
    if (t.role != tensor_role::input) continue;
    oracle_tensor& values = result[std::string(t.id.view())];
    values.extents = {static_cast<std::int64_t>(length)};
    for (std::size_t i = 0; i < length; ++i) values.values.push_back(0.9 * std::sin(1.0 + seed++ * 2.3));
  }
  return result;
}

}  // namespace

TEST_CASE("a recurrence as a scan is the recurrence", "[pass][affine]") {
  constexpr std::size_t length = 9;
  for (const pattern& m :
       {pattern{1, "1"}, pattern{1, "p"}, pattern{2, "1p01"}, pattern{2, "p00p"}, pattern{2, "pq0p"},
        pattern{2, "0pq0"}, pattern{3, "1p001q001"}, pattern{3, "pqrstuvwz"}})
    for (const bool starts : {false, true}) {
      INFO(m.entries << " starts " << starts);
      const program p = recurrence(m, starts);
      const tensors inputs = inputs_for(p, length), got = oracle(p, inputs);
      std::vector<double> r;
      for (int j = 0; j < m.size; ++j) r.push_back(starts ? 0.5 + j : 0.0);
      for (std::size_t t = 0; t < length; ++t) {
        std::vector<double> next;
        for (int j = 0; j < m.size; ++j) {
          double sum = inputs.at("c" + std::to_string(j)).values[t];
          for (int i = 0; i < m.size; ++i) {
            const char entry = m.entries[j * m.size + i];
            const double factor =
                entry == '0' || entry == '1' ? entry - '0' : inputs.at(std::string(1, entry)).values[t];
            sum += factor * r[static_cast<std::size_t>(i)];
          }
          next.push_back(sum);
        }
        r = next;
        for (int j = 0; j < m.size; ++j)
          CHECK(got.at("r" + std::to_string(j)).values[t] == Approx(r[static_cast<std::size_t>(j)]));
      }
    }
}

TEST_CASE("the combine of a recurrence is associative and has its identity", "[pass][affine]") {
  // Scanned from the middle on with the first half's state as initial value, the second half is the same:
  // what executors rely on when they cut a row into pieces. Here by hand on the whole state.
  const program p = recurrence({3, "pqrstuvwz"}, false);
  const scan_decl& s = p.scans[0];
  const auto combine = [&](const std::vector<double>& left, const std::vector<double>& right) {
    std::vector<double> values(static_cast<std::size_t>(p.nodes.count));
    for (int i = 0; i < p.nodes.count; ++i) {
      const node& each = p.nodes[i];
      const auto at = [&](int o) { return values[static_cast<std::size_t>(each.operand[o])]; };
      double& value = values[static_cast<std::size_t>(i)];
      if (each.op == opcode::left) value = left[static_cast<std::size_t>(each.target)];
      if (each.op == opcode::right) value = right[static_cast<std::size_t>(each.target)];
      if (is_apply<primitive::add_op>(each)) value = at(0) + at(1);
      if (is_apply<primitive::multiply_op>(each)) value = at(0) * at(1);
    }
    std::vector<double> result;
    for (int k = 0; k < s.components; ++k) result.push_back(values[static_cast<std::size_t>(s.combined[k])]);
    return result;
  };
  std::vector<std::vector<double>> states(3);
  int seed = 0;
  for (std::vector<double>& state_ : states)
    for (int k = 0; k < s.components; ++k) state_.push_back(std::cos(1.7 * ++seed));
  const std::vector<double> identity(s.identity, s.identity + s.components);
  const std::vector<double> one = combine(combine(states[0], states[1]), states[2]),
                            other = combine(states[0], combine(states[1], states[2]));
  for (std::size_t k = 0; k < one.size(); ++k) CHECK(one[k] == Approx(other[k]));
  CHECK(combine(identity, states[0]) == states[0]);
  CHECK(combine(states[0], identity) == states[0]);
}

TEST_CASE("a recurrence that needs too many components is refused", "[pass][affine]") {
  CHECK_THROWS_AS(recurrence({4, "pqrstuvwzklmnoij"}, false), const char*);
}
