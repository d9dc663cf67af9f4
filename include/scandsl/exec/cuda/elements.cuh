#pragma once
#include "scandsl/core/order.hpp"
#include "scandsl/exec/cuda/kernel.cuh"

/// Where elements lie, and single ones as numbers or integers: what is read once a lane, at computed
/// positions, or by a path that no vector access takes; and integers divided by what is known at launch.
namespace scandsl::cuda_detail {

/// Quotient and remainder, in 32 bits where that is enough.
__device__ __forceinline__ std::int64_t split_off(std::int64_t& position, std::int64_t extent) {
  const std::int64_t whole = position;
  if ((static_cast<std::uint64_t>(position) | static_cast<std::uint64_t>(extent)) >> 32 == 0)
    position = static_cast<std::uint32_t>(position) / static_cast<std::uint32_t>(extent);
  else
    position /= extent;
  return whole - position * extent;
}

/// Offset of a position of the walk in tensor t. Of a walk through several dimensions it is called: written
/// out for every element of a vector it was a third of what ptxas took for a scan.
template <class A>
__device__ __noinline__ std::int64_t offset_in_walk(const A& a, int t, std::int64_t position) {
  std::int64_t sum = 0;
#pragma unroll 1
  for (int d = a.walk_dimensions - 1; d >= 0; --d)
    sum += split_off(position, a.walk[d].extent) * a.walk[d].stride[t];
  return sum;
}
template <class A>
__device__ __forceinline__ std::int64_t walk_offset(const A& a, int t, std::int64_t position) {
  return a.walk_dimensions == 1 ? position * a.walk[0].stride[t] : offset_in_walk(a, t, position);
}

/// Offset of a computed position.
static __device__ __noinline__ std::int64_t offset_in_dimensions(const computed_axis& axis,
                                                                 std::int64_t position) {
  std::int64_t sum = 0;
#pragma unroll 1
  for (int d = axis.dimensions - 1; d >= 0; --d) sum += split_off(position, axis.extent[d]) * axis.stride[d];
  return sum;
}
__device__ __forceinline__ std::int64_t computed_offset(const computed_axis& axis, std::int64_t position) {
  return axis.dimensions == 1 ? position * axis.stride[0] : offset_in_dimensions(axis, position);
}

/// Whether an axis has a position.
__device__ __forceinline__ bool has(const computed_axis& axis, std::int32_t position) {
  const std::int64_t beyond =
      axis.positions < (std::int64_t{1} << 31) ? axis.positions : std::int64_t{1} << 31;
  return static_cast<std::uint32_t>(position) < static_cast<std::uint32_t>(beyond);
}
__device__ __forceinline__ bool has(const computed_axis& axis, std::int64_t position) {
  return static_cast<std::uint64_t>(position) < static_cast<std::uint64_t>(axis.positions);
}

/// A stretch of the walk, no longer than a tile.
struct stretch {
  std::int64_t low;  ///< its first position in memory order
  int steps;

  /// The steps of [low, high) that follow the first `from` in scan order, `most` at most.
  static __device__ __forceinline__ stretch after(std::int64_t low, std::int64_t high, std::int64_t from,
                                                  int most, bool reversed) {
    const std::int64_t rest = high - low - from;
    const int steps = rest > most ? most : rest > 0 ? static_cast<int>(rest) : 0;
    return {reversed ? high - from - steps : low + from, steps};
  }
};

/// Where unit `rest` of the lanes is along their dimension d, what lies further in being split off already;
/// `rest` becomes what is left for the dimensions further out.
template <class A>
__device__ __forceinline__ std::uint32_t split_lanes_off(const A& a, int d, std::uint32_t& rest) {
  const std::uint32_t number = rest;
  if (d == 0) return number;
  rest = a.lane[d].by.quotient(number);
  return number - rest * static_cast<std::uint32_t>(a.lane[d].extent);
}
template <class A>
__device__ __forceinline__ std::int64_t split_lanes_off(const A& a, int d, std::int64_t& rest) {
  if (d == 0) return rest;
  if (!a.small) return split_off(rest, a.lane[d].extent);
  auto small = static_cast<std::uint32_t>(rest);
  const std::uint32_t at = split_lanes_off(a, d, small);
  rest = small;
  return at;
}
/// The same of dimension d alone. Seldom wanted.
template <class A> __device__ __noinline__ std::int64_t lane_position(const A& a, int d, std::int64_t rest) {
#pragma unroll 1
  for (int further_in = a.lane_dimensions - 1; further_in > d; --further_in)
    split_lanes_off(a, further_in, rest);
  return split_lanes_off(a, d, rest);
}

/// Offset of unit `rest` of the lanes in tensor t. For what is read or written once a lane.
template <class A> __device__ __noinline__ std::int64_t lane_offset(const A& a, int t, std::int64_t rest) {
  std::int64_t sum = 0;
#pragma unroll 1
  for (int d = a.lane_dimensions - 1; d >= 0; --d) sum += split_lanes_off(a, d, rest) * a.lane[d].stride[t];
  return sum;
}

/// Number of the first lane of unit `rest` among the lanes whose carries are kept.
template <class A> __device__ __noinline__ std::int64_t numbered_lane(const A& a, std::int64_t rest) {
  std::int64_t sum = 0;
#pragma unroll 1
  for (int d = a.lane_dimensions - 1; d >= 0; --d)
    sum += split_lanes_off(a, d, rest) * a.carries.lane_stride[d];
  return sum;
}

/// How many elements of each of a thread's vectors exist (the first ones).
struct element_counts {
  int left, less, most;
  __device__ __forceinline__ int of(int v) const { return clamped(left - v * less, 0, most); }
  __device__ __forceinline__ bool any(int v) const { return left > v * less; }
  /// Of the vectors from v on.
  __device__ __forceinline__ element_counts from(int v) const { return {left - v * less, less, most}; }
};
/// Where a thread's elements lie that no single access a vector reaches: element e of vector v at `position`
/// + `next` * v + `direction` * e of the walk, and `lane_stride` * e elements further.
struct element_path {
  std::int64_t place, position, lane_stride;
  int direction, next;
  element_counts counts;
};
/// Where the elements of one vector lie, those that exist, in a walk that may have several dimensions.
template <int Width> struct element_offsets {
  std::int64_t of[Width];
  int count;
  template <class A>
  __device__ __forceinline__ element_offsets(const A& a, int t, const element_path& path, int v)
      : count(path.counts.of(v)) {
#pragma unroll 1
    for (int e = 0; e < count; ++e)
      of[e] = path.place + walk_offset(a, t, path.position + path.next * v + path.direction * e) +
              path.lane_stride * e;
  }
};

// ---- integers and computed positions

/// Integers are kept where numbers are, by their bits.
template <class C, class V> __device__ __forceinline__ C as_kept(V value) {
  if constexpr (std::is_same_v<V, C>)
    return value;
  else
    return bits_as_number<C>(value);
}
template <class Group, int I, class C>
__device__ __forceinline__ value_of_node<Group, I, C> from_kept(C kept) {
  if constexpr (is_integer(node_at<Group, I>))
    return bits_as_integer(kept);
  else
    return kept;
}

/// An element of any type, as a number or, where V is one, as an integer.
template <class V>
__device__ __forceinline__ V element_at(const tensor_argument& memory, std::int64_t offset) {
  if constexpr (std::is_integral_v<V>)
    return memory.type == dtype::int32 ? static_cast<V>(static_cast<const std::int32_t*>(memory.data)[offset])
                                       : saturated<V>(static_cast<const std::int64_t*>(memory.data)[offset]);
  else if (memory.type == dtype::float32)  // what is once a lane mostly is
    return widen<float, V>(static_cast<const float*>(memory.data)[offset]);
  else
    return load_any<V>(memory.data, memory.type, offset);
}

/// Elements `apart` from each other; 0 for those from `count` on.
template <class T, int Lanes, class V>
__device__ __forceinline__ void load_lanes(const T* first, std::int64_t apart, int count,
                                           V (&values)[Lanes]) {
#pragma unroll
  for (int lane = 0; lane < Lanes; ++lane) {
    values[lane] = V(0);
    if (lane >= count) continue;
    if constexpr (std::is_integral_v<V>)
      values[lane] = saturated<V>(first[lane * apart]);
    else
      values[lane] = widen<T, V>(first[lane * apart]);
  }
}
template <class V, int Lanes> struct lane_values {
  V value[Lanes];
};
/// ... of any type. The switch is outside of the loop over lanes; types that what is once a lane seldom has
/// are left to one function for all places that call it.
template <class V, int Lanes>
__device__ __noinline__ lane_values<V, Lanes> load_any_lanes(const void* data, dtype type, std::int64_t apart,
                                                             int count) {
  lane_values<V, Lanes> values;
  switch (type) {
  case dtype::float64: load_lanes(static_cast<const double*>(data), apart, count, values.value); break;
  case dtype::bfloat16: load_lanes(static_cast<const bfloat16*>(data), apart, count, values.value); break;
  case dtype::float16: load_lanes(static_cast<const float16*>(data), apart, count, values.value); break;
  default: load_lanes(static_cast<const float*>(data), apart, count, values.value); break;
  }
  return values;
}
template <int Lanes, class V>
__device__ __forceinline__ void load_lanes(const tensor_argument& memory, std::int64_t offset,
                                           std::int64_t apart, int count, V (&values)[Lanes]) {
  if constexpr (std::is_integral_v<V>) {
    if (memory.type == dtype::int32)
      load_lanes(static_cast<const std::int32_t*>(memory.data) + offset, apart, count, values);
    else
      load_lanes(static_cast<const std::int64_t*>(memory.data) + offset, apart, count, values);
  } else if (memory.type == dtype::float32) {
    const float* const first = static_cast<const float*>(memory.data) + offset;
    if constexpr (Lanes % 4 == 0)
      if (apart == 1 && count == Lanes && reinterpret_cast<std::uintptr_t>(first) % 16 == 0) {
        packed<float, Lanes> vectors;
        vectors.load(first);
#pragma unroll
        for (int lane = 0; lane < Lanes; ++lane)
          values[lane] = widen<float, V>(vectors.template get<float>(lane));
        return;
      }
    load_lanes(first, apart, count, values);
  } else if constexpr (Lanes == 1) {
    if (count <= 0) {
      values[0] = V(0);
    } else if (memory.type == dtype::bfloat16 || memory.type == dtype::float16) {
      // Not by a function, which would wait for what it loads.
      const std::uint16_t bits = static_cast<const std::uint16_t*>(memory.data)[offset];
      values[0] = memory.type == dtype::bfloat16 ? widen<bfloat16, V>(bfloat16::from_bits(bits))
                                                 : widen<float16, V>(float16::from_bits(bits));
    } else {
      values[0] = load_any<V>(memory.data, memory.type, offset);
    }
  } else {
    const void* const first =
        static_cast<const char*>(memory.data) + offset * static_cast<std::int64_t>(size_of(memory.type));
    const auto any = load_any_lanes<V, Lanes>(first, memory.type, apart, count);
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane) values[lane] = any.value[lane];
  }
}
template <class V, int Lanes>
__device__ __noinline__ void store_any_lanes(const tensor_argument& memory, std::int64_t offset,
                                             std::int64_t apart, int count, lane_values<V, Lanes> values) {
#pragma unroll 1
  for (int lane = 0; lane < count; ++lane)
    store_any<V>(memory.data, memory.type, offset + lane * apart, values.value[lane]);
}

/// Elements of type T, which may be looked up, where they exist, else 0.
template <class T, int Lanes, class V>
__device__ __forceinline__ void load_where(const tensor_argument& memory, const std::int64_t (&offset)[Lanes],
                                           const bool (&exists)[Lanes], V (&values)[Lanes]) {
  const auto load = [&](auto&& at) {
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane) values[lane] = exists[lane] ? at(offset[lane]) : V(0);
  };
  if constexpr (!std::is_same_v<T, any_type> && !std::is_integral_v<V>) {
    const auto* data = static_cast<const T*>(memory.data);
    return load([&](std::int64_t at) { return widen<T, V>(data[at]); });
  }
  // What is once a lane mostly is of these types.
  if constexpr (std::is_integral_v<V>) {
    if (memory.type == dtype::int32) {
      const auto* data = static_cast<const std::int32_t*>(memory.data);
      return load([&](std::int64_t at) { return static_cast<V>(data[at]); });
    }
  } else if (memory.type == dtype::float32) {
    const auto* data = static_cast<const float*>(memory.data);
    return load([&](std::int64_t at) { return widen<float, V>(data[at]); });
  }
  load([&](std::int64_t at) { return element_at<V>(memory, at); });
}

/// What node I, a load, reads at offset() of its tensor; 0 where nothing exists.
template <class Group, int I, class C, class A, class Offset>
__device__ __forceinline__ value_of_node<Group, I, C> load_at(const A& a, bool exists, Offset offset) {
  constexpr int t = node_at<Group, I>.target;
  constexpr tensor_decl declared = tensor_at<Group, t>;
  using V = value_of_node<Group, I, C>;
  if constexpr (declared.role == tensor_role::positions) {
    return static_cast<V>(offset());
  } else {
    if (declared.optional && !a.tensor[t].bound) return static_cast<V>(declared.fallback);
    return exists ? element_at<V>(a.tensor[t], offset()) : V(0);
  }
}

template <class C>
inline constexpr bool has_small_integers = std::is_same_v<typename arithmetic<C>::integer, std::int32_t>;

/// For divisors that are seldom met.
static __device__ __noinline__ std::int32_t floor_divide_anyhow(std::int32_t x, std::int32_t y) {
  return arithmetic<std::int32_t>::floor_divide(x, y);
}

/// What node I, a gather, reads at the computed positions, its tensor's other dimensions being at offset().
template <class Group, int I, class C, class A, class Offset, class... Position>
__device__ __forceinline__ value_of_node<Group, I, C> gather_at(const A& a, bool exists, Offset offset,
                                                                Position... positions) {
  constexpr int t = node_at<Group, I>.target;
  constexpr tensor_decl declared = tensor_at<Group, t>;
  constexpr int first = computed_before<Group, t, 0>;
  using V = value_of_node<Group, I, C>;
  if (declared.optional && !a.tensor[t].bound) return static_cast<V>(declared.fallback);
  int which = first;
  ((exists = exists && has(a.computed[which++], positions)), ...);
  if (!exists) return V(0);
  if constexpr (declared.role == tensor_role::table) {
    return saturated<V>(a.table[first][(positions + ...)]);
  } else {
    std::int64_t at = offset();
    which = first;
    ((at += computed_offset(a.computed[which++], positions)), ...);
    return element_at<V>(a.tensor[t], at);
  }
}

/// x divided by node I's divisor, a number known at launch, rounded down; 0 where that is 0.
template <class Group, int I, class A, class... Position>
__device__ __forceinline__ std::int32_t floor_quotient_at(const A& a, std::int32_t x, Position... position) {
  constexpr node divisor = node_at<Group, node_at<Group, I>.operand[1]>;
  if constexpr (divisor.op == opcode::parameter) {
    if (a.divides) return a.by_parameter[divisor.target].floor_quotient(x);
    return floor_divide_anyhow(x, bits_as_integer(a.parameters[divisor.target]));
  } else {
    constexpr int slot = computed_before<Group, divisor.target, 0>;
    const auto at = (position + ...);
    const bool exists = has(a.computed[slot], at);
    if (a.divides) return (exists ? a.by_element[slot][at] : small_divisor{}).floor_quotient(x);
    return floor_divide_anyhow(x, exists ? saturated<std::int32_t>(a.table[slot][at]) : 0);
  }
}

}  // namespace scandsl::cuda_detail
