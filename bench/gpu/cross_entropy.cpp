#include <scandsl/ops/linear_cross_entropy.hpp>

#include "common/cuda_part.hpp"
#include "linear_cross_entropy/gradient_program.hpp"
#include "measure.hpp"
#include "scandsl/exec/bind.hpp"
#include "scandsl/exec/validate.hpp"
#include "scandsl/pass/prepare.hpp"

namespace bench {
namespace {

namespace names = ops::linear_cross_entropy_program;

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

/// What lies between the products, alone: from a chunk of logits their gradient, in their place, so that
/// calls which come by the same part of the pool again find gradients there. Spoils the pool of x.
void add_between_products(std::int64_t classes) {
  using T = bfloat16;
  const std::int64_t chunk = classes <= 8192 ? tokens : 2048;  // as the op has
  const std::int64_t bytes = chunk * classes * static_cast<std::int64_t>(sizeof(T));
  const auto* const target = static_cast<const std::int64_t*>(some_targets(classes).data);
  float* of_tokens = nullptr;
  check(cudaMalloc(&of_tokens, 3 * chunk * sizeof(float)));
  const std::vector<float> ones(static_cast<std::size_t>(chunk), 1.0F);
  check(cudaMemcpy(of_tokens, ones.data(), ones.size() * sizeof(float), cudaMemcpyHostToDevice));
  const auto numbers = [=](std::int64_t which) { return view(of_tokens + which * chunk, chunk); };
  const auto run = [=](int call) {
    const auto chunk_of_call = view(static_cast<T*>(pool_x.part(bytes, call)), chunk, classes);
    const problem bound = bind<names::plain_token_gradient>(
        names::logits = chunk_of_call, names::dlogits = chunk_of_call, names::target = view(target, tokens),
        names::first = 0, names::ignore_index = -100, names::token_weight = numbers(0),
        names::loss = numbers(1), names::lse = numbers(2));
    ops::run_cuda<names::plain_token_gradient>(
        cuda(nullptr), bound,
        validate(names::plain_token_gradient, bound, works_in_place<names::plain_token_gradient>(), false));
  };
  measure({"linear_cross_entropy",
           "between_products",
           "bf16",
           {chunk, classes},
           {},
           2 * bytes,
           run,
           "forward_backward"});
}

}  // namespace

void add_cross_entropy() {
  pool_g.fill_with(true, -0.02F, 0.02F);
  for (const std::int64_t classes : {1024, 8192, 32768, 131072}) add_linear_cross_entropy(classes);
  pool_g.fill_with(true, -1.0F, 1.0F);
  for (const std::int64_t classes : {8192, 32768, 131072}) add_between_products(classes);
}

}  // namespace bench
