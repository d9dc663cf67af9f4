#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device_memory.hpp"
#include "scandsl/cuda.cuh"
#include "support/catch.hpp"

// Runs that follow one another on a stream: in a graph that is replayed, on memory that other runs have left,
// and the same run again. What comes out of each step is chosen first and the operands follow from it, so
// that the GPU itself can compare every value of every run.
namespace {

using namespace scandsl;
using support::device_memory, support::must;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"decay"> decay;
constexpr tensor<"y"> y;
inline constexpr auto replayed_sum = op<"replayed_sum">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n)));
inline constexpr auto replayed_log = op<"replayed_log">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n)));
inline constexpr auto replayed_decay =
    op<"replayed_decay">(out<"y">(b, n) = scan(decayed_sum, over(n), decay(b, n), x(b, n)));
constexpr axis<"d"> d;
/// A sum in parts, which another kernel adds up.
inline constexpr auto replayed_total =
    op<"replayed_total">(out<"y">(d) = sum(over(b), sum(over(n), x(b, n, d))));
/// Numbers less the exponential of the largest, which is then negligible. Two kernels: the second begins
/// while the first one ends, and reads x before it waits for that, with whose result it does something once a
/// lane.
inline constexpr program settled = reductions_apart(
    op<"settled">(out<"y">(b, n, d) = x(b, n, d) - exp(reduce(maximum, over(n), x(b, n, d)))));
static_assert(kernels_of<settled>.programs.count == 2 && kernel_schedule<settled, 1>.axis >= 0);
/// ... of three, of which the second reads nothing that another left.
constexpr integer_tensor<"mask"> mask;
inline constexpr auto masked_mean = op<"masked_mean">(
    out<"y">(b, d) = sum(over(n), x(b, n, d) * (1.0 * mask(b, n))) / sum(over(n), 1.0 * mask(b, n)));
static_assert(kernels_of<masked_mean>.programs.count == 3);
enum class scan_kind { sum, log, decay };
constexpr scan_kind every_scan[] = {scan_kind::sum, scan_kind::log, scan_kind::decay};

struct stream {
  cudaStream_t on = nullptr;
  stream() { must(cudaStreamCreate(&on)); }
  ~stream() { cudaStreamDestroy(on); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
};

/// [rows, length] along its last dimension, or [length, rows] along its first.
struct shape_of_run {
  std::int64_t rows, length;
  bool strided;
  __host__ __device__ std::int64_t count() const { return rows * length; }
  dims along_b() const { return strided ? dims{{rows, 1}} : dims{{rows, length}}; }
  dims along_n() const { return strided ? dims{{length, rows}} : dims{{length, 1}}; }
  __host__ __device__ std::int64_t step_of(std::int64_t i) const { return strided ? i / rows : i % length; }
  __host__ __device__ std::int64_t row_of(std::int64_t i) const { return strided ? i % rows : i / length; }
};
constexpr shape_of_run shapes[] = {
    {1, 5000001, false}, {1, 262144, false}, {3, 140000, false}, {40, 20000, true}, {64, 16384, true}};
constexpr std::size_t most_bytes = 5000001 * sizeof(float);

/// Numbers from 0 to 3, others in each round.
__device__ float drawn(std::int64_t i, unsigned round) {
  return static_cast<float>((static_cast<unsigned>(i) * 2654435761U + round * 2246822519U) >> 30);
}
/// The operands of one step and what comes out.
struct step_values {
  float x, decay, y;
};
__device__ step_values values_at(scan_kind scan, const shape_of_run& s, std::int64_t i, unsigned round) {
  const std::int64_t step = s.step_of(i), of_row = s.row_of(i) * s.length;
  const auto at = [&](std::int64_t t) { return drawn(of_row + t, round); };
  if (scan == scan_kind::sum) return {step > 0 ? at(step) - at(step - 1) : at(step), 0, at(step)};
  if (scan == scan_kind::log) {
    // The sum of exponentials is 4 a step and a number of 0 to 3, all times another factor in each round.
    const float factor = static_cast<float>(round * 2654435769U >> 26) * 0.125F;
    const auto sum = [&](std::int64_t t) { return 4 * static_cast<double>(t + 1) + at(t); };
    return {logf(static_cast<float>(step > 0 ? sum(step) - sum(step - 1) : sum(step))) + factor, 0,
            static_cast<float>(log(sum(step))) + factor};
  }
  // Decays of 1 and -1. In some sections of some rounds 2, over sums that are 0: their product is infinite.
  constexpr std::int64_t section = 3000;
  const bool grows = round % 4 == 1 && !s.strided && s.count() < 1000000;
  const auto is_hot = [&](std::int64_t t) { return grows && (t / section + round / 4) % 16 == 3; };
  const auto out = [&](std::int64_t t) { return is_hot(t) || t % section == section - 1 ? 0 : at(t); };
  const float factor = is_hot(step) ? 2.0F : drawn(of_row + step, round + 2) < 2 ? 1.0F : -1.0F;
  return {out(step) - (step > 0 ? factor * out(step - 1) : 0), factor, out(step)};
}

/// The sum of all steps of all sequences, of small integers: it is exact.
struct total_case {
  static constexpr std::int64_t b = 12, n = 2048, d = 64, count = b * n * d;
};
__global__ void fill_total(float* to, float* sums, const unsigned* round) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
       i < total_case::count; i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    to[i] = drawn(i, *round);
  if (blockIdx.x == 0 && threadIdx.x < total_case::d) sums[threadIdx.x] = -77;
}
__global__ void count_wrong_totals(const float* sums, const unsigned* round, unsigned* wrong) {
  float right = 0;
  for (std::int64_t i = threadIdx.x; i < total_case::count; i += total_case::d) right += drawn(i, *round);
  if (sums[threadIdx.x] != right) atomicAdd(wrong, 1U);
}

/// Of sequences that have a 3 each.
__global__ void count_wrong_settled(const float* of, const unsigned* round, unsigned* wrong) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
       i < total_case::count; i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    if (!(fabsf(of[i] - (drawn(i, *round) - 20.0855369F)) <= 1e-5F)) atomicAdd(wrong, 1U);
}
/// Sums of small integers, and a power of two to divide them by: exact.
__global__ void count_wrong_means(const float* means, const unsigned* round, unsigned* wrong) {
  using of = total_case;
  const std::int64_t sequence = blockIdx.x, lane = threadIdx.x;
  float right = 0;
  for (std::int64_t i = 0; i < of::n; ++i) right += drawn((sequence * of::n + i) * of::d + lane, *round);
  if (means[sequence * of::d + lane] != right / of::n) atomicAdd(wrong, 1U);
}

struct memory_of_run {
  float *x = nullptr, *decay = nullptr, *y = nullptr;
};
__global__ void advance(unsigned* round) { *round += 1; }
__global__ void fill(scan_kind scan, memory_of_run to, shape_of_run s, const unsigned* round) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < s.count();
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    const step_values values = values_at(scan, s, i, *round);
    to.x[i] = values.x;
    to.decay[i] = values.decay;
    to.y[i] = -77;
  }
}
__global__ void count_wrong(scan_kind scan, memory_of_run of, shape_of_run s, const unsigned* round,
                            unsigned* wrong) {
  // Sums of small integers are exact. Logarithms are of sums of up to 5,000,001 terms, in 1,221 tiles.
  const float allowed = scan == scan_kind::log ? 5e-4F : 0;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < s.count();
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    if (!(fabsf(of.y[i] - values_at(scan, s, i, *round).y) <= allowed)) atomicAdd(wrong, 1U);
}

template <class Device>
void launch(scan_kind scan, const shape_of_run& s, const memory_of_run& m, Device& device) {
  const auto in = view(static_cast<const float*>(m.x), s.along_b(), s.along_n());
  const auto by = view(static_cast<const float*>(m.decay), s.along_b(), s.along_n());
  const auto to = view(m.y, s.along_b(), s.along_n());
  if (scan == scan_kind::sum) run<replayed_sum>(device, x = in, y = to);
  if (scan == scan_kind::log) run<replayed_log>(device, x = in, y = to);
  if (scan == scan_kind::decay) run<replayed_decay>(device, decay = by, x = in, y = to);
}
std::int64_t bytes_for(scan_kind scan, const shape_of_run& s) {
  cuda_sizing sizing;
  launch(scan, s, {}, sizing);
  return sizing.bytes;
}

/// Memory for runs of any shape, and rounds of them: other data in each.
class rounds {
public:
  const stream queue;

  rounds() { must(cudaMemset(counts_.data, 0, 2 * sizeof(unsigned))); }
  memory_of_run memory() const { return {x_.floats(), decay_.floats(), y_.floats()}; }
  /// One run after new data, and what is wrong with it is counted. All of that on the queue.
  template <class Device> void take(scan_kind scan, const shape_of_run& s, Device& device) const {
    const memory_of_run m = memory();
    advance<<<1, 1, 0, queue.on>>>(round());
    fill<<<264, 256, 0, queue.on>>>(scan, m, s, round());
    launch(scan, s, m, device);
    count_wrong<<<264, 256, 0, queue.on>>>(scan, m, s, round(), round() + 1);
    must(cudaGetLastError());
  }
  /// Waits. Rounds so far, and values that were wrong in any of them.
  std::pair<unsigned, unsigned> counts() const {
    must(cudaStreamSynchronize(queue.on));
    std::pair<unsigned, unsigned> result;
    must(cudaMemcpy(&result.first, round(), sizeof(unsigned), cudaMemcpyDeviceToHost));
    must(cudaMemcpy(&result.second, round() + 1, sizeof(unsigned), cudaMemcpyDeviceToHost));
    return result;
  }

private:
  const device_memory x_{most_bytes}, decay_{most_bytes}, y_{most_bytes}, counts_{2 * sizeof(unsigned)};

  unsigned* round() const { return static_cast<unsigned*>(counts_.data); }
};

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

/// Captures what `take` does on a stream, and runs it there so often. Waits.
template <class Take> void replay(const stream& queue, int times, const Take& take) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t captured = nullptr;
  must(cudaStreamBeginCapture(queue.on, cudaStreamCaptureModeThreadLocal));
  take();
  must(cudaStreamEndCapture(queue.on, &graph));
  must(cudaGraphInstantiate(&captured, graph, 0));
  for (int i = 0; i < times; ++i) must(cudaGraphLaunch(captured, queue.on));
  must(cudaStreamSynchronize(queue.on));
  must(cudaGraphExecDestroy(captured));
  must(cudaGraphDestroy(graph));
}

/// So many rounds from a graph and so many more, of which none may count anything as wrong. `round`: their
/// number and, behind it, what was wrong, on the GPU.
template <class Take>
void check_rounds(const stream& queue, const unsigned* round, int replayed, int launched, const Take& take) {
  replay(queue, replayed, take);
  for (int i = 0; i < launched; ++i) take();
  must(cudaStreamSynchronize(queue.on));
  unsigned result[2];
  must(cudaMemcpy(result, round, sizeof result, cudaMemcpyDeviceToHost));
  CHECK(result[0] == static_cast<unsigned>(replayed + launched));
  CHECK(result[1] == 0);
}

std::vector<float> fetch(const device_memory& from, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  must(cudaMemcpy(values.data(), from.data, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return values;
}
void fill_with_noise(const device_memory& memory, std::size_t bytes, unsigned seed) {
  std::vector<unsigned> noise(bytes / 4);
  std::mt19937 random(seed);
  for (unsigned& each : noise) each = static_cast<unsigned>(random());
  must(cudaMemcpy(memory.data, noise.data(), bytes, cudaMemcpyHostToDevice));
}
/// For any shape and scan, full of noise.
struct noisy_workspace {
  std::int64_t bytes = 256;
  device_memory memory;

  noisy_workspace() : bytes(most()), memory(static_cast<std::size_t>(bytes)) {
    fill_with_noise(memory, static_cast<std::size_t>(bytes), 1);
  }
  cuda_workspace given() const { return {memory.data, bytes}; }

private:
  static std::int64_t most() {
    std::int64_t most = 256;
    for (const shape_of_run& s : shapes)
      for (const scan_kind scan : every_scan) most = std::max(most, bytes_for(scan, s));
    return (most + 255) / 256 * 256;
  }
};

std::string text_of(scan_kind scan, const shape_of_run& s) {
  return "scan " + std::to_string(static_cast<int>(scan)) + ", " + std::to_string(s.rows) + " x " +
         std::to_string(s.length) + (s.strided ? " strided" : "");
}

}  // namespace

TEST_CASE("a graph replayed a thousand times on changing data", "[cuda][replay]") {
  const noisy_workspace workspace;
  for (const scan_kind scan : every_scan)
    for (const shape_of_run& s : shapes) {
      INFO(text_of(scan, s));
      REQUIRE(bytes_for(scan, s) > 0);
      const rounds taken;
      const scandsl::cuda device{taken.queue.on, workspace.given()};
      replay(taken.queue, 1000, [&] { taken.take(scan, s, device); });
      const auto [count, wrong] = taken.counts();
      CHECK(count == 1000);
      CHECK(wrong == 0);
    }
}

TEST_CASE("sums whose parts another kernel adds up, replayed on changing data", "[cuda][replay]") {
  const auto memory = view(static_cast<const float*>(nullptr), total_case::b, total_case::n, total_case::d);
  cuda_sizing sizing;
  run<replayed_total>(sizing, x = memory, y = view(static_cast<float*>(nullptr), total_case::d));
  REQUIRE(sizing.bytes > 0);
  const device_memory from(total_case::count * sizeof(float)), to(total_case::d * sizeof(float)),
      workspace(static_cast<std::size_t>(sizing.bytes)), counts(2 * sizeof(unsigned));
  fill_with_noise(workspace, static_cast<std::size_t>(sizing.bytes), 5);
  must(cudaMemset(counts.data, 0, 2 * sizeof(unsigned)));
  unsigned* const round = static_cast<unsigned*>(counts.data);
  const stream queue;
  const scandsl::cuda device{queue.on, cuda_workspace{workspace.data, sizing.bytes}};
  const auto take = [&] {
    advance<<<1, 1, 0, queue.on>>>(round);
    fill_total<<<264, 256, 0, queue.on>>>(from.floats(), to.floats(), round);
    for (int i = 0; i < 2; ++i)  // the second run's parts lie where the first one's are added up
      run<replayed_total>(
          device,
          x = view(static_cast<const float*>(from.floats()), total_case::b, total_case::n, total_case::d),
          y = view(to.floats(), total_case::d));
    count_wrong_totals<<<1, total_case::d, 0, queue.on>>>(to.floats(), round, round + 1);
    must(cudaGetLastError());
  };
  check_rounds(queue, round, 200, 100, take);
}

TEST_CASE("runs of several kernels, each on what the last one wrote", "[cuda][replay]") {
  using of = total_case;
  const auto in = [](const device_memory& memory) {
    return view(static_cast<const float*>(memory.floats()), of::b, of::n, of::d);
  };
  const auto out = [](const device_memory& memory) { return view(memory.floats(), of::b, of::n, of::d); };
  constexpr std::size_t bytes = of::count * sizeof(float);
  const device_memory first(bytes), second(bytes), third(bytes), sums(of::d * sizeof(float)),
      means(of::b * of::d * sizeof(float)), ones(of::b * of::n * sizeof(std::int32_t)),
      counts(2 * sizeof(unsigned));
  const auto all_ones = view(static_cast<const std::int32_t*>(ones.data), of::b, of::n);
  const auto to_means = view(means.floats(), of::b, of::d);
  cuda_sizing sizing, of_means;
  run<settled>(sizing, x = in(first), y = out(second));
  run<masked_mean>(of_means, x = in(first), mask = all_ones, y = to_means);
  REQUIRE((sizing.bytes > 0 && of_means.bytes > 0));
  const std::int64_t room = std::max(sizing.bytes, of_means.bytes);
  const device_memory workspace(static_cast<std::size_t>(room));
  must(cudaMemset(counts.data, 0, 2 * sizeof(unsigned)));
  const std::vector<std::int32_t> host_ones(of::b * of::n, 1);
  must(cudaMemcpy(ones.data, host_ones.data(), of::b * of::n * sizeof(std::int32_t), cudaMemcpyHostToDevice));
  unsigned* const round = static_cast<unsigned*>(counts.data);
  const stream queue;
  const scandsl::cuda device{queue.on, cuda_workspace{workspace.data, room}};
  const auto check = [&](const device_memory& memory) {
    count_wrong_settled<<<264, 256, 0, queue.on>>>(memory.floats(), round, round + 1);
  };
  const auto take = [&] {
    advance<<<1, 1, 0, queue.on>>>(round);
    fill_total<<<264, 256, 0, queue.on>>>(first.floats(), sums.floats(), round);
    for (const auto* each : {&second, &third})
      must(cudaMemsetAsync(each->data, 0xff, bytes, queue.on));  // NaN
    run<masked_mean>(device, x = in(first), mask = all_ones, y = to_means);
    run<settled>(device, x = in(first), y = out(second));
    run<settled>(device, x = in(second), y = out(third));
    run<settled>(device, x = in(third), y = out(first));
    for (const auto* each : {&first, &second, &third}) check(*each);
    count_wrong_means<<<of::b, of::d, 0, queue.on>>>(means.floats(), round, round + 1);
    must(cudaGetLastError());
  };
  check_rounds(queue, round, 100, 100, take);
}

TEST_CASE("three hundred launches in a row, on one workspace that every shape uses", "[cuda][replay]") {
  const noisy_workspace workspace;
  const rounds taken;
  const scandsl::cuda device{taken.queue.on, workspace.given()};
  for (int i = 0; i < 300; ++i)
    for (const scan_kind scan : every_scan) taken.take(scan, shapes[i % 5], device);
  const auto [count, wrong] = taken.counts();
  CHECK(count == 900);
  CHECK(wrong == 0);
}

TEST_CASE("a rerun gives the same bits", "[cuda][replay]") {
  const noisy_workspace workspace;
  const stream queue;
  const scandsl::cuda device{queue.on, workspace.given()};
  for (const shape_of_run& s : shapes) {
    INFO(s.rows << " x " << s.length << (s.strided ? " strided" : ""));
    const auto size = static_cast<std::size_t>(s.count()) * 4;
    const device_memory from(size), factors(size), to(size);
    std::vector<float> values(static_cast<std::size_t>(s.count()));
    std::mt19937 random(3);
    std::normal_distribution<float> draw(0.0F, 4.0F);
    for (float& each : values) each = draw(random);
    must(cudaMemcpy(from.data, values.data(), size, cudaMemcpyHostToDevice));
    for (float& each : values) each = 1 - 0.01F * std::fabs(each);
    must(cudaMemcpy(factors.data, values.data(), size, cudaMemcpyHostToDevice));
    for (const scan_kind scan : every_scan) {
      std::vector<float> first;
      bool same = true;
      for (unsigned i = 0; i < 20; ++i) {
        fill_with_noise(workspace.memory, static_cast<std::size_t>(workspace.bytes), i);
        launch(scan, s, {from.floats(), factors.floats(), to.floats()}, device);
        must(cudaStreamSynchronize(queue.on));
        const std::vector<float> now = fetch(to, s.count());
        if (i == 0) first = now;
        same = same && std::memcmp(now.data(), first.data(), size) == 0;
      }
      CHECK(same);
    }
  }
}

TEST_CASE("a run asks for its workspace once, which goes back behind it", "[cuda][replay]") {
  const rounds taken;
  for (int i = 0; i < 50; ++i) {
    const scan_kind scan = every_scan[i % 3];
    const shape_of_run& s = shapes[i % 5];
    std::vector<std::int64_t> asked;
    {
      ordered_memory memory{taken.queue.on};
      const scandsl::cuda device{taken.queue.on, ordered_memory::give, &memory};
      taken.take(scan, s, device);
      asked = memory.asked;
    }
    const std::int64_t needed = bytes_for(scan, s);
    CHECK(asked == (needed > 0 ? std::vector{needed} : std::vector<std::int64_t>{}));
  }
  CHECK(taken.counts() == std::pair(50U, 0U));
}

TEST_CASE("without a workspace few lanes are walked", "[cuda][replay]") {
  for (const scan_kind scan : every_scan)
    for (const shape_of_run& s : shapes) {
      INFO(text_of(scan, s));
      REQUIRE(bytes_for(scan, s) > 0);
      const rounds taken;
      const scandsl::cuda device{taken.queue.on};
      taken.take(scan, s, device);
      CHECK(taken.counts() == std::pair(1U, 0U));
    }
}
