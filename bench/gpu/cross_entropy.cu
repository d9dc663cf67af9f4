#include <scandsl/ops/linear_cross_entropy.hpp>

#include "measure.hpp"

namespace bench {
namespace {

constexpr std::int64_t tokens = 12288, features = 4096;

/// Classes at random, in memory as long as the run.
array some_targets(std::int64_t classes) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(tokens));
  std::uint64_t state = 1;
  for (std::int64_t& each : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    each = static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(classes));
  }
  void* memory = nullptr;
  check(cudaMalloc(&memory, values.size() * sizeof(std::int64_t)));
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(std::int64_t), cudaMemcpyHostToDevice));
  return array::of(static_cast<std::int64_t*>(memory), {tokens});
}

void add_linear_cross_entropy(std::int64_t classes) {
  using T = bfloat16;
  const array target = some_targets(classes);
  float* loss = nullptr;
  check(cudaMalloc(&loss, sizeof(float)));
  // What has to be read and written at least: x, weight and their gradients.
  const std::int64_t bytes = 2 * (tokens + classes) * features * static_cast<std::int64_t>(sizeof(T));
  measure({"linear_cross_entropy",
           "none",
           "bf16",
           {tokens, features},
           {},
           bytes,
           with_workspace([=](auto& device, int call) {
             ops::linear_cross_entropy_gradients gradients;
             gradients.x_gradient = operand<T>(pool_y, {tokens, features}, call);
             gradients.weight_gradient = operand<T>(pool_z, {classes, features}, call);
             ops::linear_cross_entropy_with_gradients(
                 device, operand<const T>(pool_x, {tokens, features}, call),
                 operand<const T>(pool_g, {classes, features}, call), target, array::of(loss, {}), gradients);
           }),
           "forward_backward",
           classes});
}

}  // namespace

void add_cross_entropy() {
  pool_g.fill_with(true, -0.02F, 0.02F);
  for (const std::int64_t classes : {1024, 8192, 32768, 131072}) add_linear_cross_entropy(classes);
  pool_g.fill_with(true, -1.0F, 1.0F);
}

}  // namespace bench
