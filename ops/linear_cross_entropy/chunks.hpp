#pragma once
#include <algorithm>

#include "memory.hpp"

/// Private to the op: how many tokens a chunk has.
namespace scandsl::ops {

/// Sizes of a chunk of logits. The larger it is, the fewer times the weight and its gradient are read and
/// written, and rounded.
struct chunk_policy {
  std::int64_t whole_bytes;   ///< all tokens at once up to here
  std::int64_t chunk_bytes;   ///< else as many tokens as fit here
  std::int64_t least_tokens;  ///< but as many as keep the products efficient
};
/// Measured on an H200 (bfloat16, 12288 tokens, 4096 features): 2048 tokens take 0.5% more time than 4096 at
/// 131072 classes, with half the memory; 4096 take 1 to 3% more than all at 16384, with a third of it.
inline constexpr chunk_policy cuda_chunk_policy{384 << 20, 128 << 20, 2048};
inline constexpr chunk_policy cpu_chunk_policy{32 << 20, 32 << 20, 256};

struct chunk_choice {
  std::int64_t tokens, bytes;
};
/// Tokens a chunk, and the bytes that they take: by the policy, then fewer until bytes(tokens) is within the
/// limit, if there is one. Chunks of one call are equal but for the last. A call whose logits' gradient is
/// the caller's takes as many as fit there. Throws argument_error where one token is too many, or all are
/// that must be.
template <class Bytes>
chunk_choice choose_chunk(const call_arguments& call, const chunk_policy& policy,
                          std::optional<std::int64_t> limit, Bytes bytes) {
  const std::int64_t tokens = call.tokens();
  if (call.logits_gradient) {
    const std::int64_t rows = std::min(tokens, call.logits_gradient->extents[0]);
    const chunk_choice given{rows, bytes(rows)};
    if (limit && given.bytes > *limit)
      throw argument_error(
          message("memory for ", rows == tokens ? "all" : message(rows), " tokens, ", given.bytes, " bytes"),
          message(*limit), "raise memory_limit, or the workspace");
    return given;
  }
  const std::int64_t row = call.classes() * static_cast<std::int64_t>(size_of(call.x.type));
  std::int64_t most = tokens;
  if (call.options.tokens_a_chunk > 0)
    most = std::min(tokens, call.options.tokens_a_chunk);
  else if (tokens * row > policy.whole_bytes)
    most = std::min(tokens, std::max(policy.least_tokens, policy.chunk_bytes / row));
  const auto balanced = [&](std::int64_t at_most) {
    constexpr std::int64_t tile = 128;  // of the products
    if (call.options.tokens_a_chunk > 0 || at_most >= tokens || at_most < tile) return at_most;
    const std::int64_t chunks = (tokens + at_most - 1) / at_most;
    return std::min(at_most, ((tokens + chunks - 1) / chunks + tile - 1) / tile * tile);
  };
  const auto choice = [&](std::int64_t at_most) {
    const std::int64_t chosen = balanced(at_most);
    return chunk_choice{chosen, bytes(chosen)};
  };
  chunk_choice chosen = choice(most);
  while (limit && most > 1 && chosen.bytes > *limit) chosen = choice(most = (most + 1) / 2);
  if (limit && chosen.bytes > *limit)
    throw argument_error(message("memory for a chunk of one token, ", bytes(std::int64_t{1}), " bytes"),
                         message(*limit), "raise memory_limit, or the workspace");
  return chosen;
}

}  // namespace scandsl::ops
