#include "cuda/random_positions.hpp"
#include "property/against_oracle.hpp"
#include "support/derivative.hpp"

// Random programs of integers, and the gradient of one, on the GPU against the interpreter.

using namespace random_positions;
using generate::random_case;

namespace {

/// Errors are relative to the greatest value of a tensor, and at least to `least`.
void compare(const compiled& each, const random_case& c, double tolerance, double least) {
  const program& p = *each.p;
  property::operands<float> memory(p, c);
  problem host = unbound_problem(p);
  for (int i = 0; i < p.tensors.count; ++i)
    if (memory.bound(i)) host.tensors[static_cast<std::size_t>(i)] = {true, memory.view_of(i)};
  for (int i = 0; i < p.parameters.count; ++i)
    if (const auto given = c.scalars.find(std::string(p.parameters[i].id.view())); given != c.scalars.end())
      host.parameters[static_cast<std::size_t>(i)] = given->second;
  each.run(host);
  CHECK(property::relative_error(c.expected(p), memory.outputs(), least) <= tolerance);
}

constexpr generate::sizes shapes[] = {{2, 24, 3, 4},   {1, 1, 1, 1},    {2, 65, 70, 4},
                                      {3, 1000, 2, 9}, {1, 5000, 1, 1}, {2, 0, 3, 1}};

}  // namespace

TEST_CASE("random programs of positions on the GPU", "[cuda][property][positions]") {
  for (std::size_t i = 0; i < programs().size(); ++i)
    for (const generate::sizes& size : shapes)
      for (unsigned round = 0; round < 2; ++round) {
        INFO("program " << i << ", " << size.batch << " x " << size.length << " x " << size.width
                        << ", round " << round);
        const compiled each = programs()[i];
        compare(each, generate::make_case(*each.p, size, round), 1e-4, 1);
      }
}

TEST_CASE("the gradient of a random program of positions on the GPU", "[cuda][property][positions]") {
  std::mt19937 random(6);
  for (const compiled& each : gradients())
    for (const generate::sizes& size : {shapes[0], shapes[2], shapes[3]}) {
      INFO(size.batch << " x " << size.length << " x " << size.width);
      random_case c = generate::make_case(*each.p, size, 1);
      derivative::spread(*each.p, c, random);
      for (auto& [id, values] : c.inputs)
        for (double& value : values.values) value = static_cast<double>(static_cast<float>(value));
      compare(each, c, 1e-4, 0);
    }
}
