#pragma once
#include "program.hpp"
#include "scandsl/pass/gradient.hpp"

namespace scandsl::ops::linear_cross_entropy_program {

inline constexpr tensor<"dlogits"> dlogits;
inline constexpr tensor<"dloss"> dloss;
inline constexpr tensor<"dlse"> dlse;

/// The loss and the gradient of a chunk of logits, which may overwrite them. The cotangents of the losses are
/// 1 unless given: the one of the reduced loss is a factor of the products.
constexpr program make_token_gradient() {
  program p = value_and_gradient(token_loss, logits);
  p.tensors[p.find_tensor(name("dloss"))].fallback = 1.0;
  return along_rows(p);
}
inline constexpr program token_gradient = make_token_gradient();
inline constexpr program plain_token_gradient = without_choices(token_gradient);

}  // namespace scandsl::ops::linear_cross_entropy_program
