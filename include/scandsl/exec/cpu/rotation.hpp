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
  /// Not in float64.
  using pairs = rotating_pairs<Group, Kind, Index, !std::is_same_v<C, double>, false>;
  static constexpr int count = pairs::list.count, slots = count > 0 ? count : 1;
  /// Cosine and sine of an angle for each pair.
  struct angles {
    pack cosine[slots], sine[slots];
  };

  /// Those between two steps, which stay the same along a pack's walk. at(step): what the stage reads there.
  template <class Uniforms, class At> static angles between(Uniforms& u, const At& first, const At& second) {
    return exact_angles(
        u, first, [&]<int I>(index_constant<I>) { return position<I>(u, second) - position<I>(u, first); });
  }
  /// Starts anew, from the exact product.
  template <class Uniforms, class At> void start(Uniforms& u, const At& at) {
    now = exact_angles(u, at, [&]<int I>(index_constant<I>) { return position<I>(u, at); });
  }
  void advance(const angles& by) {
    for (int k = 0; k < count; ++k) {
      const pack c = now.cosine[k], s = now.sine[k];
      now.cosine[k] = math::fma(-s, by.sine[k], c * by.cosine[k]);
      now.sine[k] = math::fma(c, by.sine[k], s * by.cosine[k]);
    }
  }
  template <int I> pack value() const {
    constexpr int k = pairs::pair_of(I);
    return is_apply<primitive::cos_of_product_op>(Group::value.nodes[I]) ? now.cosine[k] : now.sine[k];
  }

private:
  angles now;

  template <class Uniforms, class At, class F>
  static angles exact_angles(Uniforms& u, const At& at, F&& position_of) {
    angles result;
    for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I> node) {
      const pack half_turns = math::half_turns_of_product(position_of(node), theta<I>(u, at));
      result.cosine[K] = math::cospi(half_turns);
      result.sine[K] = math::sinpi(half_turns);
    });
    return result;
  }
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
