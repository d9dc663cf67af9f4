#pragma once
#include <limits>

#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/specialise.hpp"

/// What lies between the products, n counting tokens, v classes and d features. The rows of
/// logits are contiguous.
namespace scandsl::ops::linear_cross_entropy_program {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline constexpr axis<"n"> n;
inline constexpr axis<"v"> v;
inline constexpr axis<"d"> d;
inline constexpr axis<"all"> all;  ///< tokens of all chunks
inline constexpr tensor<"logits"> logits;
inline constexpr tensor<"bias"> bias;
inline constexpr tensor<"class_weight"> class_weight;
inline constexpr integer_tensor<"target"> target;
inline constexpr tensor<"token_weight">
    token_weight;  ///< the class weight of the target; 0 where it does not count
inline constexpr tensor<"mean_weight"> mean_weight;
inline constexpr tensor<"loss"> loss;
inline constexpr tensor<"lse"> lse;
inline constexpr tensor<"denominator"> denominator;
inline constexpr tensor<"upstream"> upstream;
inline constexpr tensor<"factor"> factor;
inline constexpr tensor<"x"> x;
inline constexpr tensor<"y"> y;
inline constexpr tensor<"before"> before;
inline constexpr integer_scalar<"ignore_index"> ignore_index;
inline constexpr integer_scalar<"first"> first;  ///< token of the chunk
inline constexpr scalar<"label_smoothing"> label_smoothing;
inline constexpr scalar<"classes"> classes;
inline constexpr scalar<"z_loss"> z_loss;
inline constexpr scalar<"softcap"> softcap;
inline constexpr scalar<"is_mean"> is_mean;

/// sum of q_v (lse - z_v) over the classes, with the target distribution q: a share of it is spread over all
/// classes, the rest is on the target's. Each z is read once; one of -inf that q leaves out has no part.
constexpr auto make_token_loss() {
  const auto target_of_token = target(all[index(n) + first]);
  const auto capped = [](const auto& biased) {
    return select(softcap != 0.0, softcap * tanh(biased / softcap), biased);
  };
  const auto z = capped(logits(n, v) + value_or(bias(v), 0.0));
  const auto log_sum = reduce(log_add_exp, over(v), z);
  const auto at_target = capped(logits(n, v[target_of_token]) + value_or(bias(v[target_of_token]), 0.0));
  const auto on_target = (1.0 - label_smoothing) * token_weight(n);
  const auto weight = value_or(class_weight(v), 1.0);
  const auto spread = label_smoothing / extent(v) * sum(over(v), select(weight == 0.0, 0.0, weight * z));
  const auto expected =
      select(on_target == 0.0, 0.0, on_target * at_target) + select(label_smoothing != 0.0, spread, 0.0);
  const auto mass = on_target + label_smoothing * value_or(mean_weight(), 1.0);
  const auto regular = select(z_loss != 0.0, z_loss * square(log_sum), 0.0);
  return op<"token_loss">(
      out<"loss">(n) = select(target_of_token != ignore_index, mass * log_sum - expected + regular, 0.0),
      out<"lse">(n).optional() = log_sum);
}
inline constexpr program token_loss = along_rows(make_token_loss());

/// A program of token losses for calls without bias, class weights and options: what most models are trained
/// with.
constexpr program without_choices(const program& p) {
  return along_rows(specialise(p, label_smoothing = 0.0, z_loss = 0.0, softcap = 0.0, without(bias),
                               without(class_weight), without(mean_weight)));
}
inline constexpr program plain_token_loss = without_choices(token_loss);

/// The weights of the tokens. A target that is no class and not ignored makes its token's weight, and so its
/// loss, NaN.
constexpr auto make_token_weights() {
  const auto is_class = target(n) >= 0 && target(n) < classes;
  const auto of_class = select(is_class, value_or(class_weight(v[target(n)]), 1.0), nan);
  return op<"token_weights">(out<"token_weight">(n) = select(target(n) != ignore_index, of_class, 0.0));
}
inline constexpr program token_weights = along_rows(make_token_weights());

/// What the losses are divided by, and the factor of the gradients' products. A mean over no tokens has
/// gradient 0. (Apart from the weights, whose targets are integers: floating-point numbers alone are summed
/// by several blocks.)
constexpr auto make_totals() {
  const auto divisor = select(is_mean != 0.0, sum(over(n), token_weight(n)), 1.0);
  return op<"totals">(out<"denominator">() = divisor,
                      out<"factor">() = select(divisor == 0.0, 0.0, value_or(upstream(), 1.0) / divisor));
}
inline constexpr program totals = along_rows(make_totals());

inline constexpr program mean_of_weights =
    along_rows(op<"mean_of_weights">(out<"mean_weight">() = sum(over(v), class_weight(v)) / extent(v)));

inline constexpr program reduced_loss =
    along_rows(op<"reduced_loss">(out<"y">() = sum(over(n), loss(n)) / denominator()));

/// The gradient of the bias, a chunk of tokens after the other.
inline constexpr auto column_sums =
    op<"column_sums">(out<"y">(v) = value_or(before(v), 0.0) + sum(over(n), logits(n, v)));

/// A copy into any strides and any type, with a factor, or added to what is there; without x zeros.
inline constexpr auto scaled = op<"scaled">(
    out<"y">(n, d) = value_or(before(n, d), 0.0) + value_or(factor(), 1.0) * value_or(x(n, d), 0.0));

}  // namespace scandsl::ops::linear_cross_entropy_program
