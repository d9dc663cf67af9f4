#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "cuda/device_memory.hpp"
#include "scandsl/ops/decayed_sum.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "support/catch.hpp"
#include "support/memory.hpp"

// Strips that keep pace (exec/cuda/pace.cuh): with a workspace they do, without one they do not, and what
// they compute is the same, bit by bit.
namespace {

using namespace scandsl;
using support::memory_of, support::must;

/// [outer, n, inner] in bfloat16, scanned along n: strips of 32 lanes, of tiles of 256 steps or 128, eleven
/// for every four multiprocessors.
struct operands {
  static constexpr std::int64_t n = 4096 + 77, inner = 512, strips = inner / 32;
  std::int64_t outer = 0;
  memory_of<bfloat16> x, decay, dy, y, dx, ddecay;
  memory_of<std::uint64_t> workspace;
  memory_of<std::byte> carries;

  /// Wide: of every third strip a tile is no one frame, so that it leaves the kernel's loop there.
  explicit operands(bool wide) {
    int device = 0, multiprocessors = 0;
    must(cudaGetDevice(&device));
    must(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    outer = (11 * multiprocessors + 4 * strips - 1) / (4 * strips);
    const auto count = static_cast<std::size_t>(outer * n * inner);
    for (memory_of<bfloat16>* each : {&x, &decay, &dy, &y, &dx, &ddecay}) each->resize(count);
    std::minstd_rand random;
    const auto unit = [&] {
      return static_cast<float>(random()) / static_cast<float>(std::minstd_rand::max());
    };
    for (std::size_t i = 0; i < count; ++i) {
      x[i] = bfloat16(4 * unit() - 2);
      decay[i] = bfloat16(0.8F + 0.2F * unit());
      dy[i] = bfloat16(2 * unit() - 1);
    }
    if (wide)
      for (std::int64_t i = 0; i < outer; ++i)
        for (std::int64_t lane = 0; lane < inner; lane += 3 * 32)
          x[static_cast<std::size_t>((i * n + 300 + 5 * lane) * inner + lane)] = bfloat16(900.0F);
  }
  array view(memory_of<bfloat16>& memory) const { return array::of(memory.data(), {outer, n, inner}); }
};

struct log_sums {
  template <class Device> static void run(Device& device, operands& o) {
    ops::logcumsumexp(device, o.view(o.x), 1, o.view(o.y));
  }
};
struct decayed_sums {
  template <class Device> static void run(Device& device, operands& o) {
    ops::decayed_sum(device, o.view(o.x), o.view(o.decay), 1, o.view(o.y));
  }
};
/// ... and the gradients of both operands, which begin with what that left.
struct decayed_sums_and_gradients {
  template <class Device> static void run(Device& device, operands& o) {
    decayed_sums::run(device, o);
    ops::decayed_sum_gradients gradients;
    gradients.y_cotangent = o.view(o.dy);
    gradients.x_gradient = o.view(o.dx);
    gradients.decay_gradient = o.view(o.ddecay);
    ops::decayed_sum_backward(device, o.view(o.x), o.view(o.decay), 1, gradients);
  }
};

/// What a workspace may hold before: nothing, anything, or what a run that was cut off has left there.
constexpr std::uint64_t before[] = {0, ~std::uint64_t{0}, 0x73636e6400000000ULL | 12345};

template <class Op> void compare(bool wide) {
  operands o(wide);
  cuda_sizing size{.with_carries = true};
  Op::run(size, o);
  REQUIRE(size.bytes >= o.outer * 128);
  o.carries.resize(static_cast<std::size_t>(size.carry_bytes));
  const auto results = [&](cuda_workspace workspace) {
    for (memory_of<bfloat16>* each : {&o.y, &o.dx, &o.ddecay})
      std::fill(each->begin(), each->end(), bfloat16(77.0F));
    std::fill(o.carries.begin(), o.carries.end(), std::byte{0});
    cuda device{nullptr, workspace};
    if (size.carry_bytes > 0) device.carries = {o.carries.data(), size.carry_bytes};
    Op::run(device, o);
    must(cudaDeviceSynchronize());
    std::vector<bfloat16> all(o.y.begin(), o.y.end());
    all.insert(all.end(), o.dx.begin(), o.dx.end());
    all.insert(all.end(), o.ddecay.begin(), o.ddecay.end());
    return std::pair(all, std::vector<std::byte>(o.carries.begin(), o.carries.end()));
  };
  const auto alone = results({});
  for (const std::uint64_t word : before) {
    CAPTURE(word, wide);
    o.workspace.assign(static_cast<std::size_t>(size.bytes / 8), word);
    for (int turn = 0; turn < 2; ++turn) {
      const auto paced = results({o.workspace.data(), size.bytes});
      CHECK(std::memcmp(alone.first.data(), paced.first.data(), alone.first.size() * sizeof(bfloat16)) == 0);
      CHECK(alone.second == paced.second);
      if (word == before[2] && turn == 0) continue;  // more was counted than there is
      bool clean = true;
      for (std::int64_t i = 0; i < o.outer; ++i)
        clean = clean && o.workspace[static_cast<std::size_t>(16 * i)] == 0;
      CHECK(clean);
    }
  }
}

}  // namespace

TEST_CASE("strips that keep pace compute what they compute without", "[cuda][pace]") {
  compare<log_sums>(false);
  compare<decayed_sums>(false);
  compare<decayed_sums_and_gradients>(false);
}
TEST_CASE("strips that keep pace, for compute-sanitizer", "[.sanitize]") { compare<log_sums>(false); }
TEST_CASE("strips that leave a tile to others hold up nobody", "[cuda][pace]") { compare<log_sums>(true); }
