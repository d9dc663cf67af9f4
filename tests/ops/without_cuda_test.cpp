#include <array>
#include <cstdint>
#include <string>

#include "scandsl/ops/chunk_cumsum_decay.hpp"
#include "scandsl/ops/decayed_sum.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "scandsl/ops/lrpe_cosine.hpp"
#include "scandsl/ops/md_lrpe_cosine.hpp"
#include "support/catch.hpp"

// A library that was built without CUDA has the entries for it, which say so. (Not among the tests of one
// that was built with it.)
TEST_CASE("without CUDA in the library, calls for the GPU are cuda_errors", "[ops][errors]") {
  using namespace scandsl;
  float x[6] = {}, y[12] = {}, theta[3] = {};
  const cuda gpu{nullptr};
  cuda_sizing sizing;
  const array in = array::of(x, {2, 3}), out = array::of(y, {2, 3});
  const array in_heads = array::of(x, {1, 2, 1, 3}), out_heads = array::of(y, {1, 2, 1, 6});
  const array by_heads = array::of(x, {1, 1, 2, 3}), out_by_heads = array::of(y, {1, 1, 2, 6});
  const array angles = array::of(theta, {1, 3});
  const std::array<std::int64_t, 1> grid{2};
  const std::string text =
      "expected scandsl_ops with CUDA; got a library that was built without it; build it where nvcc is found";
  const auto says_so = [&](auto call) {
    CHECK_THROWS_AS(call(), cuda_error);
    CHECK_THROWS_WITH(call(), text);
  };
  says_so([&] { ops::logcumsumexp(gpu, in, 1, out); });
  says_so([&] { ops::logcumsumexp(sizing, in, 1, out); });
  says_so([&] { ops::decayed_sum(gpu, in, in, 1, out); });
  says_so([&] { ops::chunk_cumsum_decay(gpu, in, out); });
  says_so([&] { ops::lrpe_cosine(gpu, in_heads, angles, out_heads); });
  says_so([&] { ops::md_lrpe_cosine(gpu, by_heads, angles, grid, out_by_heads); });
  ops::scan_gradients gradients;
  gradients.y_cotangent = in;
  gradients.x_gradient = out;
  says_so([&] { ops::logcumsumexp_backward(gpu, in, 1, gradients); });
  for (const float each : y) CHECK(each == 0);
}
