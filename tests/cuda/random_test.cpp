#include <cstdlib>

#include "cuda/random_programs.hpp"
#include "support/catch.hpp"

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

/// With the oracle and, where they are given, with the same programs on the CPU.
void compare(const runs& on_gpu, const runs& on_cpu, dtype type, double tolerance) {
  std::mt19937 random(31);
  for (std::size_t i = 0; i < on_gpu.size(); ++i)
    for (const generate::sizes& size : shapes)
      for (unsigned round = 0; round < 4; ++round) {
        const program& p = *on_gpu[i].p;
        const generate::random_case c = generate::make_case(p, size, round);
        operands given;
        given.inputs = c.inputs;
        given.scalars = c.scalars;
        given.extents = c.extents;
        given.usual = type;
        if (round % 2 == 1) scatter(p, given, random);
        INFO("program " << i << ", " << size.batch << " x " << size.length << " x " << size.width
                        << ", round " << round);
        const outcome got = run_on_cpu(on_gpu[i], given);
        CHECK(got.intact);
        CHECK(mismatch(given, expected_of(on_gpu[i], given, got), got.outputs, tolerance) == "");
        if (!on_cpu.empty())
          CHECK(mismatch(given, run_on_cpu(on_cpu.at(i), given).outputs, got.outputs, tolerance) == "");
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
// Not with the CPU: two results that are right may round to neighbouring numbers.
TEST_CASE("a random program in bfloat16 agrees with the oracle to its rounding", "[cuda][property]") {
  look_backs = 0;
  compare(bfloat16_on_gpu(), {}, dtype::bfloat16, 1e-4);
  CHECK(looked_back_where_wanted());
}
