#include "exec/scan_programs.hpp"

#include <algorithm>
#include <ostream>

namespace exec_test {
namespace {

using namespace names;

// An operand has one fallback: here 1.
constexpr auto sums = scan(plain_sum, walk_from(1.0), x(b, n));
constexpr auto products = scan(product, walk_from(1.0), x(b, n));
constexpr auto greatest = scan(maximum, walk_from(1.0), x(b, n));
constexpr auto least = scan(minimum, walk_from(1.0), x(b, n));
inline constexpr auto simple_program = op<"simple">(
    out<"y_sum">(b, n).optional() = sums, out<"l_sum">(s, b).optional() = last(sums),
    out<"y_product">(b, n).optional() = products, out<"l_product">(s, b).optional() = last(products),
    out<"y_max">(b, n).optional() = greatest, out<"l_max">(s, b).optional() = last(greatest),
    out<"y_min">(b, n).optional() = least, out<"l_min">(s, b).optional() = last(least));

constexpr auto log_sums = scan(log_add_exp, walk_from(-inf), x(b, n));
constexpr auto online = scan(running_max_sum, walk, x(b, n));
constexpr auto variances = scan(welford, walk, x(b, n));
inline constexpr auto statistics_program = op<"statistics">(
    out<"y_log">(b, n).optional() = log_sums, out<"l_log">(s, b).optional() = last(log_sums),
    out<"y_online">(b, n).optional() = online, out<"l_online">(s, b).optional() = last(online),
    out<"y_variance">(b, n).optional() = variances, out<"l_variance">(s, b).optional() = last(variances));

constexpr auto decays = scan(decayed_sum, walk_from(0.0), a(n), x(b, n));
constexpr auto means =
    scan(kept_mean, walk.starting_from(1.0, value_or(h(s, b), 0.0), 0.5), a(n), x(b, n), a(n));
inline constexpr auto decayed_program = op<"decayed">(
    out<"y_decayed">(b, n).optional() = decays, out<"l_decayed">(s, b).optional() = last(decays),
    out<"y_mean">(b, n).optional() = means, out<"l_mean">(s, b).optional() = last(means));

}  // namespace

const compiled simple_scans = compile_float<simple_program>();
const compiled statistics_scans = compile_float<statistics_program>();
const compiled decayed_scans = compile_both<decayed_program>();

operands make_operands(const compiled& program_, const scan_case& c, unsigned seed) {
  std::mt19937 random(seed);
  operands result;
  const bool products = program_.p->id == make_name("simple");
  const std::int64_t sequences = c.packed ? static_cast<std::int64_t>(c.offsets.size()) - 1 : 1;
  const std::map<std::string, std::int64_t> extents{
      {"b", c.batch}, {"n", c.length}, {"d", c.width}, {"s", sequences}};
  for (const tensor_decl& declared : program_.p->tensors) {
    if (declared.role != tensor_role::input || (declared.optional && !c.seeded)) continue;
    std::vector<std::int64_t> shape;
    for (const std::int16_t axis : declared.axes)
      shape.push_back(extents.at(std::string(program_.p->axes[axis].view())));
    const std::string id(declared.id.view());
    const bool positive = id == "a" || id == "h";
    oracle_tensor values = random_tensor(random, shape, positive ? 0.125 : -2, positive ? 1 : 2);
    for (std::size_t i = 0; products && i < values.values.size(); ++i)  // neither overflow nor vanish
      values.values[i] = i % 2 == 0 ? values.values[i] / 16 - 1 : 16 / (values.values[i] + 16);
    result.inputs[id] = values;
  }
  if (program_.p->find_tensor(names::offsets.id) < 0) return result;  // no options
  if (c.packed) result.inputs["offsets"] = {{c.offsets.begin(), c.offsets.end()}, {sequences + 1}};
  if (c.reversed) result.scalars["backward"] = 1;
  if (c.exclusive) result.scalars["before"] = -3;  // any number but 0 is true
  if (c.chunk != 0) result.scalars["chunk"] = static_cast<double>(c.chunk);
  return result;
}

std::vector<std::int64_t> random_offsets(std::mt19937& random, std::int64_t length, int sequences) {
  std::vector<std::int64_t> result{0, length};
  for (int i = 1; i < sequences; ++i)
    result.push_back(i > 1 && i % 3 == 0 ? result.back()
                                         : std::uniform_int_distribution<std::int64_t>(0, length)(random));
  std::sort(result.begin(), result.end());
  return result;
}

std::ostream& operator<<(std::ostream& out, const scan_case& c) {
  out << "batch " << c.batch << " length " << c.length << " chunk " << c.chunk
      << (c.reversed ? " reversed" : "") << (c.exclusive ? " exclusive" : "") << (c.seeded ? " initial" : "");
  if (c.packed) out << " packed";
  for (const std::int64_t each : c.offsets) out << ' ' << each;
  return out;
}

}  // namespace exec_test
