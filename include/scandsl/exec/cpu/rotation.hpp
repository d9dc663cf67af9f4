#pragma once
#include "scandsl/exec/cpu/simd.hpp"
#include "scandsl/exec/rotating.hpp"

/// Sines and cosines that follow from those of the step before, for packs of lanes.
namespace scandsl::cpu_detail {

/// What rotates in one pack, where positions are integers: four multiplications a step in place of an exact
/// product and two polynomials. Steps between integers are exact however far they are, so that it does not
/// matter where they are taken.
template <class Group, stage_kind Kind, int Index, class C> class pack_rotation {
  using pack = xsimd::batch<C>;
  using math = arithmetic<pack>;
  using here = stage<Group, Kind, Index>;

public:
  /// In programs without scans, and not in float64.
  using pairs =
      rotating_pairs<Group, Kind, Index, Group::value.scans.count == 0 && !std::is_same_v<C, double>, false>;
  static constexpr int count = pairs::list.count, slots = count > 0 ? count : 1;
  /// The angles between two steps, which stay the same along a pack's walk.
  struct angles {
    pack cosine[slots], sine[slots];
  };

  /// at(step): what the stage reads there.
  template <class Uniforms, class At> static angles between(Uniforms& u, const At& first, const At& second) {
    angles result;
    for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I>) {
      const pack half_turns =
          math::half_turns_of_product(position<I>(u, second) - position<I>(u, first), theta<I>(u, first));
      result.cosine[K] = math::cospi(half_turns);
      result.sine[K] = math::sinpi(half_turns);
    });
    return result;
  }
  /// Starts anew, from the exact product.
  template <class Uniforms, class At> void start(Uniforms& u, const At& here_at) {
    for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I>) {
      const pack half_turns = math::half_turns_of_product(position<I>(u, here_at), theta<I>(u, here_at));
      cosine[K] = math::cospi(half_turns);
      sine[K] = math::sinpi(half_turns);
    });
  }
  void advance(const angles& by) {
    for (int k = 0; k < count; ++k) {
      const pack c = cosine[k], s = sine[k];
      cosine[k] = math::fma(-s, by.sine[k], c * by.cosine[k]);
      sine[k] = math::fma(c, by.sine[k], s * by.cosine[k]);
    }
  }
  template <int I> pack value() const {
    constexpr int k = pairs::pair_of(I);
    return is_apply<primitive::cos_of_product_op>(Group::value.nodes[I]) ? cosine[k] : sine[k];
  }

private:
  pack cosine[slots], sine[slots];

  template <class F> static void for_each_pair(F&& f) {
    for_each_index(std::make_integer_sequence<int, count>{},
                   [&]<int K>(index_constant<K> k) { f(k, index_constant<pairs::list[K]>{}); });
  }
  template <int I, class Uniforms, class At> static auto position(Uniforms& u, const At& at) {
    return value_alone<here, Group, Group::value.nodes[I].operand[0], pack>(u, at);
  }
  template <int I, class Uniforms, class At> static pack theta(Uniforms& u, const At& at) {
    return value_alone<here, Group, Group::value.nodes[I].operand[1], pack>(u, at);
  }
};

/// What a stage reads at one step, to which what rotates is known.
template <class Position, class Rotation> struct rotated_position : Position {
  const Rotation& rotation;
  template <int I> static constexpr int remembered_at = Rotation::pairs::pair_of(I);
  template <int I> auto remembered() const { return rotation.template value<I>(); }
};

}  // namespace scandsl::cpu_detail
