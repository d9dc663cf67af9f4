#pragma once
#include <limits>

#include "scandsl/exec/cpu/simd.hpp"
#include "scandsl/exec/rotating.hpp"

/// How whole numbers go on from one step of a walk: found once for many steps, by the rules below, where they
/// would be computed, quotients and all, at each of them.
namespace scandsl::cpu_detail {

/// A pack of whole numbers: at each of the `steps` that follow, of [0, longest_course], it is `step` more
/// than at the one before. It may go on longer so.
template <class Integer> struct course {
  Integer value, step, steps;
};
/// The same of a condition, which stays as it is.
template <class Truth, class Integer> struct truth_course {
  Truth value;
  Integer steps;
};
inline constexpr int longest_course = 1 << 16;
/// Numbers up to here may advance by one for so long.
template <class T> inline constexpr T course_limit = std::numeric_limits<T>::max() - longest_course;

/// The courses of a stage's nodes: `here` and `next` are what the stage reads at a step and at the one after
/// it.
template <class Stage, class Group, class Pack, class Uniforms, class At> class courses {
  using math = arithmetic<Pack>;
  using integer = typename math::integer;
  using integers = arithmetic<integer>;
  using element = typename integer::value_type;
  static constexpr element limit = course_limit<element>, nearby = std::numeric_limits<element>::max() / 4;

public:
  courses(Uniforms& uniforms, const At& first, const At& second) : u(uniforms), here(first), next(second) {}

  template <int I> course<integer> of() const {
    constexpr node each = node_at<Group, I>;
    if constexpr (!varies<I>) {
      return {alone<I>(here), integer(0), integer(longest_course)};
    } else if constexpr (counts_steps<I>()) {
      const integer value = alone<I>(here);
      return {value, alone<I>(next) - value, where(value <= integer(limit), longest_course)};
    } else if constexpr (is_computed<I> && selects_uniformly<Stage, Group, I>()) {
      return slot<each.operand[0]>(u) ? of<each.operand[1]>() : of<each.operand[2]>();
    } else if constexpr (is_computed<I> && is_apply<primitive::select_op>(each)) {
      const auto condition = truth<each.operand[0]>();
      const auto yes = of<each.operand[1]>(), no = of<each.operand[2]>();
      const auto choose = [&](integer x, integer y) { return integers::select(condition.value, x, y); };
      return {choose(yes.value, no.value), choose(yes.step, no.step),
              shorter(condition.steps, choose(yes.steps, no.steps))};
    } else if constexpr (is_computed<I> && primitive::at<each.function>::arity == 2) {
      return of_two<I>();
    } else {
      return {alone<I>(here), integer(0), integer(0)};
    }
  }

private:
  Uniforms& u;
  const At& here;
  const At& next;

  template <int I> static constexpr bool varies = detail::varies_along(node_at<Group, I>, Group::plan.axis);
  template <int I> static constexpr bool is_computed = Stage::template from<I> == source::computed;
  template <int I> static constexpr bool counts_steps() {
    constexpr node each = node_at<Group, I>;
    if constexpr (each.op == opcode::load)
      return tensor_at<Group, each.target>.role == tensor_role::positions;
    else
      return false;
  }
  template <int I> auto alone(const At& at) const { return value_alone<Stage, Group, I, Pack>(u, at); }

  static integer shorter(integer x, integer y) { return integers::minimum(x, y); }
  template <class Truth> static integer where(Truth condition, integer steps) {
    return integers::select(condition, steps, integer(0));
  }
  template <class Truth> static integer where(Truth condition, int steps) {
    return where(condition, integer(steps));
  }

  /// The value of a node of two operands.
  template <int I> static auto applied(const course<integer>& x, const course<integer>& y) {
    return apply_node<Group, I, Pack>(
        [&]<int J>(index_constant<J>) { return J == node_at<Group, I>.operand[0] ? x.value : y.value; });
  }

  template <int I> course<integer> of_two() const {
    constexpr node each = node_at<Group, I>;
    const auto x = of<each.operand[0]>(), y = of<each.operand[1]>();
    const integer value = applied<I>(x, y);
    const integer both = shorter(x.steps, y.steps);
    if constexpr (is_apply<primitive::add_op>(each)) return {value, x.step + y.step, both};
    if constexpr (is_apply<primitive::subtract_op>(each)) return {value, x.step - y.step, both};
    const integer still = where((x.step | y.step) == integer(0), both);
    if constexpr (is_apply<primitive::floor_divide_op>(each) || is_apply<primitive::modulo_op>(each)) {
      constexpr bool divides = is_apply<primitive::floor_divide_op>(each);
      // Until x comes to the next multiple of y a quotient stays, and a rest goes on with x.
      const integer rest = divides ? integers::rest(x.value, y.value, value) : value;
      const auto by_one = y.value == integer(1);
      const auto counts =
          x.step == integer(1) && y.step == integer(0) && y.value > integer(0) && x.value <= integer(limit);
      const integer until = xsimd::select(by_one, both, shorter(both, y.value - integer(1) - rest));
      const integer of_quotient = xsimd::select(by_one, x.step, integer(0));
      return {value, divides ? of_quotient : x.step - of_quotient, xsimd::select(counts, until, still)};
    }
    return {value, integer(0), still};
  }

  /// Of a condition.
  template <int I> auto truth() const {
    using result = truth_course<typename math::truth, integer>;
    constexpr node each = node_at<Group, I>;
    if constexpr (!varies<I>) {
      return result{typename math::truth(alone<I>(here)), integer(longest_course)};
    } else if constexpr (is_computed<I> && compares_integers<Group, I>) {
      const auto x = of<each.operand[0]>(), y = of<each.operand[1]>();
      const auto value = applied<I>(x, y);
      // What differs by so much, and by one less or more at each step, is not the same before so many steps.
      const integer gap = xsimd::abs(y.value - x.value), change = xsimd::abs(y.step - x.step);
      const integer apart = xsimd::select(change == integer(0), integer(longest_course),
                                          where(change == integer(1) && gap > integer(0), gap - integer(1)));
      const auto still = (x.step | y.step) == integer(0);
      const integer lasts =
          xsimd::select(still, integer(longest_course), where(is_near(x) && is_near(y), apart));
      return result{value, shorter(lasts, shorter(x.steps, y.steps))};
    } else {
      return result{alone<I>(here), integer(0)};
    }
  }
  /// Whether what differs from others of the kind does so by an integer.
  static auto is_near(const course<integer>& x) {
    return x.value <= integer(nearby) && x.value >= integer(-nearby);
  }
};

}  // namespace scandsl::cpu_detail
