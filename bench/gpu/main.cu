#include <cuda_runtime.h>
#include <scandsl/ops/chunk_cumsum_decay.hpp>
#include <scandsl/ops/decayed_sum.hpp>
#include <scandsl/ops/logcumsumexp.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "scandsl/cuda.cuh"

// usage: scandsl_gpu_bench [--filter=TEXT]   prints one JSON object a line: the rows of bench/README.md
namespace {

using namespace scandsl;

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

// ---- memory: pools of random numbers that all rows share

constexpr std::int64_t pool_bytes = std::int64_t{9} << 30;

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

struct pool {
  char* data = nullptr;
  void fill_with(bool halves, float low, float high) {
    if (data == nullptr) check(cudaMalloc(&data, pool_bytes));
    fill<<<1024, 256>>>(reinterpret_cast<std::uint32_t*>(data), pool_bytes / 4, halves, low, high);
    check(cudaDeviceSynchronize());
  }
  /// Operands of `bytes` for call number `call`: another part of the pool than the calls before.
  void* part(std::int64_t bytes, int call) const {
    const std::int64_t size = (bytes + 255) / 256 * 256, parts = std::max<std::int64_t>(1, pool_bytes / size);
    return data + call % parts * size;
  }
};
pool pool_x, pool_decay, pool_y, pool_g, pool_z;

__global__ void __launch_bounds__(512) copy(const uint4* from, uint4* to, std::int64_t count) {
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * 2048 + threadIdx.x;
  uint4 held[4];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (i + k * 512 < count) held[k] = from[i + k * 512];
#pragma unroll
  for (int k = 0; k < 4; ++k)
    if (i + k * 512 < count) to[i + k * 512] = held[k];
}
void copy_bytes(std::int64_t moved, int call) {
  const std::int64_t count = moved / 32;
  copy<<<static_cast<unsigned>((count + 2047) / 2048), 512>>>(
      static_cast<const uint4*>(pool_x.part(count * 16, call)),
      static_cast<uint4*>(pool_y.part(count * 16, call)), count);
}

// ---- rows

struct row {
  std::string op, variant, dtype;
  std::vector<std::int64_t> shape;
  int axis;
  std::int64_t bytes;
  std::function<void(int)> call;
  std::string pass = "forward";
};
std::string filter;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Median milliseconds of one call; calls and copies of as many bytes take turns.
void measure(const row& r) {
  std::string name = r.op + "/" + r.variant + "/" + r.dtype + "/", shape = "[";
  for (std::size_t i = 0; i < r.shape.size(); ++i) {
    name += (i > 0 ? "x" : "") + std::to_string(r.shape[i]);
    shape += (i > 0 ? ", " : "") + std::to_string(r.shape[i]);
  }
  name += "/axis" + std::to_string(r.axis) + "/" + r.pass;
  shape += "]";
  if (!filter.empty() && name.find(filter) == std::string::npos) return;
  cudaEvent_t begin, middle, end;
  for (cudaEvent_t* e : {&begin, &middle, &end}) check(cudaEventCreate(e));
  std::vector<double> ours, copies;
  double total = 0;
  for (int call = 0; call < 3 || (call < 40 && total < 150.0); ++call) {
    check(cudaEventRecord(begin));
    r.call(call);
    check(cudaEventRecord(middle));
    copy_bytes(r.bytes, call);
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float one = 0, two = 0;
    check(cudaEventElapsedTime(&one, begin, middle));
    check(cudaEventElapsedTime(&two, middle, end));
    total += one;
    if (call < 2) continue;
    ours.push_back(one);
    copies.push_back(two);
  }
  for (const cudaEvent_t e : {begin, middle, end}) check(cudaEventDestroy(e));
  const double ms = median(ours), copy_ms = median(copies), mib = static_cast<double>(r.bytes) / (1 << 20);
  const auto print = [&](const char* provider, double time) {
    std::printf("{\"op\": \"%s\", \"pass\": \"%s\", \"case\": \"%s\", \"dtype\": \"%s\", \"shape\": %s, "
                "\"axis\": %d, \"provider\": \"%s\", \"ms\": %.4g, \"gbs\": %.4g, \"of_copy\": %.3f, "
                "\"mib\": %.4g}\n",
                r.op.c_str(), r.pass.c_str(), r.variant.c_str(), r.dtype.c_str(), shape.c_str(), r.axis,
                provider, time, static_cast<double>(r.bytes) / time * 1e-6, copy_ms / time, mib);
  };
  print("scandsl", ms);
  print("copy", copy_ms);
  std::fflush(stdout);
}

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}
template <class T> array operand(const pool& from, const std::vector<std::int64_t>& shape, int call) {
  return array::of(static_cast<T*>(from.part(count_of(shape) * static_cast<std::int64_t>(sizeof(T)), call)),
                   shape);
}

/// Calls op(device, call) with the workspace that it asks for.
template <class Op> std::function<void(int)> with_workspace(Op op) {
  cuda_sizing sizing;
  op(sizing, 0);
  void* memory = nullptr;
  if (sizing.bytes > 0)
    check(cudaMalloc(&memory, static_cast<std::size_t>(sizing.bytes)));  // lives as long as the run
  const cuda device{nullptr, {memory, sizing.bytes}};
  return [=](int call) { op(device, call); };
}

template <class T> void add_logcumsumexp(const char* dtype, std::vector<std::int64_t> shape, int axis) {
  measure(
      {"logcumsumexp", "none", dtype, shape, axis, 2 * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
       with_workspace([=](auto& device, int call) {
         ops::logcumsumexp(device, operand<T>(pool_x, shape, call), axis, operand<T>(pool_y, shape, call));
       })});
}
template <class T>
void add_decayed_sum(const char* dtype, std::vector<std::int64_t> shape, int axis, bool scalar) {
  measure({"decayed_sum", scalar ? "scalar_decay" : "element_decay", dtype, shape, axis,
           (scalar ? 2 : 3) * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_workspace([=](auto& device, int call) {
             ops::decayed_sum(device, operand<T>(pool_x, shape, call),
                              scalar ? operand<T>(pool_decay, {}, 0) : operand<T>(pool_decay, shape, call),
                              axis, operand<T>(pool_y, shape, call));
           })});
}
template <class T> void add_chunk_cumsum(const char* dtype, std::vector<std::int64_t> shape, bool reverse) {
  ops::chunk_cumsum_options options;
  options.reverse = reverse;
  measure({"chunk_cumsum_decay", reverse ? "reverse" : "forward", dtype, shape, 1,
           2 * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_workspace([=](auto& device, int call) {
             ops::chunk_cumsum_decay(device, operand<T>(pool_x, shape, call), operand<T>(pool_y, shape, call),
                                     options);
           })});
}

// Backward: of x, and of decay where it has a decay for each element. pool_g holds the cotangents.
template <class T> ops::scan_gradients gradients_of(const std::vector<std::int64_t>& shape, int call) {
  ops::scan_gradients gradients;
  gradients.y_cotangent = operand<const T>(pool_g, shape, call);
  gradients.x_gradient = operand<T>(pool_y, shape, call);
  return gradients;
}
template <class T>
void add_logcumsumexp_backward(const char* dtype, std::vector<std::int64_t> shape, int axis) {
  measure({"logcumsumexp", "none", dtype, shape, axis,
           3 * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_workspace([=](auto& device, int call) {
             ops::logcumsumexp_backward(device, operand<T>(pool_x, shape, call), axis,
                                        gradients_of<T>(shape, call));
           }),
           "backward"});
}
template <class T>
void add_decayed_sum_backward(const char* dtype, std::vector<std::int64_t> shape, int axis) {
  measure({"decayed_sum", "element_decay", dtype, shape, axis,
           5 * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_workspace([=](auto& device, int call) {
             ops::decayed_sum_gradients gradients;
             static_cast<ops::scan_gradients&>(gradients) = gradients_of<T>(shape, call);
             gradients.decay_gradient = operand<T>(pool_z, shape, call);
             ops::decayed_sum_backward(device, operand<T>(pool_x, shape, call),
                                       operand<T>(pool_decay, shape, call), axis, gradients);
           }),
           "backward"});
}
template <class T> void add_chunk_cumsum_backward(const char* dtype, std::vector<std::int64_t> shape) {
  measure({"chunk_cumsum_decay", "forward", dtype, shape, 1,
           2 * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_workspace([=](auto& device, int call) {
             ops::chunk_cumsum_decay_backward(device, operand<T>(pool_g, shape, call),
                                              operand<T>(pool_y, shape, call));
           }),
           "backward"});
}

constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
inline constexpr auto long_sum = op<"long_sum">(out<"y">(n) = scan(plain_sum, over(n), x(n)));
inline constexpr auto long_log = op<"long_log">(out<"y">(n) = scan(log_add_exp, over(n), x(n)));

template <const program& P> void add_long_row(const char* op_name, std::int64_t length) {
  const std::int64_t bytes = workspace_bytes<P>(x = shape<float>(length), y = shape<float>(length));
  void* memory = nullptr;
  if (bytes > 0) check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
  const cuda device{nullptr, {memory, bytes}};
  measure({op_name, "none", "f32", {1, length}, 1, 2 * length * 4, [=](int call) {
             run<P>(device, x = view(static_cast<const float*>(pool_x.part(length * 4, call)), length),
                    y = view(static_cast<float*>(pool_y.part(length * 4, call)), length));
           }});
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]).rfind("--filter=", 0) == 0) filter = argv[i] + 9;
  pool_x.fill_with(true, -2.0F, 2.0F);
  pool_decay.fill_with(true, 0.8F, 1.0F);
  pool_y.fill_with(true, 0.0F, 0.0F);
  for (const std::int64_t length : {512, 2048, 8192, 65536})
    add_logcumsumexp<bfloat16>("bf16", {12, length > 8192 ? 2048 : 8192, length > 8192 ? length / 4 : length},
                               2);
  add_logcumsumexp<bfloat16>("bf16", {12, 8192, 2048}, 1);
  add_logcumsumexp<bfloat16>("bf16", {1, 1 << 20, 64}, 1);
  add_logcumsumexp<bfloat16>("bf16", {1, 65536, 1024}, 1);
  for (const int along : {2, 1})
    for (const bool scalar : {false, true})
      add_decayed_sum<bfloat16>("bf16", {12, 8192, 2048}, along, scalar);
  for (const bool reverse : {false, true})
    for (const std::int64_t width : {128, 1})
      for (const std::int64_t length : {8192, 32768})
        add_chunk_cumsum<bfloat16>("bf16", {16, length, 16, width}, reverse);
  pool_g.fill_with(true, -1.0F, 1.0F);
  pool_z.fill_with(true, 0.0F, 0.0F);
  for (const int along : {2, 1}) {
    add_logcumsumexp_backward<bfloat16>("bf16", {12, 8192, 2048}, along);
    add_decayed_sum_backward<bfloat16>("bf16", {12, 8192, 2048}, along);
  }
  add_chunk_cumsum_backward<bfloat16>("bf16", {16, 32768, 16, 128});
  pool_x.fill_with(false, -2.0F, 2.0F);
  add_logcumsumexp<float>("f32", {12, 8192, 2048}, 2);
  add_logcumsumexp<float>("f32", {12, 8192, 2048}, 1);
  add_long_row<long_sum>("plain_sum", std::int64_t{1} << 28);
  add_long_row<long_log>("log_add_exp", std::int64_t{1} << 28);
  return 0;
}
