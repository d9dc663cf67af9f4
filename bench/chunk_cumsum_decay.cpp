#include <scandsl/ops/chunk_cumsum_decay.hpp>

#include "baseline.hpp"
#include "row.hpp"

namespace bench {
namespace {

using scandsl::array;

/// [4, n, 16, d] along axis 1, chunks of 128. Two units: the input is read and the output is written.
template <class T> void add_shape(std::int64_t n, std::int64_t d, bool reverse) {
  const std::int64_t batch = 4, heads = 16, chunk = 128, count = batch * n * heads * d;
  const auto bytes = 2 * count * static_cast<std::int64_t>(sizeof(T));
  row r{"chunk_cumsum_decay",
        reverse ? "reverse" : "forward",
        dtype_name<T>,
        {batch, n, heads, d},
        1,
        "scandsl",
        bytes,
        {}};
  r.call = [=](int call) {
    scandsl::ops::chunk_cumsum_options options;
    options.chunk_size = chunk;
    options.reverse = reverse;
    scandsl::ops::chunk_cumsum_decay({}, array::of(memory<T>(pool::x, count, call), {batch, n, heads, d}),
                                     array::of(memory<T>(pool::y, count, call), {batch, n, heads, d}),
                                     options);
  };
  add(r);
  const auto add_loop = [&](const char* provider, baseline::order walk) {
    r.provider = provider;
    r.call = [=](int call) {
      baseline::chunk_cumsum({batch, n, heads * d}, walk, chunk, reverse, memory<T>(pool::x, count, call),
                             memory<T>(pool::y, count, call));
    };
    add(r);
  };
  add_loop("loop", baseline::order::columns);
  add_loop("loop_blocked", baseline::order::lanes);
}

}  // namespace

void add_chunk_cumsum_decay() {
  for (const bool reverse : {false, true})
    for (const std::int64_t d : {1, 128})
      for (const std::int64_t n : {2048, 8192}) {
        add_shape<float>(n, d, reverse);
        add_shape<scandsl::bfloat16>(n, d, reverse);
      }
}

}  // namespace bench
