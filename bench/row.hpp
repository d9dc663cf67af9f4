#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scandsl/core/half.hpp"

namespace bench {

/// One line of a result file: what was run on what, by whom; bench/README.md explains the fields.
struct row {
  std::string op, variant, dtype;
  std::vector<std::int64_t> shape;
  int axis = 0;
  std::string provider;
  std::int64_t bytes = 0;         ///< of the operands: each is read or written once
  std::function<void(int)> call;  ///< runs once; the number counts the calls

  std::vector<double> seconds{};       ///< of every call that was timed
  std::vector<double> copy_seconds{};  ///< of a copy of the same number of bytes right before it
};

/// Registers a row with Google Benchmark.
void add(const row& added);
const std::vector<row>& rows();
/// op/case/dtype/shape/axis/provider: what --benchmark_filter matches.
std::string name_of(const row& r);

template <class T> inline constexpr const char* dtype_name = "f32";
template <> inline constexpr const char* dtype_name<scandsl::bfloat16> = "bf16";

/// Operands live in pools that all rows share. Call number i works in slot i of each, so that a call finds
/// nothing of the calls before it in the cache.
enum class pool { x, decay, y };

inline constexpr std::int64_t pool_bytes = std::int64_t{288} << 20;

/// Slot `call` of a pool of T, for operands of `count` elements: inputs hold numbers, decays lie in (0.8, 1).
template <class T> T* memory(pool which, std::int64_t count, int call);
/// Fills all pools, which would otherwise happen in the first calls.
void fill_pools();

/// The rows of each op.
void add_logcumsumexp();
void add_chunk_cumsum_decay();
void add_decayed_sum();
void add_long_row();

}  // namespace bench
