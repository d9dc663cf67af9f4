// A user of the prebuilt ops: includes an op's header and links the compiled library.
#include <array>
#include <cmath>
#include <cstdio>

#include <scandsl/ops/logcumsumexp.hpp>
#include <scandsl/scandsl.hpp>

int main() {
  const std::array<float, 3> input{0, 0, 0};
  std::array<float, 3> output{};
  using scandsl::array;
  scandsl::ops::logcumsumexp(scandsl::cpu{}, array::of(input.data(), {1, 3}), -1,
                             array::of(output.data(), {1, 3}));
  std::printf("%g %g %g\n", output[0], output[1], output[2]);
  return std::abs(output[2] - std::log(3.0f)) < 1e-6f ? 0 : 1;
}
