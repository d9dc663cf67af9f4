#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scandsl/core/view.hpp"
#include "scandsl/exec/cuda_executor.hpp"

/// What the GPU benchmarks share: memory, rows and how they are measured.
namespace bench {

using namespace scandsl;

/// Ends the program with what CUDA says, where it says something.
void check(cudaError_t status);

inline constexpr std::int64_t pool_bytes = std::int64_t{9} << 30;

/// Random numbers between two limits, for all rows.
struct pool {
  char* data = nullptr;
  void fill_with(bool halves, float low, float high);
  /// Operands of `bytes` for call number `call`: another part of the pool than the calls before.
  void* part(std::int64_t bytes, int call) const;
};
inline pool pool_x, pool_decay, pool_y, pool_g, pool_z;

/// One row of the results. `bytes`: what is counted as moved.
struct row {
  std::string op, variant, dtype;
  std::vector<std::int64_t> shape;
  std::optional<int> axis;  ///< the scanned one, if any
  std::int64_t bytes;
  std::function<void(int)> call;
  std::string pass = "forward";
  std::int64_t classes = 0;  ///< of linear cross entropy
};
/// Rows whose names do not contain it are left out.
inline std::string filter;

/// Calls of a row: two before, and so many that are timed at most.
inline constexpr int calls_before = 2, most_timed_calls = 40;
/// Median milliseconds of one call, printed as a row; calls and copies of as many bytes take turns.
void measure(const row& r);

inline std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}
template <class T> array operand(const pool& from, const std::vector<std::int64_t>& shape, int call) {
  return array::of(static_cast<T*>(from.part(count_of(shape) * static_cast<std::int64_t>(sizeof(T)), call)),
                   shape);
}

/// Memory of the GPU.
class memory_block {
public:
  explicit memory_block(std::int64_t bytes) {
    if (bytes > 0) check(cudaMalloc(&data, static_cast<std::size_t>(bytes)));
  }
  ~memory_block() { cudaFree(data); }
  memory_block(const memory_block&) = delete;
  memory_block& operator=(const memory_block&) = delete;

  void* data = nullptr;
};

/// Calls op(device, call) with the workspace that it asks for, which is there from the first call to the
/// last.
template <class Op> std::function<void(int)> with_workspace(Op op) {
  return [op, memory = std::shared_ptr<memory_block>(), bytes = std::int64_t{0}](int call) mutable {
    if (!memory) {
      cuda_sizing sizing;
      op(sizing, 0);
      bytes = sizing.bytes;
      memory = std::make_shared<memory_block>(bytes);
    }
    cuda device{nullptr, {memory->data, bytes}};
    op(device, call);
  };
}

/// Calls gradient(device, call) with the carries that scan(device, call) leaves for it, of every part of a
/// pool that `parts` calls go through, where it has a use for them.
template <class Scan, class Gradient>
std::function<void(int)> with_carries(int parts, Scan scan, Gradient gradient) {
  return [=, device = std::optional<cuda>(), memory = std::vector<std::shared_ptr<memory_block>>(),
          carries = std::vector<cuda_carries>()](int call) mutable {
    const auto allocate = [&](std::int64_t bytes) {
      return memory.emplace_back(std::make_shared<memory_block>(bytes))->data;
    };
    if (!device) {
      cuda_sizing sizing{.with_carries = true}, of_gradient{.with_carries = true};
      scan(sizing, 0);
      gradient(of_gradient, 0);
      const bool has_use = of_gradient.carry_bytes > 0 && sizing.carry_bytes == of_gradient.carry_bytes;
      if (!has_use) gradient(of_gradient = cuda_sizing{}, 0);
      const std::int64_t bytes = std::max(sizing.bytes, of_gradient.bytes);
      device.emplace(nullptr, cuda_workspace{allocate(bytes), bytes});
      carries.resize(static_cast<std::size_t>(parts));
      if (has_use)
        for (int part = 0; part < parts; ++part) {
          cuda_carries& own = carries[static_cast<std::size_t>(part)];
          own = {allocate(sizing.carry_bytes), sizing.carry_bytes};
          device->carries = own;
          scan(*device, part);
        }
    }
    device->carries = carries[static_cast<std::size_t>(call % parts)];
    gradient(*device, call);
  };
}
/// How many parts of a pool a row's calls go round, for operands of `bytes`.
inline int parts_of_pool(std::int64_t bytes) {
  return static_cast<int>(
      std::clamp<std::int64_t>(pool_bytes / ((bytes + 255) / 256 * 256), 1, calls_before + most_timed_calls));
}

/// The rows. The pools hold bfloat16 numbers.
void add_scans();
void add_scan_gradients();
void add_encodings();
/// The loss and its gradients in one pass.
void add_cross_entropy();
/// Those of float32; the pool of x holds such numbers.
void add_float32();
/// How time grows with sizes, in place of all others.
void add_growth();

}  // namespace bench
