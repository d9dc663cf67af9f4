#include <valgrind/callgrind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "chunk_cumsum_decay/program.hpp"
#include "decayed_sum/gradient_program.hpp"
#include "logcumsumexp/gradient_program.hpp"
#include "lrpe_cosine/gradient_program.hpp"
#include "md_lrpe_cosine/program.hpp"
#include "scandsl/scandsl.hpp"

// Runs CPU kernels on two sizes each under callgrind (cpu_instructions.py), which counts the instructions of
// each run by itself. One thread, float32.
namespace {

using namespace scandsl;
using namespace ops::names;

constexpr tensor<"dy"> dy;
constexpr tensor<"dx"> dx;
constexpr tensor<"ddecay"> ddecay;

/// Numbers between two limits.
std::vector<float> numbers(std::int64_t count, float low, float high) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = 12345;
  for (float& each : values) {
    state = state * 1664525U + 1013904223U;
    each = low + (high - low) * static_cast<float>(state >> 8) * 0x1p-24F;
  }
  return values;
}

/// Calls run once for memory to be there, and once to be counted.
template <class F> void count(const std::string& name, std::int64_t elements, F&& run) {
  const std::string label = name + " " + std::to_string(elements);
  run();
  CALLGRIND_ZERO_STATS;
  run();
  CALLGRIND_DUMP_STATS_AT(label.c_str());
}

const cpu one_thread{1};

/// [lanes, n] with the scanned axis contiguous, or [n, lanes].
void count_scans(bool contiguous, std::int64_t n) {
  const std::int64_t lanes = contiguous ? 32 : 256, elements = lanes * n;
  const std::string where = contiguous ? " rows" : " strips";
  const std::vector<float> a = numbers(elements, -2, 2), g = numbers(elements, -1, 1),
                           decays = numbers(elements, 0.8F, 1);
  std::vector<float> out(a.size()), more(a.size());
  const auto at = [&](auto& values) {
    return contiguous ? view(values.data(), dim{lanes, n}, dim{n, 1})
                      : view(values.data(), dim{lanes, 1}, dim{n, lanes});
  };
  count("logcumsumexp" + where, elements, [&] {
    run<ops::logcumsumexp_program::program>(one_thread, x = at(a), y = at(out), reverse = false,
                                            exclusive = false);
  });
  count("logcumsumexp backward" + where, elements, [&] {
    run<ops::logcumsumexp_program::gradient_program>(one_thread, x = at(a), dy = at(g), dx = at(out),
                                                     reverse = false, exclusive = false);
  });
  count("decayed_sum" + where, elements, [&] {
    run<ops::decayed_sum_program::program>(one_thread, x = at(a), decay = at(decays), y = at(out),
                                           reverse = false, exclusive = false,
                                           ops::decayed_sum_program::log_decay = false);
  });
  count("decayed_sum backward" + where, elements, [&] {
    run<ops::decayed_sum_program::gradient_per_element>(
        one_thread, x = at(a), decay = at(decays), dy = at(g), dx = at(out), ddecay = at(more),
        reverse = false, exclusive = false, ops::decayed_sum_program::log_decay = false);
  });
  count("chunk_cumsum_decay" + where, elements, [&] {
    namespace op = ops::chunk_cumsum_decay_program;
    run<op::program>(one_thread, op::log_decay = at(a), y = at(out), reverse = false, exclusive = false,
                     op::chunk_size = 128);
  });
}

void count_encoding(std::int64_t n) {
  constexpr std::int64_t heads = 2, features = 128;
  const std::vector<float> a = numbers(n * heads * features, -2, 2),
                           angles = numbers(heads * features, 0.01F, 1);
  std::vector<float> out(2 * a.size());
  count("lrpe_cosine", n * heads * features, [&] {
    namespace op = ops::lrpe_cosine_program;
    run<op::plain>(one_thread, x = view(a.data(), 1, n, heads, features),
                   op::theta = view(angles.data(), heads, features), op::offset = 0,
                   y = view(out.data(), 1, n, heads, 2, features));
  });
}

/// Rows of 32 tokens, where positions start anew.
void count_grid(std::int64_t n) {
  namespace op = ops::md_lrpe_cosine_program;
  constexpr std::int64_t heads = 2, features = 128, width = 32;
  const std::vector<float> a = numbers(n * heads * features, -2, 2),
                           angles = numbers(heads * features / 2, 0.01F, 1);
  std::vector<float> out(2 * a.size());
  const std::int64_t sizes[] = {n / width, width}, strides[] = {width, 1};
  count("md_lrpe_cosine", n * heads * features, [&] {
    run<op::program>(one_thread, x = view(a.data(), 1, heads, n, features),
                     op::theta = view(angles.data(), heads, features / 2), op::sizes = view(sizes, 2),
                     op::strides = view(strides, 2), op::extra_tokens = 0,
                     y = view(out.data(), 1, heads, n, 2, features));
  });
}

}  // namespace

int main() {
  for (const bool contiguous : {true, false})
    for (const std::int64_t n : {1024, 2048}) count_scans(contiguous, n);
  for (const std::int64_t n : {256, 512}) {
    count_encoding(n);
    count_grid(n);
  }
  return 0;
}
