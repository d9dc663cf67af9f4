#pragma once
#include <algorithm>

#include "scandsl/exec/cpu/course.hpp"

/// Sines and cosines that follow from those of the step before, for packs of lanes.
namespace scandsl::cpu_detail {

/// What rotates in one pack, where positions are integers: four multiplications a step in place of an exact
/// product and two polynomials. Steps between integers are exact however far they are, so that it does not
/// matter where they are taken. Positions that need not advance by the same (on a grid): those that advance
/// by one turn, those that stay are as they were, and of others the angles are computed anew. Which do is
/// known where it is known how they go on (course.hpp); else they are looked at at every step.
template <class Group, stage_kind Kind, int Index, class C> class pack_rotation {
  using pack = xsimd::batch<C>;
  using math = arithmetic<pack>;
  using integer = typename math::integer;
  using whole = typename integer::value_type;
  using here = stage<Group, Kind, Index>;

public:
  /// Not in float64.
  using pairs = rotating_pairs<Group, Kind, Index, rotation_choice{!std::is_same_v<C, double>, false, true}>;
  static constexpr int count = pairs::list.count, slots = count > 0 ? count : 1;
  /// Cosine and sine of an angle for each pair.
  struct angles {
    pack cosine[slots], sine[slots];
  };

  /// What is known of one pack's walk: for all of it, or as far as a step.
  class pack_walk {
  public:
    angles by;  ///< of one step
    /// `first`, `second`: what the stage reads at the first two steps.
    template <class Uniforms, class At> void begin(Uniforms& u, const At& first, const At& second) {
      until = -1;
      for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I>) {
        if constexpr (pairs::is_even(I)) {
          set_exact<K, I>(by, u, first, position<I>(u, second) - position<I>(u, first));
          set<K>(turns, by.cosine[K], by.sine[K]);
          moves[K] = true;
        } else {
          set_exact<K, I>(by, u, first, integer(1));
        }
      });
    }

  private:
    friend pack_rotation;
    angles turns;  ///< by which each pair turns at every step as far as `until`: `by`, or not at all
    bool moves[slots] = {};             ///< whether any of a pair's lanes turns
    integer value[slots], step[slots];  ///< of positions that need not advance by the same: from `from` on
    std::int64_t from = 0, until = -1;

    /// Finds out at step `low` as far as possible.
    template <class Uniforms, class At>
    void look_ahead(std::int64_t low, Uniforms& u, const At& at, const At& next) {
      from = low;
      until = low + longest_course;
      for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I>) {
        if constexpr (!pairs::is_even(I)) {
          const auto found =
              courses<here, Group, pack, Uniforms, At>(u, at, next).template of<position_of<I>>();
          value[K] = found.value;
          step[K] = found.step;
          const auto advances = found.step == integer(1), stays = found.step == integer(0);
          moves[K] = xsimd::any(advances);
          const auto lasts = (advances && found.value <= integer(course_limit<whole>)) || stays;
          until = std::min(until, low + least(xsimd::select(lasts, found.steps, integer(0))));
          set<K>(turns, math::select(math::truth_of(advances), by.cosine[K], pack(C(1))),
                 math::select(math::truth_of(advances), by.sine[K], pack(C(0))));
        }
      });
    }
    template <int K> integer value_at(std::int64_t at) const {
      return value[K] + step[K] * integer(static_cast<whole>(at - from));
    }
  };

  /// Starts anew, from the exact product, at step `low`, where the stage reads `at`. at_step(step): what it
  /// reads at a step, `low` or, where the walk `goes_on`, the one after it.
  template <class Uniforms, class At, class AtStep>
  void start(pack_walk& walk, std::int64_t low, bool goes_on, Uniforms& u, const At& at, AtStep&& at_step) {
    looks_ahead = true;
    if (any_uneven && goes_on && walk.until <= low) walk.look_ahead(low, u, at_step(low), at_step(low + 1));
    for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I>) {
      if constexpr (pairs::is_even(I))
        set_exact<K, I>(now, u, at, position<I>(u, at));
      else
        set_exact<K, I>(now, u, at, goes_on ? walk.template value_at<K>(low) : position<I>(u, at));
    });
  }
  /// Goes on to the next step, likewise.
  template <class Uniforms, class AtStep>
  void advance(pack_walk& walk, std::int64_t step, bool goes_on, Uniforms& u, AtStep&& at_step) {
    if (!any_uneven || step <= walk.until) {
      for (int k = 0; k < count; ++k)
        if (!any_uneven || walk.moves[k]) turn(k, walk.turns.cosine[k], walk.turns.sine[k]);
      return;
    }
    integer before[slots];
    for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I>) {
      if constexpr (!pairs::is_even(I))
        before[K] = walk.until == step - 1 ? walk.template value_at<K>(step - 1) : last[K];
    });
    const bool looks = looks_ahead && goes_on;
    if (looks) {
      walk.look_ahead(step, u, at_step(step), at_step(step + 1));
      looks_ahead = walk.until > step;
    }
    const angles& by = walk.by;
    const auto at = at_step(step);
    for_each_pair([&]<int K, int I>(index_constant<K>, index_constant<I>) {
      if constexpr (pairs::is_even(I)) {
        turn(K, by.cosine[K], by.sine[K]);
      } else {
        last[K] = looks ? walk.value[K] : position<I>(u, at);
        const integer moved = last[K] - before[K];
        // From the largest integer to the least is no step of one.
        const auto advances = moved == integer(1) && last[K] > before[K], stays = moved == integer(0);
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
  integer last[slots];      ///< the position at a step from which it is not known how it goes on
  bool looks_ahead = true;  ///< whether it was, when last looked at
  template <int I> static constexpr int position_of = Group::value.nodes[I].operand[0];
  static constexpr bool any_uneven = [] {
    for (const int i : pairs::list)
      if (!pairs::is_even(i)) return true;
    return false;
  }();

  void turn(int k, pack cosine, pack sine) {
    const pack c = now.cosine[k], s = now.sine[k];
    now.cosine[k] = math::fma(-s, sine, c * cosine);
    now.sine[k] = math::fma(c, sine, s * cosine);
  }
  static whole least(integer x) {
    whole each[pack::size];
    x.store_unaligned(each);
    return *std::min_element(each, each + pack::size);
  }
  template <int K> static void set(angles& to, pack cosine, pack sine) {
    to.cosine[K] = cosine;
    to.sine[K] = sine;
  }
  template <int K, int I, class Uniforms, class At>
  static void set_exact(angles& result, Uniforms& u, const At& at, integer position) {
    const pack half_turns = math::half_turns_of_product(position, theta<I>(u, at));
    set<K>(result, math::cospi(half_turns), math::sinpi(half_turns));
  }
  template <class F> static void for_each_pair(F&& f) {
    for_each_index(std::make_integer_sequence<int, count>{},
                   [&]<int K>(index_constant<K> k) { f(k, index_constant<pairs::list[K]>{}); });
  }
  template <int I, class Uniforms, class At> static integer position(Uniforms& u, const At& at) {
    return value_alone<here, Group, position_of<I>, pack>(u, at);
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
