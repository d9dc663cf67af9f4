#include <scandsl/ops/logcumsumexp.hpp>

#include "baseline.hpp"
#include "row.hpp"

namespace bench {
namespace {

using scandsl::array;

/// [12, n, 2048] along `axis`. Two units: x is read and y is written.
template <class T> void add_shape(std::int64_t n, int axis) {
  const std::int64_t batch = 12, width = 2048, count = batch * n * width;
  const auto bytes = 2 * count * static_cast<std::int64_t>(sizeof(T));
  row r{"logcumsumexp", "none", dtype_name<T>, {batch, n, width}, axis, "scandsl", bytes, {}};
  r.call = [=](int call) {
    scandsl::ops::logcumsumexp({}, array::of(memory<T>(pool::x, count, call), {batch, n, width}), axis,
                               array::of(memory<T>(pool::y, count, call), {batch, n, width}));
  };
  add(r);
  const baseline::extents extents =
      axis == 2 ? baseline::extents{batch * n, width, 1} : baseline::extents{batch, n, width};
  const auto add_loop = [&](const char* provider, baseline::order walk) {
    r.provider = provider;
    r.call = [=](int call) {
      baseline::logcumsumexp(extents, walk, memory<T>(pool::x, count, call), memory<T>(pool::y, count, call));
    };
    add(r);
  };
  add_loop("loop", baseline::order::columns);
  if (axis != 2) add_loop("loop_blocked", baseline::order::lanes);
}

}  // namespace

void add_logcumsumexp() {
  for (const int axis : {2, 1})
    for (const std::int64_t n : {512, 2048}) {
      add_shape<float>(n, axis);
      add_shape<scandsl::bfloat16>(n, axis);
    }
}

}  // namespace bench
