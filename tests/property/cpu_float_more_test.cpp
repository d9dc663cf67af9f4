#include "property/on_cpu.hpp"

TEST_CASE("more random programs in float32 agree with the float64 oracle", "[property]") {
  using namespace property;
  against_oracle<third, float>(seeds<third>{}, small, 3, 1e-4, on_cpu{});
  against_oracle<third, float>(seeds<third>{}, wide, 1, 1e-4, on_cpu{3});
}
