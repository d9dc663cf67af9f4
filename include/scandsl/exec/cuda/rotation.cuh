#pragma once
#include "scandsl/exec/cuda/kernel.cuh"
#include "scandsl/exec/rotating.hpp"

/// Sines and cosines that follow from those of the step before. A thread computes the first ones of each of
/// its runs from the exact product.
namespace scandsl::cuda_detail {

/// In float64 none do.
template <class K, stage_kind Kind, int S>
using rotating_nodes = rotating_pairs<typename K::group, Kind, S,
                                      rotation_choice{.any = !std::is_same_v<typename K::compute, double>}>;

/// What rotates along one run of a thread, of `Steps` steps: from exact products at the first one and at
/// every rotation_steps further on.
template <class K, stage_kind Kind, int S, int Steps> struct rotation {
  using group = typename K::group;
  using C = typename K::compute;
  using nodes = rotating_nodes<K, Kind, S>;
  static constexpr int count = size_of_list<nodes>, slots = count > 0 ? count : 1;
  static constexpr bool begins_twice = Steps > rotation_steps;
  static_assert(count == 0 || Steps <= 2 * rotation_steps);

  float cosine[slots], sine[slots], step_cosine[slots], step_sine[slots];
  float half_turns[slots];  ///< where it begins for the second time
  int taken = 0;

  __device__ __forceinline__ void begin(int k, float half_turns_there) {
    cosine[k] = static_cast<float>(arithmetic<C>::cospi(C(half_turns_there)));
    sine[k] = static_cast<float>(arithmetic<C>::sinpi(C(half_turns_there)));
  }
  __device__ __forceinline__ void advance() {
    if (begins_twice && ++taken == rotation_steps) {
#pragma unroll
      for (int k = 0; k < count; ++k) begin(k, half_turns[k]);
      return;
    }
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const float c = cosine[k], s = sine[k];
      cosine[k] = fmaf(-s, step_sine[k], c * step_cosine[k]);
      sine[k] = fmaf(c, step_sine[k], s * step_cosine[k]);
    }
  }
  template <int I> __device__ __forceinline__ C value() const {
    constexpr int k = nodes::pair_of(I);
    return C(is_apply<primitive::cos_of_product_op>(node_at<group, I>) ? cosine[k] : sine[k]);
  }
};

/// The product of a position and theta, in half turns, whatever their size.
template <class P, int Runs>
__device__ __forceinline__ void products_in_half_turns(const P (&position)[Runs], const float (&theta)[Runs],
                                                       float (&half_turns)[Runs]) {
  bool fits = true;
#pragma unroll
  for (int run = 0; run < Runs; ++run) {
    const auto product = reduce_product<float>(static_cast<float>(position[run]), theta[run]);
    half_turns[run] = product.half_turns;
    fits = fits && product.fits;
    if constexpr (std::is_integral_v<P>)
      fits = fits && position[run] <= far_position<float> && position[run] >= -far_position<float>;
  }
  if (fits) return;
#pragma unroll 1
  for (int slow = 0; slow < Runs; ++slow) {
    P its_position = position[0];
    float its_theta = theta[0];
#pragma unroll
    for (int run = 1; run < Runs; ++run)
      if (run == slow) its_position = position[run], its_theta = theta[run];
    const float exact = half_turns_anywhere(its_position, its_theta);
#pragma unroll
    for (int run = 0; run < Runs; ++run)
      if (run == slow) half_turns[run] = exact;
  }
}

/// Starts the rotations of some runs. first(run) and second(run) read what the stage reads at a run's first
/// two steps.
template <class K, stage_kind Kind, int S, int Steps, int Runs, class Uniforms, class First, class Second>
__device__ __forceinline__ void start_rotations(rotation<K, Kind, S, Steps> (&rotations)[Runs], Uniforms& u,
                                                First&& first, Second&& second) {
  using group = typename K::group;
  using C = typename K::compute;
  using nodes = rotating_nodes<K, Kind, S>;
  using here = stage<group, Kind, S>;
  for_each_index(sequence_of<nodes>{}, [&]<int I>(index_constant<I>) {
    constexpr int k = nodes::pair_of(I);
    constexpr node each = node_at<group, I>;
    using position_type = value_of_node<group, each.operand[0], C>;
    position_type position[Runs], step[Runs];
    float theta[Runs], half_turns[Runs];
#pragma unroll
    for (int run = 0; run < Runs; ++run) {
      position[run] = value_alone<here, group, each.operand[0], C>(u, first(run));
      step[run] = value_alone<here, group, each.operand[0], C>(u, second(run)) - position[run];
      theta[run] = static_cast<float>(value_alone<here, group, each.operand[1], C>(u, first(run)));
    }
    products_in_half_turns(position, theta, half_turns);
#pragma unroll
    for (int run = 0; run < Runs; ++run) rotations[run].begin(k, half_turns[run]);
    if constexpr (Steps > rotation_steps) {
#pragma unroll
      for (int run = 0; run < Runs; ++run)
        position[run] = position[run] + step[run] * static_cast<position_type>(rotation_steps);
      products_in_half_turns(position, theta, half_turns);
#pragma unroll
      for (int run = 0; run < Runs; ++run) rotations[run].half_turns[k] = half_turns[run];
    }
    products_in_half_turns(step, theta, half_turns);
#pragma unroll
    for (int run = 0; run < Runs; ++run) {
      rotations[run].step_cosine[k] = arithmetic<float>::cospi(half_turns[run]);
      rotations[run].step_sine[k] = arithmetic<float>::sinpi(half_turns[run]);
    }
  });
}

/// A stage's memory at one step, to which what rotates is known.
template <class Memory, class Rotation> struct rotated_memory : Memory {
  const Rotation& rotation;
  static constexpr bool remembers_some = Memory::remembers_some || Rotation::nodes::list.count > 0;
  template <int I>
  static constexpr int remembered_at =
      Rotation::nodes::pair_of(I) >= 0 ? 0 : Memory::template remembered_at<I>;
  template <int I> __device__ __forceinline__ auto remembered() const {
    if constexpr (Rotation::nodes::pair_of(I) >= 0)
      return rotation.template value<I>();
    else
      return Memory::template remembered<I>();
  }
};

}  // namespace scandsl::cuda_detail
