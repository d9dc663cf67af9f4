#include <cmath>

#include "exec/scan_programs.hpp"
#include "scandsl/expr/operators.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"
#include "support/resonator.hpp"

// Gradients of scan operators of two components and more, for which no line was written, against the
// interpreter in float64.

using namespace exec_test;

namespace {

using namespace names;
using support::resonator;
constexpr tensor<"w"> weight;
constexpr tensor<"re"> re;
constexpr tensor<"im"> im;

inline constexpr auto any_end = over(n).reversed(value_or(backward, 0));
inline constexpr auto online = op<"online">(out<"y">(b, n) = scan(running_max_sum, any_end, x(b, n)));
inline constexpr auto variance = op<"variance">(out<"y">(b, n) = scan(welford, any_end, x(b, n)));
inline constexpr auto mean =
    op<"mean">(out<"y">(b, n) = scan(kept_mean, any_end, a(b, n), x(b, n), weight(n)));
inline constexpr auto ring = op<"ring">(out<"y">(b, n) = scan(resonator, any_end, re(b), im(b), x(b, n)));
inline constexpr auto donline = gradient(online), dvariance = gradient(variance), dmean = gradient(mean),
                      dring = gradient(ring);

const compiled programs[] = {compile_both<donline>(), compile_both<dvariance>(), compile_both<dmean>(),
                             compile_both<dring>()};

operands operands_for(const program& p, std::int64_t rows, std::int64_t length, unsigned seed) {
  std::mt19937 random(seed);
  operands made;
  const std::map<std::string, std::int64_t> extents{{"b", rows}, {"n", length}};
  for (const tensor_decl& declared : p.tensors) {
    if (declared.role != tensor_role::input) continue;
    std::vector<std::int64_t> shape;
    for (const std::int16_t axis : declared.axes)
      shape.push_back(extents.at(std::string(p.axes[axis].view())));
    const std::string id(declared.id.view());
    const bool factor = id == "a" || id == "re" || id == "im", positive = factor || id == "w";
    made.inputs[id] = random_tensor(random, shape, positive ? 0.125 : -2, factor ? 0.68 : 2);
  }
  made.scalars["backward"] = seed % 2;
  return made;
}

struct shape_case {
  std::int64_t rows, length;
};
constexpr shape_case shapes[] = {{3, 700}, {70, 33}, {1, 1}, {2, 0}, {1, 9000}};

}  // namespace

TEST_CASE("gradients of operators of several components", "[exec][gradient]") {
  unsigned seed = 0;
  for (const compiled& each : programs)
    for (const auto [rows, length] : shapes)
      for (const bool lanes : {false, true})
        for (const dtype type : tested_types()) {
          operands made = operands_for(*each.p, rows, length, ++seed);
          made.usual = type;
          if (lanes) made.layouts["x"].order = made.layouts["dx"].order = {1, 0};
          INFO(each.p->id.view() << " " << rows << " x " << length << " " << name_of(type)
                                 << (lanes ? " side by side" : ""));
          // Each step rounds what it carries on; the interpreter does so in float64.
          const double roundings = 64 + static_cast<double>(length);
          CHECK(gradient_mismatch(each, made, roundings * (type == dtype::float64 ? 0x1p-53 : 0x1p-24)) ==
                "");
        }
}

TEST_CASE("gradients of operators of several components have the same bits in every run",
          "[exec][gradient][threads]") {
  for (const compiled& each : programs)
    for (const auto [rows, length] : shapes) {
      const operands made = operands_for(*each.p, rows, length, 3);
      const tensors once = run_on_cpu(each, made, cpu{1}).outputs;
      INFO(each.p->id.view() << " " << rows << " x " << length);
      for (const int threads : {1, 2, 3})
        CHECK(same_bits(once, run_on_cpu(each, made, cpu{threads}).outputs));
    }
}
