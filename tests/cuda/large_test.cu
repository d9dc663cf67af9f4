#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda/device_memory.hpp"
#include "scandsl/ops/chunk_cumsum_decay.hpp"
#include "support/catch.hpp"

// Tensors of more than 2^31 elements. The elements are 0 or 1 and no sum is greater than 256, so that
// bfloat16 holds every value exactly.
namespace {

using namespace scandsl;
using support::device_memory, support::must;

/// Bits that depend on every bit of i.
__host__ __device__ bool random_bit(std::int64_t i) {
  return (static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15U >> 63) != 0;
}

/// `lanes` lanes of `length` steps. In memory the lanes lie side by side, or (rows) the steps.
struct large_tensor {
  std::int64_t length, lanes;
  bool rows;
  std::int64_t chunk;  ///< 0: none, and every `rare`-th element is a 1
  std::int64_t rare;
  bool reverse;

  __host__ __device__ std::int64_t count() const { return length * lanes; }
  __host__ __device__ std::int64_t step_of(std::int64_t at) const { return rows ? at % length : at / lanes; }
  __host__ __device__ std::int64_t lane_of(std::int64_t at) const { return rows ? at / length : at % lanes; }
  array view(const void* data, bool writable) const {
    array result =
        array::of(static_cast<const bfloat16*>(data), {length, lanes}, {rows ? 1 : lanes, rows ? length : 1});
    result.writable = writable;
    return result;
  }
  __host__ __device__ bool element(std::int64_t step, std::int64_t lane) const {
    return chunk > 0 ? random_bit(step * lanes + lane) : (step + lane) % rare == 0;
  }
  std::int64_t sum(std::int64_t step, std::int64_t lane) const {
    if (chunk == 0) {  // positions p with (p + lane) % rare == 0 up to the step, or from it on
      const auto up_to = [&](std::int64_t end) {
        return (end + lane + rare) / rare - (lane + rare - 1) / rare;
      };
      return reverse ? up_to(length - 1) - up_to(step - 1) : up_to(step);
    }
    std::int64_t first = step / chunk * chunk, last = step, total = 0;
    if (reverse) last = std::min(first + chunk, length) - 1, first = step;
    for (std::int64_t at = first; at <= last; ++at) total += element(at, lane);
    return total;
  }
};

__global__ void fill(bfloat16* to, large_tensor what) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < what.count();
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    to[i].bits = what.element(what.step_of(i), what.lane_of(i)) ? 0x3f80 : 0;
}

/// Positions at both ends, around powers of two, and all over.
std::vector<std::int64_t> samples(std::int64_t count) {
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < 300; ++i) {
    positions.push_back(i);
    positions.push_back(count - 1 - i);
    positions.push_back(count / 300 * i + i);
  }
  for (const int power : {15, 16, 30, 31, 32})
    for (std::int64_t i = -3; i <= 3; ++i) positions.push_back((std::int64_t{1} << power) + i);
  std::erase_if(positions, [=](std::int64_t each) { return each < 0 || each >= count; });
  return positions;
}

}  // namespace

TEST_CASE("more than 2^31 elements: a row, strided lanes and very many lanes", "[cuda][large]") {
  constexpr std::int64_t much = std::int64_t{1} << 31;
  const large_tensor tensors[] = {
      {much + 4099, 1, true, 128, 0, false},                    // a row in chunks
      {much + 4099, 1, true, 0, std::int64_t{1} << 24, false},  // and as a whole: it is looked back along
      {much + 4099, 1, true, 0, std::int64_t{1} << 24, true},
      {65600, 32776, false, 128, 0, true},  // strided lanes
      {65600, 32776, false, 0, 1024, false},
      {2, much + 9, false, 0, 1, false},  // very many lanes
      {2, much + 9, true, 0, 1, false}};
  for (const large_tensor& what : tensors) {
    const std::string name = std::to_string(what.lanes) + (what.rows ? " rows of " : " lanes of ") +
                             std::to_string(what.length) + ", chunk " + std::to_string(what.chunk) +
                             (what.reverse ? ", reverse" : "");
    INFO(name);
    std::size_t left = 0, all = 0;
    must(cudaMemGetInfo(&left, &all));
    const std::int64_t bytes = what.count() * static_cast<std::int64_t>(sizeof(bfloat16));
    if (static_cast<std::int64_t>(left) < 2 * bytes + (std::int64_t{1} << 28)) {
      std::printf("left out: %s, for %zu MiB are free and %lld needed\n", name.c_str(), left >> 20,
                  static_cast<long long>((2 * bytes >> 20) + 256));
      continue;
    }
    const device_memory x(static_cast<std::size_t>(bytes)), y(static_cast<std::size_t>(bytes));
    fill<<<2048, 256>>>(static_cast<bfloat16*>(x.data), what);
    must(cudaGetLastError());
    must(cudaMemset(y.data, 0xff, static_cast<std::size_t>(bytes)));
    ops::chunk_cumsum_options options;
    options.dim = 0;
    options.chunk_size = what.chunk > 0 ? what.chunk : what.length;
    options.reverse = what.reverse;
    const array from = what.view(x.data, false), to = what.view(y.data, true);
    cuda_sizing size;
    ops::chunk_cumsum_decay(size, from, to, options);
    const device_memory workspace(static_cast<std::size_t>(size.bytes + 1));
    ops::chunk_cumsum_decay(cuda{nullptr, {workspace.data, size.bytes}}, from, to, options);
    must(cudaDeviceSynchronize());
    std::string wrong;
    for (const std::int64_t at : samples(what.count())) {
      bfloat16 got;
      must(cudaMemcpy(&got, static_cast<const bfloat16*>(y.data) + at, sizeof(got), cudaMemcpyDeviceToHost));
      const std::int64_t expected = what.sum(what.step_of(at), what.lane_of(at));
      REQUIRE(expected <= 256);
      if (wrong.empty() && static_cast<float>(got) != static_cast<float>(expected))
        wrong = "element " + std::to_string(at) + ": expected " + std::to_string(expected) + ", got " +
                std::to_string(static_cast<float>(got));
    }
    CHECK(wrong == "");
  }
}
