#include <cmath>
#include <cstdint>
#include <vector>

#include "docs/golden.hpp"
#include "scandsl/ops/linear_cross_entropy.hpp"
#include "scandsl/pass/describe.hpp"
#include "scandsl/pass/gradient.hpp"
#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"

// What docs/cross_entropy.md and the op's page show.

using namespace scandsl;

namespace {

constexpr axis<"n"> n;
constexpr axis<"v"> v;
constexpr tensor<"z"> z;
constexpr tensor<"dz"> dz;
constexpr tensor<"loss"> loss;
constexpr tensor<"dloss"> dloss;
constexpr integer_tensor<"target"> target;

// [doc:program]
constexpr auto lse = reduce(log_add_exp, over(v), z(n, v));
constexpr auto cross_entropy = op<"cross_entropy">(out<"loss">(n) = lse - z(n, v[target(n)]));
constexpr auto with_gradient = value_and_gradient(cross_entropy, z);
// [/doc:program]

}  // namespace

TEST_CASE("the derived gradient of cross entropy", "[docs]") {
  CHECK(describe(with_gradient) + "\n" == docs_test::golden("cross_entropy.txt", "gradient"));
  CHECK(describe_latex(with_gradient) + "\n" == docs_test::golden("cross_entropy.txt", "gradient-latex"));
}

TEST_CASE("one kernel reads a chunk of logits and overwrites it by its gradient", "[docs]") {
  // [doc:floor]
  const cpu_plan planned = plan<with_gradient>(cpu{2}, z = shape<bfloat16>(256, 2000),
                                               target = shape<std::int64_t>(256), dloss = shape<float>(256),
                                               loss = shape<float>(256), dz = shape<bfloat16>(256, 2000));
  CHECK(planned.kernels.size() == 1);
  CHECK(planned.moved_bytes == planned.floor_bytes);  // each logit is read once, each gradient written once
  // [/doc:floor]
  // [doc:in_place]
  std::vector<float> logits = {0, 0, 0, 1000, 0, 0}, losses(2);
  const std::vector<std::int64_t> targets = {2, 0};
  const std::vector<float> ones = {1, 1};
  run<with_gradient>(cpu{}, z = view(logits.data(), 2, 3), target = view(targets.data(), 2),
                     dloss = view(ones.data(), 2), loss = view(losses.data(), 2),
                     dz = view(logits.data(), 2, 3));
  CHECK(losses[0] == Approx(std::log(3)));
  CHECK(logits[2] == Approx(1.0 / 3 - 1));
  CHECK(logits[3] == 0);  // p - 1 with p = 1
  // [/doc:in_place]
}

TEST_CASE("the plan of linear cross entropy", "[docs]") {
  std::string text;
  // [doc:plan]
  bfloat16* const none = nullptr;  // planned without memory
  const array x = array::of(none, {12288, 4096}), weight = array::of(none, {131072, 4096});
  ops::linear_cross_entropy_gradients gradients;
  gradients.x_gradient = x;
  gradients.weight_gradient = weight;
  text += explain(ops::plan_linear_cross_entropy(cpu{}, x, weight, gradients));
  ops::linear_cross_entropy_options options;
  options.memory_limit = 40 << 20;
  text += explain(ops::plan_linear_cross_entropy(cpu{}, x, weight, gradients, options));
  // [/doc:plan]
  CHECK(text == docs_test::golden("cross_entropy.txt", "plan"));
}

TEST_CASE("the plan of a call of one chunk", "[docs]") {
  bfloat16* const none = nullptr;
  const array x = array::of(none, {12288, 4096}), weight = array::of(none, {1024, 4096});
  ops::linear_cross_entropy_gradients gradients;
  gradients.x_gradient = x;
  gradients.weight_gradient = weight;
  const std::string text = explain(ops::plan_linear_cross_entropy(cpu{}, x, weight, gradients));
  CHECK(text == docs_test::golden("cross_entropy.txt", "one_chunk"));
}

TEST_CASE("the gradients of linear cross entropy in two passes", "[docs]") {
  const std::vector<float> features = {1, 2, 3, 4, 5, 6}, rows = {1, 0, 0, 1, 1, 1, -1, 1};
  const std::vector<std::int64_t> targets = {2, -100, 0};
  const array x = array::of(features.data(), {3, 2}), weight = array::of(rows.data(), {4, 2});
  float loss_value = 0;
  std::vector<float> dx(6), once(6);
  ops::linear_cross_entropy_gradients gradients;
  gradients.x_gradient = array::of(once.data(), {3, 2});
  ops::linear_cross_entropy_with_gradients(cpu{}, x, weight, array::of(targets.data(), {3}),
                                           array::of(&loss_value, {}), gradients);
  gradients.x_gradient = array::of(dx.data(), {3, 2});
  // [doc:two_passes]
  std::vector<float> dlogits(3 * 4);
  float pending = 0;  // will be 1 over the mean's denominator, which dlogits lacks
  ops::linear_cross_entropy_with_logits_gradient(cpu{}, x, weight, array::of(targets.data(), {3}),
                                                 array::of(&loss_value, {}),
                                                 array::of(dlogits.data(), {3, 4}), array::of(&pending, {}));
  // Later, when it is known how much the loss counts. On a GPU both numbers are in device memory.
  const float upstream = 0.25F;
  ops::linear_cross_entropy_products(cpu{}, x, weight, array::of(dlogits.data(), {3, 4}), gradients,
                                     array::of(&upstream, {}), array::of(&pending, {}));
  // [/doc:two_passes]
  CHECK(pending == 0.5F);  // two tokens count
  for (std::size_t i = 0; i < dx.size(); ++i) CHECK(dx[i] == 0.25F * once[i]);
}

TEST_CASE("linear cross entropy and its gradients in one call", "[docs]") {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6}, weight = {1, 0, 0, 1, 1, 1, -1, 1};
  // [doc:call]
  // x is [3, 2]: three tokens of two features. Four classes; the second token does not count.
  const std::vector<std::int64_t> targets = {2, -100, 0};
  std::vector<float> dx(6), dweight(8);
  float loss_value = 0;
  ops::linear_cross_entropy_gradients gradients;
  gradients.x_gradient = array::of(dx.data(), {3, 2});
  gradients.weight_gradient = array::of(dweight.data(), {4, 2});
  ops::linear_cross_entropy_with_gradients(cpu{}, array::of(x.data(), {3, 2}),
                                           array::of(weight.data(), {4, 2}), array::of(targets.data(), {3}),
                                           array::of(&loss_value, {}), gradients);
  // [/doc:call]
  const double first = std::log(std::exp(1) + std::exp(2) + std::exp(3) + std::exp(1)) - 3;
  const double third = std::log(std::exp(5) + std::exp(6) + std::exp(11) + std::exp(1)) - 5;
  CHECK(loss_value == Approx((first + third) / 2));
  CHECK(dx[2] == 0);
  CHECK(dx[3] == 0);
  const float before = dweight[0];
  // [doc:scale]
  // Later, when it is known how much the loss counts. On a GPU the factor is in device memory.
  const float upstream = 0.25F;
  ops::scale_gradients(cpu{}, gradients, array::of(&upstream, {}));
  // [/doc:scale]
  CHECK(dweight[0] == 0.25F * before);
}
