#include <cstdint>

#include "scandsl/ops/linear_cross_entropy.hpp"
#include "support/catch.hpp"

// As without_cuda_test.cpp.
TEST_CASE("without CUDA in the library, linear cross entropy on the GPU is a cuda_error", "[ops][errors]") {
  using namespace scandsl;
  float x[6] = {}, weight[12] = {}, loss = 77;
  std::int64_t target[2] = {};
  CHECK_THROWS_AS(ops::linear_cross_entropy(cuda{nullptr}, array::of(x, {2, 3}), array::of(weight, {4, 3}),
                                            array::of(target, {2}), array::of(&loss, {})),
                  cuda_error);
  CHECK(loss == 77);
}
