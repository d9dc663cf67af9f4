#pragma once
#include "matrix.hpp"
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/exec/cuda_executor.hpp"
#include "scandsl/ops/linear_cross_entropy.hpp"

/// Private to the op: matrix products of the vendor's library.
namespace scandsl::ops {

/// result = factor left right, or where it accumulates result = earlier_factor result + factor left right.
/// left and right have one element type, the result has it too or that of the sums: float32, float64 for
/// float64.
struct product {
  matrix left, right, result;
  const void* factor = nullptr;  ///< a number in the device's memory, of the sums' type; none: 1
  bool accumulates = false;
  const void* earlier_factor = nullptr;  ///< as factor
};

/// The CPU's BLAS. Takes any strides; 16-bit types, and strides that no BLAS takes, go through panels of
/// float32 (float64 for float64).
void multiply(const cpu& device, const product& what);
/// At most the bytes that multiply allocates for panels, where it needs them.
std::int64_t panel_bytes(dtype type);

/// Whether a BLAS reads and writes a matrix as it lies.
inline bool has_unit_stride(const matrix& m) { return m.is_row_major() || m.transposed().is_row_major(); }

/// cuBLASLt. Where the library is built without CUDA, all of these throw cuda_error.
namespace cuda_blas {

/// The memory that products may use, and how they are chosen.
struct setting {
  void* scratch = nullptr;
  product_tuning tuning;
};
inline constexpr std::int64_t scratch_bytes = 16 << 20;

/// Chooses how a product will be computed. Where it is timed, its result is overwritten.
void choose(const cuda& device, const setting& with, const product& what);
void multiply(const cuda& device, const setting& with, const product& what);

/// Bytes of the current device that nobody has allocated. The driver takes its time to say.
std::int64_t free_bytes();
/// Bytes of the current device.
std::int64_t all_bytes();
/// Copies to the host, and waits for it.
void read(const cuda& device, void* to, const void* from, std::int64_t bytes);

}  // namespace cuda_blas
}  // namespace scandsl::ops
