#pragma once
#include "arguments.hpp"
#include "matrix.hpp"

/// Private to the op: what a call holds beside its operands.
namespace scandsl::ops {

/// Hands out memory from front to back; without memory it only counts.
class arena {
public:
  explicit arena(void* from = nullptr) : start(static_cast<char*>(from)) {}

  void* take(std::int64_t bytes) {
    constexpr std::int64_t alignment = 256;
    char* const result = start == nullptr ? nullptr : start + used;
    used += (bytes + alignment - 1) / alignment * alignment;
    return result;
  }
  /// Contiguous.
  matrix take(dtype type, std::int64_t rows, std::int64_t columns) {
    return take(type, rows, columns, columns);
  }
  matrix take(dtype type, std::int64_t rows, std::int64_t columns, std::int64_t row_stride) {
    return {take(rows * row_stride * static_cast<std::int64_t>(size_of(type))),
            type,
            rows,
            columns,
            row_stride,
            1};
  }
  std::int64_t bytes() const { return used; }

private:
  char* start;
  std::int64_t used = 0;
};

/// An operand as a matrix: where the products take it as it lies, itself, else a contiguous copy.
struct matrix_operand {
  matrix values;
  bool is_copy = false;
};

/// Elements from one row of logits to the next: whole cache lines, for every V.
inline std::int64_t logits_row(std::int64_t classes, dtype type) {
  const std::int64_t line = 128 / static_cast<std::int64_t>(size_of(type));
  return (classes + line - 1) / line * line;
}

/// The memory of one call that takes `chunk_tokens` tokens at a time.
struct call_memory {
  matrix logits;                               ///< of a chunk, overwritten by their gradient
  matrix token_weight, token_loss, token_lse;  ///< [N]
  matrix loss_cotangents, lse_cotangents;      ///< [N], where each token has its own
  matrix denominator, mean_weight;             ///< numbers
  matrix factor;                               ///< of the products; where it is left pending, there
  matrix bias_sums;                            ///< [V]
  matrix_operand x, weight, x_gradient, weight_gradient;

  std::int64_t copied_bytes() const {
    std::int64_t bytes = 0;
    for (const matrix_operand* each : {&x, &weight, &x_gradient, &weight_gradient})
      if (each->is_copy)
        bytes +=
            each->values.rows * each->values.columns * static_cast<std::int64_t>(size_of(each->values.type));
    return bytes;
  }

  /// `takes(matrix)`: whether the device's products take it.
  template <class Takes>
  call_memory(arena& from, const call_arguments& call, std::int64_t chunk_tokens, Takes takes) {
    const dtype type = call.x.type, sums = call.sums();
    const std::int64_t tokens = call.tokens(), classes = call.classes();
    logits = call.logits_gradient ? *merged(*call.logits_gradient)
                                  : from.take(type, chunk_tokens, classes, logits_row(classes, type));
    if (!call.is_products()) {
      for (matrix* each : {&token_weight, &token_loss, &token_lse}) *each = from.take(sums, tokens, 1);
      for (matrix* each : {&denominator, &mean_weight}) *each = from.take(sums, 1, 1);
    }
    if (call.has_token_cotangents())
      for (matrix* each : {&loss_cotangents, &lse_cotangents}) *each = from.take(sums, tokens, 1);
    if (call.leaves_factor_pending())
      factor = {call.pending->data, sums, 1, 1, 1, 1};
    else
      factor = from.take(sums, 1, 1);
    if (call.gradients.bias_gradient) bias_sums = from.take(sums, classes, 1);
    const auto operand = [&](const array& a, dtype held) -> matrix_operand {
      const std::optional<matrix> direct = merged(a);
      if (direct && held == a.type && takes(*direct)) return {*direct, false};
      const std::int64_t columns = a.extents[a.rank - 1];
      return {from.take(held, columns == 0 ? 0 : a.count() / columns, columns), true};
    };
    if (!call.is_products() || call.gradients.weight_gradient) x = operand(call.x, type);
    if (!call.is_products() || call.gradients.x_gradient) weight = operand(call.weight, type);
    if (call.gradients.x_gradient) x_gradient = operand(*call.gradients.x_gradient, type);
    if (call.gradients.weight_gradient)
      weight_gradient = operand(*call.gradients.weight_gradient, call.accumulate());
  }
};

}  // namespace scandsl::ops
