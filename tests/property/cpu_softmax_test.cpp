#include "property/on_cpu.hpp"

TEST_CASE("random softmaxes agree with the float64 oracle", "[property]") {
  using namespace property;
  constexpr unsigned few = (RANDOM_PROGRAMS + 5) / 6;
  against_oracle<generate::first_softmax, float>(seeds<few>{}, small, 3, 1e-4, on_cpu{});
  against_oracle<generate::first_softmax, float>(seeds<few>{}, wide, 1, 1e-4, on_cpu{2});
  against_oracle<generate::first_softmax, float>(seeds<few>{}, long_rows, 1, 1e-4, on_cpu{});
}
