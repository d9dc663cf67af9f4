#include "products.hpp"
#include "scale.hpp"

/// The part of a library that is built without CUDA.
namespace scandsl::ops {
namespace {
[[noreturn]] void refuse() {
  throw cuda_error("scandsl_ops with CUDA", "a library that was built without it",
                   "build it where nvcc is found");
}
}  // namespace

void scale(const cuda&, const erased_view&, const void*, const void*) { refuse(); }
one_and_zero one_and_zero_of(dtype) { refuse(); }

namespace cuda_blas {

void choose(const cuda&, const setting&, const product&) { refuse(); }
void multiply(const cuda&, const setting&, const product&) { refuse(); }
std::int64_t free_bytes() { refuse(); }
std::int64_t all_bytes() { refuse(); }
void read(const cuda&, void*, const void*, std::int64_t) { refuse(); }

}  // namespace cuda_blas
}  // namespace scandsl::ops
