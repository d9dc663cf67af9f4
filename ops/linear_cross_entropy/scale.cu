#include <algorithm>

#include "scale.hpp"
#include "scandsl/core/overlap.hpp"
#include "scandsl/exec/cuda/launch.cuh"
#include "scandsl/exec/cuda/memory.cuh"

/// The one kernel here that is no program: it ends at once where its factor, which only the device knows,
/// is 1.
namespace scandsl::ops {
namespace {

using namespace cuda_detail;

constexpr int threads = 256;
constexpr std::int64_t most_blocks = 4096;

struct strided_elements {
  void* data;
  dtype type;
  int rank;
  dim where[max_rank];

  __device__ std::int64_t offset(std::int64_t position) const {
    std::int64_t result = 0;
    for (int i = rank; i-- > 0; position /= where[i].extent)
      result += position % where[i].extent * where[i].stride;
    return result;
  }
};

template <class C> __device__ __forceinline__ C product_of(const C* factor, const C* pending) {
  return pending == nullptr ? *factor : *factor * *pending;
}

template <class C>
__global__ void __launch_bounds__(threads)
    scale_elements(strided_elements all, std::int64_t count, const C* factor, const C* pending) {
  const C by = product_of(factor, pending);
  if (by == C(1)) return;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * threads) {
    const std::int64_t at = all.offset(i);
    store_any(all.data, all.type, at, load_any<C>(all.data, all.type, at) * by);
  }
}

template <class T, class C>
__global__ void __launch_bounds__(threads)
    scale_vectors(T* data, std::int64_t vectors, const C* factor, const C* pending) {
  const C by = product_of(factor, pending);
  if (by == C(1)) return;
  constexpr int width = 16 / static_cast<int>(sizeof(T));
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < vectors;
       i += std::int64_t{gridDim.x} * threads) {
    packed<T, width> vector;
    C values[width];
    vector.load(data + i * width);
#pragma unroll
    for (int k = 0; k < width; ++k) values[k] = vector.template get<C>(k) * by;
    vector.set(0, values);
    vector.store(data + i * width);
  }
}

unsigned blocks_for(std::int64_t items) {
  return static_cast<unsigned>(std::min((items + threads - 1) / threads, most_blocks));
}

template <class C>
void scale_any(cudaStream_t stream, const erased_view& values, const C* factor, const C* pending) {
  std::vector<dim> where = detail::coalesce(footprint_of(values).where);
  std::int64_t count = 1;
  for (const dim& each : where) count *= each.extent;
  if (count == 0) return;
  const bool contiguous = where.empty() || (where.size() == 1 && where[0].stride == 1);
  std::int64_t done = 0;
  if (contiguous && reinterpret_cast<std::uintptr_t>(values.data) % 16 == 0)
    visit_dtype(values.type, [&]<class T>(std::type_identity<T>) {
      if constexpr (is_floating(dtype_of<T>) && std::is_same_v<T, double> == std::is_same_v<C, double>) {
        const std::int64_t vectors = count / (16 / static_cast<std::int64_t>(sizeof(T)));
        done = vectors * (16 / static_cast<std::int64_t>(sizeof(T)));
        if (vectors > 0)
          scale_vectors<T, C><<<blocks_for(vectors), threads, 0, stream>>>(static_cast<T*>(values.data),
                                                                           vectors, factor, pending);
      }
    });
  if (done < count) {
    strided_elements rest{values.data, values.type, static_cast<int>(where.size()), {}};
    std::copy(where.begin(), where.end(), rest.where);
    if (done > 0) {
      rest.data = static_cast<char*>(values.data) + done * static_cast<std::int64_t>(size_of(values.type));
      rest.where[0].extent = count - done;
    }
    scale_elements<C><<<blocks_for(count - done), threads, 0, stream>>>(rest, count - done, factor, pending);
  }
  cuda_detail::check(cudaGetLastError(), "a kernel launch");
}

__device__ const float float32_numbers[] = {1.0F, 0.0F};
__device__ const double float64_numbers[] = {1.0, 0.0};

template <class T> one_and_zero addresses_of(const T (&numbers)[2]) {
  void* first = nullptr;
  cuda_detail::check(cudaGetSymbolAddress(&first, numbers), "cudaGetSymbolAddress");
  const auto* const one = static_cast<const T*>(first);
  return {one, one + 1};
}

}  // namespace

one_and_zero one_and_zero_of(dtype type) {
  return type == dtype::float64 ? addresses_of(float64_numbers) : addresses_of(float32_numbers);
}

void scale(const cuda& device, const erased_view& values, const void* factor, const void* pending) {
  if (values.type == dtype::float64)
    scale_any(device.stream, values, static_cast<const double*>(factor), static_cast<const double*>(pending));
  else
    scale_any(device.stream, values, static_cast<const float*>(factor), static_cast<const float*>(pending));
}

}  // namespace scandsl::ops
