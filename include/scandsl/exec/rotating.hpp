#pragma once
#include "scandsl/exec/stage.hpp"
#include "scandsl/pass/rotation.hpp"

/// Which sines and cosines of a stage follow from those of the step before (pass/rotation.hpp). Shared by all
/// executors.
namespace scandsl {

/// Steps from one exact product to the next. Of so many the last ones are off by 1.7e-6 at most, in float32
/// and positions up to 2^24; the first by 0.4e-6.
inline constexpr int rotation_steps = 8;

/// Which sines and cosines an executor has rotate: any at all, those whose position is a real number, and
/// those whose position may advance by other than the same (may_turn_along).
struct rotation_choice {
  bool any = true, reals = true, uneven = false;
};

/// The sines and cosines that rotate while a stage walks along its steps, one for each pair of operands.
template <class Group, stage_kind Kind, int S, rotation_choice Choice> struct rotating_pairs {
  static constexpr bool is_even(int i) { return rotates_along(Group::value, i, Group::plan.axis); }
  static constexpr bool rotates(int i) {
    if (!Choice.any || stage_of<Group, Kind, S>.from[i] != source::computed) return false;
    if (Choice.uneven && may_turn_along(Group::value, i, Group::plan.axis)) return true;
    return is_even(i) && (Choice.reals || is_integer(Group::value.nodes[Group::value.nodes[i].operand[0]]));
  }
  static constexpr bool same_operands(int i, int j) {
    const node &one = Group::value.nodes[i], &other = Group::value.nodes[j];
    return one.operand[0] == other.operand[0] && one.operand[1] == other.operand[1];
  }
  static constexpr node_list list = [] {
    node_list nodes;
    for (int i = 0; i < Group::value.nodes.count; ++i) {
      if (!rotates(i)) continue;
      bool found = false;
      for (const int each : nodes) found = found || same_operands(i, each);
      if (!found) nodes.push_back(i);
    }
    return nodes;
  }();
  /// The pair of operands of node i, by its number in the list; -1: it does not rotate.
  static constexpr int pair_of(int i) {
    if (!rotates(i)) return -1;
    for (int k = 0; k < list.count; ++k)
      if (same_operands(i, list[k])) return k;
    return -1;
  }
};

template <class Stage, class Group, int I> constexpr bool selects_uniformly() {
  if constexpr (is_apply<primitive::select_op>(node_at<Group, I>))
    return Stage::template is_uniform<node_at<Group, I>.operand[0]>;
  else
    return false;
}

/// The value of node I of a stage, one that depends on no scan, without the others; of a select by a uniform
/// condition, without what it leaves out.
template <class Stage, class Group, int I, class V, class Uniforms, class Memory>
SCANDSL_HD value_of_node<Group, I, V> value_alone(Uniforms& u, const Memory& memory) {
  if constexpr (Stage::template is_uniform<I>)
    return value_of_node<Group, I, V>(slot<I>(u));
  else if constexpr (Stage::template from<I> != source::computed)
    return memory.read(index_constant<I>{});
  else if constexpr (selects_uniformly<Stage, Group, I>())
    return slot<node_at<Group, I>.operand[0]>(u)
               ? value_alone<Stage, Group, node_at<Group, I>.operand[1], V>(u, memory)
               : value_alone<Stage, Group, node_at<Group, I>.operand[2], V>(u, memory);
  else
    return apply_node<Group, I, V>(
        [&]<int J>(index_constant<J>) { return value_alone<Stage, Group, J, V>(u, memory); });
}

}  // namespace scandsl
