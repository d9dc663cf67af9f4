#include "property/on_cpu.hpp"

TEST_CASE("random programs in float64 agree with the oracle to its own rounding", "[property]") {
  using namespace property;
  against_oracle<2 * third, double>(seeds<third>{}, small, 3, 1e-10, on_cpu{});
  against_oracle<2 * third, double>(seeds<third>{}, long_rows, 2, 1e-9, on_cpu{2});
}
