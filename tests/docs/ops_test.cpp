#include <cmath>
#include <numeric>
#include <vector>

#include "scandsl/ops/chunk_cumsum_decay.hpp"
#include "scandsl/ops/decayed_sum.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "support/catch.hpp"

// The calls that the ops' pages show.

using namespace scandsl;

TEST_CASE("logcumsumexp in two calls", "[docs]") {
  std::vector<float> x(2 * 6 * 4), y(x.size()), whole(x.size()), state(2 * 4);
  std::iota(x.begin(), x.end(), -20.0F);
  // [doc:logcumsumexp]
  // x is [2, 6, 4], scanned along dimension 1: positions 0 to 3, then 4 and 5. The state is [2, 4].
  ops::scan_options first, second;
  first.final_state = array::of(state.data(), {2, 4});
  second.initial_state = first.final_state;
  ops::logcumsumexp(cpu{}, array::of(x.data(), {2, 4, 4}, {24, 4, 1}), 1,
                    array::of(y.data(), {2, 4, 4}, {24, 4, 1}), first);
  ops::logcumsumexp(cpu{}, array::of(x.data() + 16, {2, 2, 4}, {24, 4, 1}), 1,
                    array::of(y.data() + 16, {2, 2, 4}, {24, 4, 1}), second);
  // [/doc:logcumsumexp]
  ops::logcumsumexp(cpu{}, array::of(x.data(), {2, 6, 4}), 1, array::of(whole.data(), {2, 6, 4}));
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == Approx(whole[i]));
}

TEST_CASE("logcumsumexp and its gradient", "[docs]") {
  const std::vector<float> x = {0, 1, 2, 3}, dy = {0, 0, 0, 1};
  std::vector<float> dx(4);
  // [doc:logcumsumexp_backward]
  // How the last y depends on every x: with each one's share of the sum of exponentials.
  ops::scan_gradients gradients;
  gradients.y_cotangent = array::of(dy.data(), {4});
  gradients.x_gradient = array::of(dx.data(), {4});
  ops::logcumsumexp_backward(cpu{}, array::of(x.data(), {4}), 0, gradients);
  CHECK(dx[3] == Approx(std::exp(3.0) / (1 + std::exp(1.0) + std::exp(2.0) + std::exp(3.0))));
  // [/doc:logcumsumexp_backward]
}

TEST_CASE("decayed_sum with a decay for each head", "[docs]") {
  const std::int64_t length = 10, heads = 3, features = 4;
  std::vector<bfloat16> x(static_cast<std::size_t>(length * heads * features), bfloat16(1.0F)), y(x.size());
  // [doc:decayed_sum]
  // x is [length, heads, features] in bfloat16. One decay a head, as its logarithm, in float32: [heads, 1]
  // broadcasts.
  const std::vector<float> log_decay = {-0.1F, -0.5F, -2.0F};
  ops::decayed_sum_options options;
  options.log_decay = true;
  ops::decayed_sum(cpu{}, array::of(x.data(), {length, heads, features}),
                   array::of(log_decay.data(), {heads, 1}), 0, array::of(y.data(), {length, heads, features}),
                   options);
  // [/doc:decayed_sum]
  for (std::size_t h = 0; h < 3; ++h) {
    double sum = 0.0;
    for (int t = 0; t < 10; ++t) sum = sum * std::exp(static_cast<double>(log_decay[h])) + 1.0;
    CHECK(static_cast<float>(y[(9 * 3 + h) * 4]) == Approx(sum).epsilon(1.0 / 256));
  }
}

TEST_CASE("chunk_cumsum_decay backward in each chunk", "[docs]") {
  const std::vector<bfloat16> x(300, bfloat16(1.0F));
  std::vector<float> y(x.size());
  // [doc:chunk_cumsum_decay]
  // x is [2, 150] in bfloat16, y in float32. Chunks of 64: positions 0 to 63, 64 to 127, 128 to 149.
  ops::chunk_cumsum_options options;
  options.chunk_size = 64;
  options.reverse = true;
  ops::chunk_cumsum_decay(cpu{}, array::of(x.data(), {2, 150}), array::of(y.data(), {2, 150}), options);
  CHECK(y[0] == 64.0F);
  CHECK(y[63] == 1.0F);
  CHECK(y[128] == 22.0F);
  // [/doc:chunk_cumsum_decay]
}
