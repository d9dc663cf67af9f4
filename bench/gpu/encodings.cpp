#include <scandsl/ops/lrpe_cosine.hpp>
#include <scandsl/ops/md_lrpe_cosine.hpp>

#include <cmath>

#include "measure.hpp"

namespace bench {
namespace {

constexpr std::int64_t batch = 12, heads = 12, features = 128;

/// 10000^(-j / features), as models have it; in memory as long as the run.
array frequencies(std::int64_t of_features) {
  std::vector<float> values;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t j = 0; j < of_features; ++j)
      values.push_back(static_cast<float>(
          std::pow(1e4, -static_cast<double>(j + h) / static_cast<double>(of_features + heads))));
  float* memory = nullptr;
  check(cudaMalloc(&memory, values.size() * sizeof(float)));
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
  return array::of(memory, {heads, of_features});
}
std::vector<std::int64_t> doubled(std::vector<std::int64_t> shape) {
  shape.back() *= 2;
  return shape;
}

struct passes {
  int forward, backward;  ///< units of x that are moved
  int with_theta;         ///< ... where theta's gradient is wanted too
};

/// axis: that of a softmax.
void add_lrpe(std::string variant, std::optional<int> axis, std::int64_t length, ops::lrpe_options options,
              passes units) {
  using T = bfloat16;
  const std::vector<std::int64_t> shape = {batch, length, heads, features};
  const array theta = frequencies(features);
  const std::int64_t unit = count_of(shape) * 2;
  float* theta_gradient = nullptr;
  check(cudaMalloc(&theta_gradient, heads * features * sizeof(float)));
  measure({"lrpe_cosine", variant, "bf16", shape, axis, units.forward * unit,
           with_workspace([=](auto& device, int call) {
             ops::lrpe_cosine(device, operand<T>(pool_x, shape, call), theta,
                              operand<T>(pool_y, doubled(shape), call), options);
           })});
  const std::string of_theta = variant == "none" ? "theta_gradient" : variant + "_theta_gradient";
  for (const bool with_theta : {false, true})
    measure({"lrpe_cosine", with_theta ? of_theta : variant, "bf16", shape, axis,
             (with_theta ? units.with_theta : units.backward) * unit,
             with_workspace([=](auto& device, int call) {
               ops::lrpe_gradients gradients;
               gradients.y_cotangent = operand<const T>(pool_g, doubled(shape), call);
               gradients.x_gradient = operand<T>(pool_z, shape, call);
               if (with_theta) gradients.theta_gradient = array::of(theta_gradient, {heads, features});
               ops::lrpe_cosine_backward(device, operand<T>(pool_x, shape, call), theta, gradients, options);
             }),
             "backward"});
}

void add_md_lrpe(std::vector<std::int64_t> sizes, std::int64_t extra_tokens) {
  using T = bfloat16;
  const std::vector<std::int64_t> shape = {batch, heads, extra_tokens + count_of(sizes), features};
  const std::int64_t dimensions = static_cast<std::int64_t>(sizes.size()), unit = count_of(shape) * 2;
  const array theta = frequencies((features + dimensions - 1) / dimensions);
  const std::string variant = std::to_string(dimensions) + "d_l" + std::to_string(extra_tokens);
  ops::md_lrpe_options options;
  options.extra_tokens = extra_tokens;
  measure(
      {"md_lrpe_cosine", variant, "bf16", shape, {}, 3 * unit, with_workspace([=](auto& device, int call) {
         ops::md_lrpe_cosine(device, operand<T>(pool_x, shape, call), theta, sizes,
                             operand<T>(pool_y, doubled(shape), call), options);
       })});
  measure({"md_lrpe_cosine",
           variant,
           "bf16",
           shape,
           {},
           3 * unit,
           with_workspace([=](auto& device, int call) {
             ops::lrpe_gradients gradients;
             gradients.y_cotangent = operand<const T>(pool_g, doubled(shape), call);
             gradients.x_gradient = operand<T>(pool_z, shape, call);
             ops::md_lrpe_cosine_backward(device, operand<T>(pool_x, shape, call), theta, sizes, gradients,
                                          options);
           }),
           "backward"});
}

}  // namespace

void add_encodings() {
  ops::lrpe_options silu, of_features, of_sequence;
  silu.act = ops::lrpe_activation::silu;
  of_features.act = of_sequence.act = ops::lrpe_activation::softmax;
  of_sequence.act_dim = 1;
  for (const std::int64_t length : {8192, 32768}) {
    add_lrpe("none", {}, length, {}, {3, 3, 4});
    add_lrpe("silu", {}, length, silu, {3, 4, 4});
    add_lrpe("softmax_features", 3, length, of_features, {3, 4, 4});
    add_lrpe("softmax_sequence", 1, length, of_sequence, {4, 7, 7});
  }
  for (const std::int64_t extra_tokens : {0, 10}) {
    add_md_lrpe({32768}, extra_tokens);
    add_md_lrpe({128, 128}, extra_tokens);
    add_md_lrpe({32, 32, 32}, extra_tokens);
  }
}

}  // namespace bench
