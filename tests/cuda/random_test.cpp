#include <algorithm>
#include <cstdlib>

#include "cuda/random_programs.hpp"
#include "support/catch.hpp"
#include "support/derivative.hpp"

using namespace exec_test;
using namespace random_programs;

namespace {

/// Batch, length, width and packed sequences: few of everything; lanes that fill no vector, and more than a
/// warp's; ragged, with many tiles along n in a strip; one long axis each, along which rows
/// look back and strips are cut into pieces.
const generate::sizes shapes[] = {{2, 24, 3, 4},   {1, 1, 1, 1},    {2, 65, 70, 4},  {3, 997, 19, 7},
                                  {3, 4500, 1, 9}, {2, 3, 4500, 2}, {2500, 2, 3, 3}, {1, 2500, 16, 1}};

/// An axis as two dimensions where it divides.
std::vector<std::int64_t> parts_of(std::int64_t extent) {
  for (std::int64_t part = static_cast<std::int64_t>(std::sqrt(static_cast<double>(extent))); part > 1;
       --part)
    if (extent % part == 0) return {part, extent / part};
  return {extent};
}

/// Gives each tensor a layout drawn at random. What repeats in memory repeats in value: the inputs are read
/// back from memory before the oracle sees them.
void scatter(const program& p, operands& given, std::mt19937& random) {
  for (const tensor_decl& declared : p.tensors) {
    if (declared.role == tensor_role::offsets) continue;
    std::vector<std::int64_t> extents;
    std::vector<std::vector<std::int64_t>> parts;
    for (const std::int16_t axis : declared.axes) {
      extents.push_back(given.extents.at(std::string(p.axes[axis].view())));
      parts.push_back(parts_of(extents.back()));
    }
    given.layouts[std::string(declared.id.view())] =
        random_layout(random, extents, parts, declared.role == tensor_role::input);
  }
}

/// Operands of a random case, as `type`; in odd rounds their layouts are drawn, too.
operands operands_of(const program& p, const generate::random_case& c, dtype type, unsigned round,
                     std::mt19937& random) {
  operands given;
  given.inputs = c.inputs;
  given.scalars = c.scalars;
  given.extents = c.extents;
  given.usual = type;
  if (round % 2 == 1) scatter(p, given, random);
  return given;
}

/// With the oracle and with the same programs on the CPU. Of 16 bits two results that are right may be
/// neighbouring numbers.
void compare(const runs& on_gpu, const runs& on_cpu, dtype type, double tolerance) {
  const double rounded_twice = size_of(type) == 2 ? unit_roundoff(type) : 0;
  std::mt19937 random(31);
  for (std::size_t i = 0; i < on_gpu.size(); ++i)
    for (const generate::sizes& size : shapes)
      for (unsigned round = 0; round < 4; ++round) {
        const program& p = *on_gpu[i].p;
        const operands given = operands_of(p, generate::make_case(p, size, round), type, round, random);
        INFO("program " << i << ", " << size.batch << " x " << size.length << " x " << size.width
                        << ", round " << round);
        const outcome got = run_on_cpu(on_gpu[i], given);
        CHECK(got.intact);
        CHECK(mismatch(given, expected_of(on_gpu[i], given, got), got.outputs, tolerance) == "");
        CHECK(mismatch(given, run_on_cpu(on_cpu.at(i), given).outputs, got.outputs,
                       tolerance + rounded_twice) == "");
      }
}

/// Each relative to its greatest value, where that is above 1: a gradient is a sum, whose terms may cancel.
tensors relative(tensors values, const tensors& sizes) {
  for (auto& [id, each] : values) {
    double most = 1;
    for (const double value : sizes.at(id).values) most = std::max(most, std::fabs(value));
    for (double& value : each.values) value /= most;
  }
  return values;
}

/// Gradients of `sources` with the oracle.
void compare_gradients(const runs& on_gpu, std::initializer_list<const program*> sources) {
  std::mt19937 random(32);
  for (std::size_t i = 0; i < on_gpu.size(); ++i)
    for (const generate::sizes& size : shapes)
      for (unsigned round = 0; round < 2; ++round) {
        const program& source = *sources.begin()[i];
        generate::random_case c = generate::make_case(source, size, round);
        derivative::spread(source, c, random);
        for (const auto& [id, values] :
             derivative::random_like(derivative::outputs_of(source, c), "d", random))
          c.inputs[id] = values;
        const program& p = *on_gpu[i].p;
        const operands given = operands_of(p, derivative::restricted_to(p, c), dtype::float32, round, random);
        INFO("gradient " << i << ", " << size.batch << " x " << size.length << " x " << size.width
                         << ", round " << round);
        const outcome got = run_on_cpu(on_gpu[i], given);
        CHECK(got.intact);
        const tensors expected = expected_of(on_gpu[i], given, got);
        const auto longest = static_cast<double>(std::max({size.batch, size.length, size.width}));
        CHECK(mismatch(given, relative(expected, expected), relative(got.outputs, expected),
                       1e-5 + 2 * longest * unit_roundoff(dtype::float32)) == "");
      }
}

/// Whether some of the test's runs looked back; with SCANDSL_TEST_WALKS whether none did.
bool looked_back_where_wanted() { return (look_backs > 0) == (std::getenv("SCANDSL_TEST_WALKS") == nullptr); }

}  // namespace

TEST_CASE("random programs in float32 agree with the oracle and with the CPU", "[cuda][property]") {
  look_backs = 0;
  compare(float_on_gpu(), float_on_cpu(), dtype::float32, 1e-4);
  CHECK(looked_back_where_wanted());
}
TEST_CASE("random programs in float64 agree with the oracle and with the CPU", "[cuda][property]") {
  look_backs = 0;
  compare(double_on_gpu(), double_on_cpu(), dtype::float64, 1e-9);
  CHECK(looked_back_where_wanted());
}
TEST_CASE("a random program in bfloat16 agrees with the oracle and with the CPU to its rounding",
          "[cuda][property]") {
  look_backs = 0;
  compare(bfloat16_on_gpu(), bfloat16_on_cpu(), dtype::bfloat16, 1e-4);
  CHECK(looked_back_where_wanted());
}
TEST_CASE("a random program in float16 agrees with the oracle and with the CPU to its rounding",
          "[cuda][property]") {
  look_backs = 0;
  compare(float16_on_gpu(), float16_on_cpu(), dtype::float16, 1e-4);
  CHECK(looked_back_where_wanted());
}
TEST_CASE("gradients of random programs agree with the oracle", "[cuda][property]") {
  compare_gradients(gradients_on_gpu(), {&generate::random_program<12>, &generate::random_program<24>});
}
