#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "scandsl/core/dtype.hpp"
#include "scandsl/core/view.hpp"
#include "scandsl/exec/evaluate.hpp"

/// Integers on their way into tiles, and elements at computed positions, for one pack of W lanes.
namespace scandsl::cpu_detail {

/// Fills a tile of numbers with integers, by their bits: value(step, lane). Alike: one for all lanes of a
/// step.
template <class C, int W, class Value>
void fill_integers(C* tile, std::int64_t pitch, std::int64_t steps, bool alike, Value value) {
  const auto bits = [&](std::int64_t t, int l) {
    return bits_as_number<C>(saturated<typename arithmetic<C>::integer>(value(t, l)));
  };
  for (std::int64_t t = 0; t < steps; ++t) {
    C* const to = tile + t * pitch;
    if (alike) {
      std::fill_n(to, W, bits(t, 0));
    } else {
      for (int l = 0; l < W; ++l) to[l] = bits(t, l);
    }
  }
}

/// One element of an integer tensor.
inline std::int64_t load_integer(const void* data, dtype type, std::int64_t offset) {
  return type == dtype::int32 ? static_cast<const std::int32_t*>(data)[offset]
                              : static_cast<const std::int64_t*>(data)[offset];
}

/// Where the tensor of a gather lies for one pack of lanes: lane l at `lane[l]` elements from `data`, the
/// next step `step` elements on; `along` are the dimensions of the axes whose positions are computed.
template <int W> struct gather_place {
  const void* data = nullptr;
  dtype type = dtype::float32;
  bool bound = false;
  const dims* along[3] = {};
  std::int64_t step = 0;
  std::int64_t lane[static_cast<std::size_t>(W)] = {};
};

/// The elements at the computed positions: 0 outside, `fallback` where no tensor is bound.
template <std::size_t Positions, int W, class Integer, class Element>
void gather_elements(const gather_place<W>& from, std::int64_t step,
                     const Integer (&positions)[Positions][static_cast<std::size_t>(W)], Element fallback,
                     Element (&result)[static_cast<std::size_t>(W)]) {
  constexpr auto lanes = static_cast<std::size_t>(W);
  if (!from.bound) {
    std::fill_n(result, lanes, fallback);
    return;
  }
  std::int64_t offsets[lanes];
  bool inside[lanes];
  for (std::size_t l = 0; l < lanes; ++l) {
    offsets[l] = from.lane[l] + step * from.step;
    inside[l] = true;
    result[l] = Element(0);
  }
  for (std::size_t i = 0; i < Positions; ++i) {
    const dims& along = *from.along[i];
    const std::int64_t count = along.count();
    for (std::size_t l = 0; l < lanes; ++l)
      inside[l] = inside[l] && positions[i][l] >= 0 && positions[i][l] < count;
    if (along.size() == 1) {
      for (std::size_t l = 0; l < lanes; ++l)
        offsets[l] += (inside[l] ? std::int64_t{positions[i][l]} : 0) * along[0].stride;
    } else {
      for (std::size_t l = 0; l < lanes; ++l)
        if (inside[l]) offsets[l] += offset_at(along, positions[i][l]);
    }
  }
  visit_dtype(from.type, [&]<class T>(std::type_identity<T>) {
    for (std::size_t l = 0; l < static_cast<std::size_t>(W); ++l) {
      if (!inside[l]) continue;
      const T element = static_cast<const T*>(from.data)[offsets[l]];
      if constexpr (std::is_integral_v<T> && std::is_integral_v<Element>)
        result[l] = saturated<Element>(element);
      else if constexpr (!std::is_integral_v<Element>)
        result[l] = static_cast<Element>(element);
    }
  });
}

}  // namespace scandsl::cpu_detail
