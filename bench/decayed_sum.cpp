#include <scandsl/ops/decayed_sum.hpp>

#include "baseline.hpp"
#include "row.hpp"

namespace bench {
namespace {

using scandsl::array;

constexpr std::int64_t batch = 12, length = 2048, width = 2048, count = batch * length * width;
constexpr float one_decay = 0.9F;

template <class T> array whole(pool which, int call) {
  return array::of(memory<T>(which, count, call), {batch, length, width});
}

/// [12, 2048, 2048] along `axis`. Three units with a decay for each element, two with one decay for all.
template <class T> void add_shape(int axis, bool scalar) {
  const auto bytes = (scalar ? 2 : 3) * count * static_cast<std::int64_t>(sizeof(T));
  row r{"decayed_sum", scalar ? "scalar_decay" : "element_decay",
        dtype_name<T>, {batch, length, width},
        axis,          "scandsl",
        bytes,         {}};
  r.call = [=](int call) {
    const array decay = scalar ? array::of(&one_decay, {}) : whole<T>(pool::decay, call);
    scandsl::ops::decayed_sum({}, whole<T>(pool::x, call), decay, axis, whole<T>(pool::y, call));
  };
  add(r);
  const baseline::extents extents =
      axis == 2 ? baseline::extents{batch * length, width, 1} : baseline::extents{batch, length, width};
  const auto add_loop = [&](const char* provider, baseline::order walk) {
    r.provider = provider;
    r.call = [=](int call) {
      T *x = memory<T>(pool::x, count, call), *y = memory<T>(pool::y, count, call);
      if (scalar)
        baseline::decayed_sum(extents, walk, one_decay, x, y);
      else
        baseline::decayed_sum(extents, walk, memory<T>(pool::decay, count, call), x, y);
    };
    add(r);
  };
  add_loop("loop", baseline::order::columns);
  if (axis != 2) add_loop("loop_blocked", baseline::order::lanes);
}

}  // namespace

void add_decayed_sum() {
  for (const int axis : {2, 1})
    for (const bool scalar : {false, true}) {
      add_shape<float>(axis, scalar);
      add_shape<scandsl::bfloat16>(axis, scalar);
    }
}

}  // namespace bench
