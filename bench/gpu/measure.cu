#include "measure.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "scandsl/exec/cuda/memory.cuh"

namespace bench {
namespace {

__global__ void fill(std::uint32_t* words, std::int64_t count, bool halves, float low, float high) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    std::uint32_t h = static_cast<std::uint32_t>(i) * 2654435761U + static_cast<std::uint32_t>(i >> 32);
    h = (h ^ (h >> 16)) * 0x7feb352dU;
    h = (h ^ (h >> 15)) * 0x846ca68bU;
    h ^= h >> 16;
    const float u = static_cast<float>(h & 0xffffU) * (1.0F / 65536.0F),
                v = static_cast<float>(h >> 16) * (1.0F / 65536.0F);
    const float one = low + (high - low) * u, two = low + (high - low) * v;
    words[i] = halves ? cuda_detail::narrow_pair<bfloat16>(one, two) : __float_as_uint(one);
  }
}

}  // namespace

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

void pool::fill_with(bool halves, float low, float high) {
  if (data == nullptr) check(cudaMalloc(&data, pool_bytes));
  fill<<<1024, 256>>>(reinterpret_cast<std::uint32_t*>(data), pool_bytes / 4, halves, low, high);
  check(cudaDeviceSynchronize());
}
void* pool::part(std::int64_t bytes, int call) const {
  const std::int64_t size = (bytes + 255) / 256 * 256, parts = std::max<std::int64_t>(1, pool_bytes / size);
  return data + call % parts * size;
}

namespace {

/// The runtime's own copy: 4.19 TB/s of 384 MiB on an H200, where kernels reach 4.17 with one access of 16
/// bytes a thread and 4.01 with four.
void copy_bytes(std::int64_t moved, int call) {
  const std::int64_t half = moved / 32 * 16;
  check(cudaMemcpyAsync(pool_y.part(half, call), pool_x.part(half, call), static_cast<std::size_t>(half),
                        cudaMemcpyDeviceToDevice));
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

void measure(const row& r) {
  std::string name = r.op + "/" + r.variant + "/" + r.dtype + "/", shape = "[";
  for (std::size_t i = 0; i < r.shape.size(); ++i) {
    name += (i > 0 ? "x" : "") + std::to_string(r.shape[i]);
    shape += (i > 0 ? ", " : "") + std::to_string(r.shape[i]);
  }
  shape += "]";
  // The fields of a row that say what was run, as bench/README.md names them.
  std::string what = R"("op": ")" + r.op + R"(", "pass": ")" + r.pass + R"(", "case": ")" + r.variant +
                     R"(", "dtype": ")" + r.dtype + R"(", "shape": )" + shape + R"(, "axis": )" +
                     (r.axis ? std::to_string(*r.axis) : "null");
  if (r.classes > 0) {
    name += "/v" + std::to_string(r.classes);
    what += R"(, "n": )" + std::to_string(r.classes);
  }
  if (r.axis) name += "/axis" + std::to_string(*r.axis);
  name += "/" + r.pass;
  if (!filter.empty() && name.find(filter) == std::string::npos) return;
  const auto moment = [] {
    cudaEvent_t event;
    check(cudaEventCreate(&event));
    check(cudaEventRecord(event));
    return event;
  };
  const auto between = [](cudaEvent_t from, cudaEvent_t to) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, from, to));
    return static_cast<double>(ms);
  };
  struct turn {
    cudaEvent_t begin, middle, end;
  };
  const auto take_turn = [&](int call) {
    turn t;
    t.begin = moment();
    r.call(call);
    t.middle = moment();
    copy_bytes(r.bytes, call);
    t.end = moment();
    return t;
  };
  std::vector<turn> turns;
  for (int call = 0; call < calls_before; ++call) turns.push_back(take_turn(call));
  check(cudaDeviceSynchronize());
  const double one = between(turns.back().begin, turns.back().middle);
  const int calls = std::clamp(static_cast<int>(150.0 / one), 3, most_timed_calls);
  // The device is kept busy, so that the calls are there before it comes to them: their host time is not
  // meant.
  for (int call = 0; call < 4; ++call) copy_bytes(pool_bytes, call);
  for (int call = 0; call < calls; ++call) turns.push_back(take_turn(calls_before + call));
  check(cudaDeviceSynchronize());
  std::vector<double> ours, copies;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const turn& t = turns[i];
    if (i >= calls_before) {
      ours.push_back(between(t.begin, t.middle));
      copies.push_back(between(t.middle, t.end));
    }
    for (const cudaEvent_t event : {t.begin, t.middle, t.end}) check(cudaEventDestroy(event));
  }
  const double ms = median(ours), copy_ms = median(copies), mib = static_cast<double>(r.bytes) / (1 << 20);
  const auto print = [&](const char* provider, double time) {
    std::printf("{%s, \"provider\": \"%s\", \"ms\": %.4g, \"gbs\": %.4g, \"of_copy\": %.3f, \"mib\": %.4g}\n",
                what.c_str(), provider, time, static_cast<double>(r.bytes) / time * 1e-6, copy_ms / time,
                mib);
  };
  print("scandsl", ms);
  print("copy", copy_ms);
  std::fflush(stdout);
}

}  // namespace bench
