#pragma once
#include "scandsl/exec/cpu/simd.hpp"
#include "scandsl/exec/rotating.hpp"

/// Sines and cosines that follow from those of the step before, for packs of lanes.
namespace scandsl::cpu_detail {

/// What rotates in one pack, where positions are integers: four multiplications a step in place of an exact
/// product and two polynomials. Steps between integers are exact however far they are, so that it does not
/// matter where they are taken. Positions that need not advance by the same (on a grid) are looked at at
/// every step: those that advance by one turn, those that stay are as they were, and of others the angles are
/// computed anew.
template <class Group, stage_kind Kind, int Index, class C> class pack_rotation {
  using pack = xsimd::batch<C>;
  using math = arithmetic<pack>;
  using integer = typename math::integer;
  using here = stage<Group, Kind, Index>;

public:
  /// Not in float64.
  using pairs = rotating_pairs<Group, Kind, Index, rotation_choice{!std::is_same_v<C, double>, false, true}>;
  static constexpr int count = pairs::list.count, slots = count > 0 ? count : 1;
  /// Cosine and sine of an angle for each pair.
  struct angles {
    pack cosine[slots], sine[slots];
  };

  /// Those of one step, which stay the same along a pack's walk. `first`, `second`: what the stage reads at
  /// its first two steps.
  template <class Uniforms, class At> static angles of_step(Uniforms& u, const At& first, const At& second) {
    angles result;
    for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I>) {
      if constexpr (pairs::is_even(I))
        set_exact<K, I>(result, u, first, position<I>(u, second) - position<I>(u, first));
      else
        set_exact<K, I>(result, u, first, integer(1));
    });
    return result;
  }
  /// Starts anew, from the exact product.
  template <class Uniforms, class At> void start(Uniforms& u, const At& at) {
    for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I>) {
      last[K] = position<I>(u, at);
      set_exact<K, I>(now, u, at, last[K]);
    });
  }
  /// Goes on to the next step, at which the stage reads `at`.
  template <class Uniforms, class At> void advance(const angles& by, Uniforms& u, const At& at) {
    for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I>) {
      if constexpr (pairs::is_even(I)) {
        turn(K, by.cosine[K], by.sine[K]);
      } else {
        const integer before = last[K];
        last[K] = position<I>(u, at);
        const integer step = last[K] - before;
        // From the largest integer to the least is no step of one.
        const auto advances = step == integer(1) && last[K] > before, stays = step == integer(0);
        if (xsimd::all(advances)) {
          turn(K, by.cosine[K], by.sine[K]);
        } else if (xsimd::all(advances | stays)) {
          const auto turns = math::truth_of(advances);
          if (xsimd::any(advances))
            turn(K, math::select(turns, by.cosine[K], pack(C(1))),
                 math::select(turns, by.sine[K], pack(C(0))));
        } else {
          set_exact<K, I>(now, u, at, last[K]);
        }
      }
    });
  }
  template <int I> pack value() const {
    constexpr int k = pairs::pair_of(I);
    return is_apply<primitive::cos_of_product_op>(Group::value.nodes[I]) ? now.cosine[k] : now.sine[k];
  }

private:
  angles now;
  integer last[slots];  ///< the position

  void turn(int k, pack cosine, pack sine) {
    const pack c = now.cosine[k], s = now.sine[k];
    now.cosine[k] = math::fma(-s, sine, c * cosine);
    now.sine[k] = math::fma(c, sine, s * cosine);
  }
  template <int K, int I, class Uniforms, class At>
  static void set_exact(angles& result, Uniforms& u, const At& at, integer position) {
    const pack half_turns = math::half_turns_of_product(position, theta<I>(u, at));
    result.cosine[K] = math::cospi(half_turns);
    result.sine[K] = math::sinpi(half_turns);
  }
  template <class F> static void for_each_pair(F&& f) {
    for_each_index(std::make_integer_sequence<int, count>{},
                   [&]<int K>(index_constant<K> k) { f(k, index_constant<pairs::list[K]>{}); });
  }
  template <int I, class Uniforms, class At> static integer position(Uniforms& u, const At& at) {
    return value_alone<here, Group, Group::value.nodes[I].operand[0], pack>(u, at);
  }
  template <int I, class Uniforms, class At> static pack theta(Uniforms& u, const At& at) {
    return value_alone<here, Group, Group::value.nodes[I].operand[1], pack>(u, at);
  }
};

/// What a stage reads at one step, to which what rotates is known.
template <class Position, class Rotation> struct rotated_position : Position {
  const Rotation& rotation;
  static constexpr bool leaves_out = true;
  template <int I> static constexpr int remembered_at = Rotation::pairs::pair_of(I);
  template <int I> auto remembered() const { return rotation.template value<I>(); }
};

}  // namespace scandsl::cpu_detail
