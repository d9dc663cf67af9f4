#include <algorithm>

#include "../ops/chunk_cumsum_decay/program.hpp"
#include "../ops/decayed_sum/program.hpp"
#include "../ops/logcumsumexp/program.hpp"
#include "property/on_cpu.hpp"
#include "support/derivative.hpp"

using namespace property;
using derivative::tensors;
using generate::random_case;

namespace {

/// The number that property::operands stores for a value.
template <class T> double rounded(double value) {
  return static_cast<double>(static_cast<float>(static_cast<T>(static_cast<float>(value))));
}
/// Half a unit in the last place, relative to the value.
template <class T> constexpr double unit = 0x1p-24;
template <> constexpr double unit<double> = 0x1p-53;
template <> constexpr double unit<bfloat16> = 0x1p-8;

/// Runs DP on the CPU with operands of type T and compares it with the interpreter in float64. What is stored
/// is rounded once; before that, arithmetic in float (double for double) rounds `roundings` times, each
/// relative to the greatest value of that gradient.
template <const program& DP, class T> void agrees_on_cpu(random_case c, double roundings) {
  for (auto& [id, values] : c.inputs)
    if (DP.tensors[DP.find_tensor(make_name(id))].role == tensor_role::input)
      for (double& each : values.values) each = rounded<T>(each);
  operands<T> memory(DP, c);
  on_cpu{2}.operator()<DP>(memory, c.scalars);
  const double arithmetic = roundings * (std::is_same_v<T, double> ? unit<double> : unit<float>);
  const tensors expected = c.expected(DP);
  tensors got = memory.outputs();
  for (const auto& [id, want] : expected) {
    double size = 0.0;
    for (const double each : want.values) size = std::max(size, std::fabs(each));
    INFO(id);
    bool close = got[id].values.size() == want.values.size();
    double worst = 0.0;
    for (std::size_t i = 0; close && i < want.values.size(); ++i) {
      const double allowed = unit<T> * std::fabs(want.values[i]) + arithmetic * size;
      const double off = std::fabs(got[id].values[i] - want.values[i]);
      worst = std::max(worst, off / std::max(allowed, 1e-300));
      close = off <= allowed;
    }
    INFO("worst " << worst);
    CHECK(close);
  }
}

// ---- the ops

constexpr program dlogcumsumexp = gradient(ops::logcumsumexp_program::program);
constexpr program ddecayed_sum = gradient(ops::decayed_sum_program::program);
constexpr program dchunks = gradient(ops::chunk_cumsum_decay_program::program);

struct shape_case {
  std::int64_t rows, length, sequences;  ///< no sequences: cu_seqlens is not bound
};
constexpr shape_case shapes[] = {{3, 5000, 0}, {70, 65, 0}, {5, 300, 4}, {2, 0, 0}, {1, 1, 0}};

random_case op_case(const program& dp, const shape_case& shape, double scale, unsigned flags) {
  std::mt19937 random(flags + 7);
  random_case c;
  const std::map<std::string, std::int64_t> extents{
      {"b", shape.rows}, {"n", shape.length}, {"segment", std::max<std::int64_t>(1, shape.sequences)}};
  for (const name& axis : dp.axes) c.extents[std::string(axis.view())] = extents.at(std::string(axis.view()));
  for (const tensor_decl& t : dp.tensors) {
    const std::string id(t.id.view());
    if (t.role == tensor_role::offsets && shape.sequences > 0)
      c.inputs[id] = {generate::random_offsets(random, shape.length, shape.sequences, 1),
                      {shape.sequences + 1}};
    if (t.role != tensor_role::input) continue;
    oracle_tensor& values = c.inputs[id];
    std::int64_t count = 1;
    for (const std::int16_t axis : t.axes) {
      values.extents.push_back(extents.at(std::string(dp.axes[axis].view())));
      count *= values.extents.back();
    }
    for (std::int64_t i = 0; i < count; ++i)
      values.values.push_back(id == "decay" ? std::uniform_real_distribution<double>(0.3, 1.0)(random)
                                            : scale * derivative::normal(random));
  }
  for (const parameter_decl& p : dp.parameters)
    c.scalars[std::string(p.id.view())] = p.id == make_name("reverse")      ? flags & 1U
                                          : p.id == make_name("exclusive")  ? flags >> 1U & 1U
                                          : p.id == make_name("chunk_size") ? 16
                                                                            : 0;
  return c;
}

/// `roundings(length)`: see agrees_on_cpu.
template <const program& DP, class T, class Roundings>
void op_gradient_agrees(double scale, Roundings roundings) {
  for (const shape_case& shape : shapes)
    for (unsigned flags = 0; flags < 4; ++flags) {
      INFO("rows " << shape.rows << " length " << shape.length << " reverse " << (flags & 1U) << " exclusive "
                   << (flags >> 1U));
      agrees_on_cpu<DP, T>(op_case(DP, shape, scale, flags), roundings(shape.length));
    }
}

}  // namespace

TEST_CASE("the gradient of logcumsumexp on the CPU", "[property][gradient]") {
  // y, up to 16 for these inputs, is rounded at every position, and so is exp(x - y) 16 times as much; the
  // sums of `length` terms under y and on the way back round in either direction.
  const auto roundings = [](std::int64_t length) {
    return 2 * (16 + std::sqrt(static_cast<double>(length)));
  };
  op_gradient_agrees<dlogcumsumexp, float>(3.0, roundings);
  // In float64 the interpreter rounds too: its y is a chain of logaddexp, rounded anew at every position.
  op_gradient_agrees<dlogcumsumexp, double>(
      3.0, [](std::int64_t length) { return 2 * 16 * (1 + std::sqrt(static_cast<double>(length))); });
  op_gradient_agrees<dlogcumsumexp, bfloat16>(3.0, roundings);
}
TEST_CASE("the gradient of logcumsumexp on the CPU far from 0", "[property][gradient]") {
  // y near 10000 is rounded to 0.0005, which no gradient may see.
  for (const double far : {1e4, -1e4, 1e6})
    for (unsigned flags = 0; flags < 4; ++flags) {
      INFO("near " << far << " flags " << flags);
      random_case c = op_case(dlogcumsumexp, {4, 300, 3}, 3.0, flags);
      for (const char* const id : {"x", "initial_state"})
        for (double& each : c.inputs.at(id).values) each += far;
      agrees_on_cpu<dlogcumsumexp, float>(c, 2 * (16 + std::sqrt(300.0)));
    }
}
TEST_CASE("the gradients of decayed_sum and chunk_cumsum_decay on the CPU", "[property][gradient]") {
  // Sixteen positions reach one gradient: a chunk, or what has not decayed away.
  const auto roundings = [](std::int64_t) { return 16.0; };
  op_gradient_agrees<ddecayed_sum, float>(1.0, roundings);
  op_gradient_agrees<ddecayed_sum, bfloat16>(1.0, roundings);
  op_gradient_agrees<dchunks, float>(1.0, roundings);
  op_gradient_agrees<dchunks, bfloat16>(1.0, roundings);
}

// ---- random programs

namespace {

template <unsigned Seed> constexpr program random_gradient = gradient(generate::random_program<Seed>);

template <unsigned Seed> void random_gradient_agrees() {
  constexpr const program& p = generate::random_program<Seed>;
  constexpr generate::sizes size{2, 24, 3, 4};
  for (unsigned seed = 0; seed < 3; ++seed) {
    INFO("random_program<" << Seed << ">, case " << seed);
    std::mt19937 random(seed);
    random_case c = generate::make_case(p, size, seed);
    derivative::spread(p, c, random);
    for (const auto& [id, values] : derivative::random_like(derivative::outputs_of(p, c), "d", random))
      c.inputs[id] = values;
    agrees_on_cpu<random_gradient<Seed>, float>(derivative::restricted_to(random_gradient<Seed>, c),
                                                2 * size.length);
  }
}

}  // namespace

TEST_CASE("gradients of random programs on the CPU", "[property][gradient]") {
  random_gradient_agrees<12>();  // a decayed sum
  random_gradient_agrees<13>();
  random_gradient_agrees<19>();
  random_gradient_agrees<20>();
  random_gradient_agrees<24>();
  random_gradient_agrees<28>();
  random_gradient_agrees<29>();  // three components, Welford's, packed sequences
  random_gradient_agrees<35>();  // three components, a mean, packed sequences
}
