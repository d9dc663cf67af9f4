#include "row.hpp"

#include <benchmark/benchmark.h>

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

std::string name_of(const row& r) {
  std::string name = r.op + "/" + r.variant + "/" + r.dtype + "/";
  for (std::size_t i = 0; i < r.shape.size(); ++i) name += (i > 0 ? "x" : "") + std::to_string(r.shape[i]);
  return name + "/axis" + std::to_string(r.axis) + "/" + r.provider;
}

const std::vector<row>& rows() { return registered; }

void add(const row& added) {
  const bool is_loop = added.provider != "scandsl" && added.provider != "copy";
  registered.push_back(added);
  benchmark::RegisterBenchmark(name_of(added).c_str(),
                               [call = added.call](benchmark::State& state) {
                                 int calls = 0;
                                 for (auto _ : state) call(calls++);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond)
      ->MinTime(is_loop ? 0.02 : 0.1)
      ->Repetitions(is_loop ? 3 : 7);
}

void add_copy(row described) {
  const std::int64_t half = described.bytes / 2;
  described.provider = "copy";
  described.call = [half](int call) {
    const std::int64_t floats = half / std::int64_t{sizeof(float)};
    baseline::copy(memory<float>(pool::x, floats, call), memory<float>(pool::y, floats, call),
                   static_cast<std::size_t>(half));
  };
  add(described);
}

}  // namespace bench
