#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "scandsl/cuda.cuh"
#include "support/catch.hpp"

// Runs that follow one another on a stream: in a graph that is replayed, on memory that other runs have left,
// and the same run again. Sums of small integers are exact in float32, so that every value can be compared.
namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
inline constexpr auto replayed_sum = op<"replayed_sum">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n)));
inline constexpr auto replayed_log = op<"replayed_log">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n)));

void must(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

struct device_memory {
  void* data = nullptr;
  explicit device_memory(std::size_t bytes) { must(cudaMalloc(&data, bytes)); }
  ~device_memory() { cudaFree(data); }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  float* floats() const { return static_cast<float*>(data); }
};
struct stream {
  cudaStream_t on = nullptr;
  stream() { must(cudaStreamCreate(&on)); }
  ~stream() { cudaStreamDestroy(on); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
};

/// Small integers that depend on the round.
__host__ __device__ float element(std::int64_t i, unsigned round) {
  return static_cast<float>((static_cast<unsigned>(i) * 2654435761U + round * 40503U) >> 30);
}
__global__ void fill(float* to, std::int64_t count, const unsigned* round) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    to[i] = element(i, *round);
}
__global__ void advance(unsigned* round) { *round += 1; }

/// [rows, length] along its last dimension, or [length, rows] along its first.
struct shape_of_run {
  std::int64_t rows, length;
  bool strided;
  std::int64_t count() const { return rows * length; }
  dims along_b() const { return strided ? dims{{rows, 1}} : dims{{rows, length}}; }
  dims along_n() const { return strided ? dims{{length, rows}} : dims{{length, 1}}; }
  std::int64_t at(std::int64_t row, std::int64_t step) const {
    return strided ? step * rows + row : row * length + step;
  }
};
const shape_of_run shapes[] = {
    {1, 5000001, false}, {1, 262144, false}, {3, 140000, false}, {40, 20000, true}, {64, 8192, true}};

template <const program& P> std::int64_t bytes_for(const shape_of_run& s) {
  return workspace_bytes<P>(x = shape<float>(s.along_b(), s.along_n()),
                            y = shape<float>(s.along_b(), s.along_n()));
}
template <const program& P>
void launch(const shape_of_run& s, const device_memory& from, const device_memory& to,
            const scandsl::cuda& device) {
  run<P>(device, x = view(static_cast<const float*>(from.floats()), s.along_b(), s.along_n()),
         y = view(to.floats(), s.along_b(), s.along_n()));
}
template <const program& P>
void launch(const shape_of_run& s, const device_memory& from, const device_memory& to, cuda_workspace memory,
            cudaStream_t on) {
  launch<P>(s, from, to, scandsl::cuda{on, memory});
}

/// Memory that is allocated and freed in the order of a stream.
struct ordered_memory {
  cudaStream_t on;
  std::vector<void*> held = {};
  std::vector<std::int64_t> asked = {};

  static void* give(void* context, std::int64_t bytes) {
    auto& self = *static_cast<ordered_memory*>(context);
    self.asked.push_back(bytes);
    self.held.push_back(nullptr);
    must(cudaMallocAsync(&self.held.back(), static_cast<std::size_t>(bytes), self.on));
    return self.held.back();
  }
  ~ordered_memory() {
    for (void* const each : held) cudaFreeAsync(each, on);
  }
};

std::vector<float> fetch(const device_memory& from, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  must(cudaMemcpy(values.data(), from.data, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return values;
}
/// Whether all running sums of a round are right.
bool sums_are_right(const shape_of_run& s, const std::vector<float>& got, unsigned round) {
  for (std::int64_t row = 0; row < s.rows; ++row) {
    float sum = 0;
    for (std::int64_t step = 0; step < s.length; ++step) {
      sum += element(s.at(row, step), round);
      if (got[static_cast<std::size_t>(s.at(row, step))] != sum) return false;
    }
  }
  return true;
}
void fill_with_noise(const device_memory& memory, std::size_t bytes, unsigned seed) {
  std::vector<unsigned> noise(bytes / 4);
  std::mt19937 random(seed);
  for (unsigned& each : noise) each = static_cast<unsigned>(random());
  must(cudaMemcpy(memory.data, noise.data(), bytes, cudaMemcpyHostToDevice));
}
std::size_t largest_workspace() {
  std::int64_t most = 256;
  for (const shape_of_run& s : shapes)
    most = std::max({most, bytes_for<replayed_sum>(s), bytes_for<replayed_log>(s)});
  return static_cast<std::size_t>(most + 255) / 256 * 256;
}

}  // namespace

TEST_CASE("a graph replayed a thousand times on changing data", "[cuda][replay]") {
  const std::size_t bytes = largest_workspace();
  const device_memory memory(bytes), round(sizeof(unsigned));
  for (const shape_of_run& s : shapes) {
    INFO(s.rows << " x " << s.length << (s.strided ? " strided" : ""));
    const device_memory from(static_cast<std::size_t>(s.count()) * 4),
        to(static_cast<std::size_t>(s.count()) * 4);
    const stream queue;
    fill_with_noise(memory, bytes, 1);
    must(cudaMemset(round.data, 0, sizeof(unsigned)));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    must(cudaStreamBeginCapture(queue.on, cudaStreamCaptureModeThreadLocal));
    advance<<<1, 1, 0, queue.on>>>(static_cast<unsigned*>(round.data));
    fill<<<264, 256, 0, queue.on>>>(from.floats(), s.count(), static_cast<const unsigned*>(round.data));
    launch<replayed_sum>(s, from, to, {memory.data, static_cast<std::int64_t>(bytes)}, queue.on);
    must(cudaStreamEndCapture(queue.on, &graph));
    must(cudaGraphInstantiate(&replay, graph, 0));
    bool right = true;
    for (unsigned i = 1; i <= 1000; ++i) {
      must(cudaGraphLaunch(replay, queue.on));
      if (i % 50 != 0 && i > 3) continue;
      must(cudaStreamSynchronize(queue.on));
      right = right && sums_are_right(s, fetch(to, s.count()), i);
    }
    must(cudaGraphExecDestroy(replay));
    must(cudaGraphDestroy(graph));
    CHECK(right);
  }
}

TEST_CASE("three hundred launches in a row, on one workspace that every shape uses", "[cuda][replay]") {
  const std::size_t bytes = largest_workspace();
  const device_memory memory(bytes), round(sizeof(unsigned)), from(std::size_t{20000004}),
      to(std::size_t{20000004}), other(std::size_t{20000004});
  const stream queue;
  fill_with_noise(memory, bytes, 2);
  must(cudaMemset(round.data, 0, sizeof(unsigned)));
  for (int i = 0; i < 300; ++i) {
    const shape_of_run& s = shapes[i % 5];
    REQUIRE(s.count() * 4 <= 20000004);
    fill<<<264, 256, 0, queue.on>>>(from.floats(), s.count(), static_cast<const unsigned*>(round.data));
    launch<replayed_log>(s, from, other, {memory.data, static_cast<std::int64_t>(bytes)}, queue.on);
    launch<replayed_sum>(s, from, to, {memory.data, static_cast<std::int64_t>(bytes)}, queue.on);
    if (i < 290) continue;
    must(cudaStreamSynchronize(queue.on));
    INFO("launch " << i);
    CHECK(sums_are_right(s, fetch(to, s.count()), 0));
  }
}

TEST_CASE("a rerun gives the same bits", "[cuda][replay]") {
  const std::size_t bytes = largest_workspace();
  const device_memory memory(bytes);
  const stream queue;
  for (const shape_of_run& s : shapes) {
    INFO(s.rows << " x " << s.length << (s.strided ? " strided" : ""));
    const auto size = static_cast<std::size_t>(s.count()) * 4;
    const device_memory from(size), to(size);
    std::vector<float> values(static_cast<std::size_t>(s.count()));
    std::mt19937 random(3);
    std::normal_distribution<float> draw(0.0F, 4.0F);
    for (float& each : values) each = draw(random);
    must(cudaMemcpy(from.data, values.data(), size, cudaMemcpyHostToDevice));
    std::vector<float> sums, logs;
    bool same = true;
    for (unsigned i = 0; i < 20; ++i) {
      fill_with_noise(memory, bytes, i);
      launch<replayed_sum>(s, from, to, {memory.data, static_cast<std::int64_t>(bytes)}, queue.on);
      must(cudaStreamSynchronize(queue.on));
      const std::vector<float> now = fetch(to, s.count());
      launch<replayed_log>(s, from, to, {memory.data, static_cast<std::int64_t>(bytes)}, queue.on);
      must(cudaStreamSynchronize(queue.on));
      const std::vector<float> then = fetch(to, s.count());
      if (i == 0) {
        sums = now;
        logs = then;
      }
      same = same && std::memcmp(now.data(), sums.data(), size) == 0 &&
             std::memcmp(then.data(), logs.data(), size) == 0;
    }
    CHECK(same);
  }
}

TEST_CASE("a run asks for its workspace once, which goes back behind it", "[cuda][replay]") {
  const device_memory round(sizeof(unsigned)), from(std::size_t{20000004}), to(std::size_t{20000004});
  const stream queue;
  must(cudaMemset(round.data, 0, sizeof(unsigned)));
  for (int i = 0; i < 50; ++i) {
    const shape_of_run& s = shapes[i % 5];
    fill<<<264, 256, 0, queue.on>>>(from.floats(), s.count(), static_cast<const unsigned*>(round.data));
    std::vector<std::int64_t> asked;
    {
      ordered_memory memory{queue.on};
      launch<replayed_sum>(s, from, to, scandsl::cuda{queue.on, ordered_memory::give, &memory});
      asked = memory.asked;
    }
    const std::int64_t needed = bytes_for<replayed_sum>(s);
    CHECK(asked == (needed > 0 ? std::vector{needed} : std::vector<std::int64_t>{}));
    must(cudaStreamSynchronize(queue.on));
    INFO("launch " << i);
    CHECK(sums_are_right(s, fetch(to, s.count()), 0));
  }
}

TEST_CASE("without a workspace few lanes are walked", "[cuda][replay]") {
  const stream queue;
  const device_memory round(sizeof(unsigned));
  must(cudaMemset(round.data, 0, sizeof(unsigned)));
  for (const shape_of_run& s : shapes) {
    INFO(s.rows << " x " << s.length << (s.strided ? " strided" : ""));
    const device_memory from(static_cast<std::size_t>(s.count()) * 4),
        to(static_cast<std::size_t>(s.count()) * 4);
    REQUIRE(bytes_for<replayed_sum>(s) > 0);
    fill<<<264, 256, 0, queue.on>>>(from.floats(), s.count(), static_cast<const unsigned*>(round.data));
    launch<replayed_sum>(s, from, to, {}, queue.on);
    must(cudaStreamSynchronize(queue.on));
    CHECK(sums_are_right(s, fetch(to, s.count()), 0));
  }
}
