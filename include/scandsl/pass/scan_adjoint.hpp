#pragma once
#include "scandsl/pass/affine.hpp"

namespace scandsl::detail {

/// The adjoint of one scan. With q_t the cotangent of the state before position t,
///
///     q_t = carry_t^T (after_t + q_{t+1}) + before_t,    from q = final,
///
/// carry_t being the step's derivative and after, before, final the cotangents of opcode::scan, carry and
/// last: a linear recurrence from the other end, with the same restarts. The element's cotangent is
/// element_t^T (after_t + q_{t+1}), the initial value's is the last q.
template <class Pass> class scan_adjoint {
public:
  constexpr scan_adjoint(derivation& built, const program& source, const dependence& depends, int scan,
                         Pass pass)
      : d_(built), f_(source), depends_(depends), s_(source.scans[scan]), scan_(scan), pass_(pass) {
    for (component_vector* v : {&after_, &before_, &final_, &received_})
      for (quantity& q : *v) q = number(0.0);
  }

  /// The cotangent of opcode::carry, scan or last of one component.
  constexpr void add(const node& value, quantity cotangent) {
    if (cotangent.is_zero()) return;
    component_vector& to = value.op == opcode::scan ? after_ : value.op == opcode::carry ? before_ : final_;
    to[slot(value.component)] = cotangent;
    active_ |= component_bit(value.component);
    has_final_ = has_final_ || value.op == opcode::last;
  }

  /// Passes on what was added.
  constexpr void operator()() {
    active_ = depends_.with_carries(s_, active_) & depends_.varied_components[scan_];
    if (active_ == 0) return;
    if (is_plain_reduction() && pass_on_reduction()) return;
    step_ = step_differentiation(d_, depends_, scan_).rows(active_);
    if (restarts_apart()) add_final_before_the_end();
    find_carried();
    if (recurrence_.size > 0) declare_recurrence();
    for (int i = 0; i < s_.components; ++i)
      if (has(active_, i)) received_[slot(i)] = received(i);
    pass_to_elements();
    pass_to_initial();
  }

private:
  derivation& d_;
  const program& f_;
  const dependence& depends_;
  const scan_decl s_;
  int scan_;
  Pass pass_;
  component_vector after_{}, before_{}, final_{}, received_{};
  component_mask active_ = 0;
  bool has_final_ = false;
  step_derivative step_;
  int carried_[max_components] = {};  ///< by component: its row in the recurrence, -1 where q is 0
  int component_[max_components] = {};
  affine_recurrence recurrence_;
  affine_scan adjoint_;
  int final_scan_[max_components] = {};

  static constexpr std::size_t slot(int i) { return static_cast<std::size_t>(i); }
  constexpr quantity number(double value) { return {d_, d_.target.constant(value)}; }
  constexpr quantity scan_value(opcode which, int scan, int component) {
    return {d_, d_.target.scan_value(which, scan, component)};
  }
  constexpr bool varies_initially() const {
    for (int k = 0; k < s_.components; ++k)
      if (s_.initial[k] != no_node && depends_.varied[s_.initial[k]]) return true;
    return false;
  }

  // ---- only the last value is read

  constexpr bool is_plain_reduction() const {
    if (s_.every != no_node || s_.offsets >= 0) return false;
    for (int k = 0; k < s_.components; ++k)
      if (!after_[slot(k)].is_zero() || !before_[slot(k)].is_zero()) return false;
    return true;
  }
  /// Without a scan: what reaches a position of a sum is the final cotangent itself, and of a log-add-exp
  /// the position's share of it. False where it takes the recurrence.
  constexpr bool pass_on_reduction() {
    if (is_log_add_exp(f_, scan_)) {
      const quantity sum = scan_value(opcode::last, scan_, 0), g = final_[0];
      pass(s_.axes, s_.element[0], g * share({d_, s_.element[0]}, sum));
      if (s_.initial[0] != no_node) pass(last_axes(), s_.initial[0], g * share({d_, s_.initial[0]}, sum));
      return true;
    }
    step_ = step_differentiation(d_, depends_, scan_).rows(active_);
    for (int i = 0; i < s_.components; ++i)
      for (int j = 0; j < s_.components; ++j)
        if (has(active_, i) && has(active_, j) && !by_carry(i, j).equals(i == j ? 1.0 : 0.0)) return false;
    received_ = final_;
    pass_to_elements();
    for (int k = 0; k < s_.components; ++k)
      if (has(active_, k)) pass(last_axes(), s_.initial[k], final_[slot(k)]);
    return true;
  }

  // ---- restarts

  /// Whether the two ends of a row differ from those of its stretches.
  constexpr bool restarts_apart() const { return s_.every != no_node && (has_final_ || varies_initially()); }
  constexpr scan_decl walk_back() const {
    scan_decl walk = s_;
    walk.reversed = !s_.reversed;
    walk.log_sum = false;
    return walk;
  }
  /// The last stretch alone ends in the final value: its cotangent is added at the row's last position.
  constexpr void add_final_before_the_end() {
    for (int k = 0; k < s_.components; ++k) {
      final_scan_[k] = -1;
      if (final_[slot(k)].is_zero()) continue;
      final_scan_[k] = value_before_a_walk(final_[slot(k)]);
      after_[slot(k)] = after_[slot(k)] + scan_value(opcode::carry, final_scan_[k], 0);
    }
    final_.fill(number(0.0));
  }
  /// A scan along the way back whose carry is `value` at the first position and 0 behind it: the state is
  /// the latest element that is not 1, and all elements are 0.
  constexpr int value_before_a_walk(quantity value) {
    scan_decl walk = walk_back();
    walk.every = no_node;
    walk.components = 1;
    walk.identity[0] = 1.0;
    walk.initial[0] = value.in(d_);
    walk.element[0] = d_.target.constant(0.0);
    const quantity left(d_, d_.target.placeholder(opcode::left, 0)),
        right(d_, d_.target.placeholder(opcode::right, 0));
    walk.combined[0] = select(right == 1.0, left, right).id;
    return d_.declare(walk);
  }
  /// A condition: whether a stretch of the scan starts at this position.
  constexpr quantity starts_here() {
    scan_decl walk = s_;
    walk.components = 1;
    walk.log_sum = false;
    walk.identity[0] = 0.0;
    walk.initial[0] = no_node;
    walk.element[0] = d_.target.constant(1.0);
    const quantity left(d_, d_.target.placeholder(opcode::left, 0)),
        right(d_, d_.target.placeholder(opcode::right, 0));
    walk.combined[0] = max(left, right).id;
    return scan_value(opcode::carry, d_.declare(walk), 0) == 0.0;
  }

  // ---- the recurrence

  constexpr quantity by_carry(int i, int j) const { return step_.carry[slot(i)][slot(j)]; }

  /// The components whose q is not 0 throughout.
  constexpr void find_carried() {
    for (int j = 0; j < s_.components; ++j) {
      carried_[j] = -1;
      if (!has(active_, j)) continue;
      bool reached = !before_[slot(j)].is_zero() || !final_[slot(j)].is_zero();
      for (int i = 0; i < s_.components; ++i)
        reached = reached || (has(active_, i) && !by_carry(i, j).is_zero());
      if (!reached) continue;
      component_[recurrence_.size] = j;
      carried_[j] = recurrence_.size++;
    }
  }
  constexpr void declare_recurrence() {
    recurrence_.starts_at_zero = !has_final_ || restarts_apart();
    for (int row = 0; row < recurrence_.size; ++row) {
      const int j = component_[row];
      for (int column = 0; column < recurrence_.size; ++column)
        recurrence_.matrix[slot(row)][slot(column)] = by_carry(component_[column], j);
      quantity offset = before_[slot(j)];
      for (int i = 0; i < s_.components; ++i)
        if (has(active_, i)) offset = by_carry(i, j) * after_[slot(i)] + offset;
      recurrence_.offset[slot(row)] = offset;
      recurrence_.initial[slot(row)] = final_[slot(j)];
    }
    adjoint_ = declare(d_, walk_back(), recurrence_);
  }
  constexpr quantity q(opcode which, int row) {
    return scan_value(which, adjoint_.scan, adjoint_.component[row]);
  }

  /// after_t + q_{t+1}. Where the step leaves a component as it is, that is q_t itself, or q_t and q_{t+1}
  /// by a flag.
  constexpr quantity received(int j) {
    const int row = carried_[j];
    const quantity after = after_[slot(j)], before = before_[slot(j)];
    if (row < 0) return after;
    bool unchanged = by_carry(j, j).equals(1.0);
    for (int i = 0; i < s_.components; ++i)
      unchanged = unchanged && (i == j || !has(active_, i) || by_carry(i, j).is_zero());
    const quantity carry = q(opcode::carry, row);
    if (unchanged && before.is_zero()) return q(opcode::scan, row);
    if (unchanged && d_.is_masked(after.id) && d_.is_masked(before.id)) {
      const node one = d_.at(after.id), other = d_.at(before.id);
      const bool flag = one.operand[0] == other.operand[0];
      if (flag && d_.is_zero(one.operand[1]) && d_.is_zero(other.operand[2]))
        return select(quantity(d_, one.operand[0]), carry, q(opcode::scan, row));
      if (flag && d_.is_zero(one.operand[2]) && d_.is_zero(other.operand[1]))
        return select(quantity(d_, one.operand[0]), q(opcode::scan, row), carry);
    }
    return after + carry;
  }

  // ---- what it passes on

  constexpr axis_mask last_axes() const {
    const axis_mask segments = s_.segment_axis < 0 ? 0 : axis_bit(s_.segment_axis);
    return (s_.axes & ~axis_bit(s_.axis)) | segments;
  }
  constexpr void pass(axis_mask axes, node_id to, quantity value) { pass_(axes, to, value); }

  constexpr void pass_to_elements() {
    for (int j = 0; j < s_.components; ++j) {
      quantity sum = number(0.0);
      if (!depends_.varied[s_.element[j]]) continue;
      for (int i = 0; i < s_.components; ++i) {
        const quantity factor = step_.element[slot(i)][slot(j)];
        if (has(active_, i) && !factor.is_zero()) sum = factor * received_[slot(i)] + sum;
      }
      pass(s_.axes, s_.element[j], sum);
    }
  }
  constexpr void pass_to_initial() {
    for (int j = 0; j < s_.components; ++j) {
      const node_id to = s_.initial[j];
      if (to == no_node || !depends_.varied[to] || !has(active_, j)) continue;
      quantity sum = number(0.0);
      if (restarts_apart()) {
        if (carried_[j] >= 0) sum = sum_over_starts(q(opcode::scan, carried_[j]));
        // An empty row is its initial value.
        if (final_scan_[j] >= 0) sum = sum + scan_value(opcode::last, final_scan_[j], 0);
      } else if (carried_[j] >= 0) {
        sum = q(opcode::last, carried_[j]);
      }
      pass(last_axes(), to, step_.start[slot(j)] * sum);
    }
  }
  /// The running sum of a value along the walk of `walk`.
  constexpr int sum_along(const scan_decl& walk, quantity value) {
    affine_recurrence r;
    r.size = 1;
    r.matrix[0][0] = number(1.0);
    r.offset[0] = value;
    return declare(d_, walk, r).scan;
  }
  constexpr quantity sum_over_starts(quantity each) {
    scan_decl walk = walk_back();
    walk.every = no_node;
    return scan_value(opcode::last, sum_along(walk, select(starts_here(), each, 0.0)), 0);
  }
};

}  // namespace scandsl::detail
