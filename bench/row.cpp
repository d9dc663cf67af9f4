#include "row.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "baseline.hpp"

namespace bench {
namespace {

std::vector<row> registered;

struct release {
  void operator()(void* p) const { std::free(p); }
};
using block = std::unique_ptr<void, release>;

constexpr std::size_t page = 4096;

template <class T> block make_pool(pool which) {
  block made(std::aligned_alloc(page, static_cast<std::size_t>(pool_bytes)));
  if (!made) throw std::bad_alloc();
  const std::int64_t count = pool_bytes / static_cast<std::int64_t>(sizeof(T));
  if (which == pool::decay)
    baseline::fill(static_cast<T*>(made.get()), count, 0.9F, 0.02F);
  else
    baseline::fill(static_cast<T*>(made.get()), count);
  return made;
}

template <class F> double seconds(F&& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Reads `bytes` and writes as many.
void copy(std::int64_t bytes, int call) {
  const std::int64_t floats = bytes / std::int64_t{sizeof(float)};
  baseline::copy(memory<float>(pool::x, floats, call), memory<float>(pool::y, floats, call),
                 static_cast<std::size_t>(bytes));
}

}  // namespace

template <class T> T* memory(pool which, std::int64_t count, int call) {
  static block pools[3];
  block& mine = pools[static_cast<int>(which)];
  if (!mine) mine = make_pool<T>(which);
  const auto bytes = count * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t aligned = (bytes + std::int64_t{page} - 1) / std::int64_t{page} * std::int64_t{page};
  if (aligned > pool_bytes) throw std::length_error("an operand is larger than bench::pool_bytes");
  const std::int64_t slots = pool_bytes / aligned;
  return reinterpret_cast<T*>(static_cast<std::byte*>(mine.get()) + call % slots * aligned);
}
template float* memory(pool, std::int64_t, int);
template scandsl::bfloat16* memory(pool, std::int64_t, int);

void fill_pools() {
  for (const pool each : {pool::x, pool::decay, pool::y}) {
    memory<float>(each, 1, 0);
    memory<scandsl::bfloat16>(each, 1, 0);
  }
}

std::string name_of(const row& r) {
  std::string name = r.op + "/" + r.variant + "/" + r.dtype + "/";
  for (std::size_t i = 0; i < r.shape.size(); ++i) name += (i > 0 ? "x" : "") + std::to_string(r.shape[i]);
  return name + "/axis" + std::to_string(r.axis) + "/" + r.provider;
}

const std::vector<row>& rows() { return registered; }

void add(const row& added) {
  const std::size_t index = registered.size();
  registered.push_back(added);
  // Each call is timed next to a copy, so that whatever else the machine does touches both alike.
  const auto run = [index, call = added.call, half = added.bytes / 2](benchmark::State& state) {
    int calls = 0;
    for (auto _ : state) {
      registered[index].copy_seconds.push_back(seconds([&] { copy(half, calls); }));
      registered[index].seconds.push_back(seconds([&] { call(calls); }));
      state.SetIterationTime(registered[index].seconds.back());
      ++calls;
    }
  };
  const bool is_ours = added.provider == "scandsl";
  benchmark::RegisterBenchmark(name_of(added).c_str(), run)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->MinTime(is_ours ? 0.1 : 0.05)
      ->Repetitions(is_ours ? 7 : 3);
}

}  // namespace bench
