#include <algorithm>
#include <iterator>

#include "property/on_cpu.hpp"
#include "support/derivative.hpp"
#include "support/generate_positions.hpp"

// Random programs of integers, and their gradients, on the CPU against the interpreter.

using namespace property;
using generate::random_case;

namespace {

/// Stacks, sums and scans in turn, one of each at least, for the programs are drawn, and the first stack is
/// the fifteenth.
constexpr unsigned programs[] = {14, 0, 1, 7, 16, 3, 12, 4, 24};
constexpr unsigned count = std::clamp<unsigned>(RANDOM_PROGRAMS / 6, 3, std::size(programs));

template <unsigned Seed>
constexpr program gradient_of_positions = gradient(generate::program_of_positions<Seed>);

/// Errors are relative to the greatest value of a tensor, and at least to `least`.
template <const program& P, class T>
void agrees(const random_case& c, int threads, double tolerance, double least = 1.0) {
  operands<T> memory(P, c);
  on_cpu{threads}.operator()<P>(memory, c.scalars);
  const auto expected = c.expected(P), got = memory.outputs();
  for (const auto& [id, want] : expected) CHECK(got.at(id).extents == want.extents);
  CHECK(relative_error(expected, got, least) <= tolerance);
}

template <unsigned Seed> void check_program() {
  constexpr const program& p = generate::program_of_positions<Seed>;
  INFO("program_of_positions<" << Seed << ">");
  for (unsigned seed = 0; seed < 2; ++seed) {
    agrees<p, float>(generate::make_case(p, small, seed), 0, 1e-4);
    agrees<p, double>(generate::make_case(p, {2, 24, 9, 3}, seed), 0, 1e-11);
  }
  agrees<p, float>(generate::make_case(p, wide, 3), 2, 1e-4);
  agrees<p, float>(generate::make_case(p, long_rows, 4), 2, 1e-4);
  agrees<p, float>(generate::make_case(p, {1, 5000, 1, 1}, 5), 2, 1e-4);  // pieces of one row
  agrees<p, float>(generate::make_case(p, {2, 0, 3, 1}, 6), 0, 0);
  agrees<p, float>(generate::make_case(p, {1, 1, 1, 1}, 7), 0, 1e-5);
}

template <unsigned Seed> void check_gradient() {
  constexpr const program& p = gradient_of_positions<Seed>;
  INFO("the gradient of program_of_positions<" << Seed << ">");
  std::mt19937 random(Seed);
  for (unsigned seed = 0; seed < 2; ++seed) {
    random_case c = generate::make_case(p, seed == 0 ? small : wide, seed);
    derivative::spread(p, c, random);
    for (auto& [id, values] : c.inputs)
      for (double& each : values.values) each = static_cast<double>(static_cast<float>(each));
    agrees<p, float>(c, 2, 1e-4, 0.0);
  }
}

}  // namespace

TEST_CASE("random programs of positions on the CPU", "[property][positions]") {
  [&]<unsigned... Seed>(std::integer_sequence<unsigned, Seed...>) {
    (check_program<programs[Seed]>(), ...);
  }(seeds<count>{});
}

TEST_CASE("gradients of random programs of positions on the CPU", "[property][positions][gradient]") {
  [&]<unsigned... Seed>(std::integer_sequence<unsigned, Seed...>) {
    (check_gradient<programs[Seed]>(), ...);
  }(seeds<count>{});
}
