#pragma once
#include "scandsl/core/name.hpp"

/// One class template per mistake: its arguments name the culprit, its static_assert says what to do. A
/// compiler prints both in one short message.
namespace scandsl::check {

/// fixed_string of a name known at compile time, so that a message can show it.
template <name N> constexpr auto shown() {
  char buffer[N.size() + 1]{};
  for (std::size_t i = 0; i + 1 < sizeof buffer; ++i) buffer[i] = N.text[i];
  return fixed_string<N.size() + 1>(buffer);
}

template <bool Ok, fixed_string AXIS> struct scan_axis {
  static_assert(
      Ok, "scandsl: scan(op, over(AXIS), ...): no scanned operand has this AXIS; scan over one of its axes, "
          "or give an operand that varies along it");
};
template <bool Ok, fixed_string AXIS> struct segments_are_no_operand_axis {
  static_assert(Ok, "scandsl: scan(op, over(...).restart_at(offsets(AXIS)), ...): a scanned operand varies "
                    "along AXIS, which "
                    "numbers the packed sequences; only initial states and last(...) do");
};
template <bool Ok, fixed_string OUTPUT, fixed_string AXIS> struct output_axis {
  static_assert(
      Ok, "scandsl: the right-hand side of OUTPUT varies along AXIS, which OUTPUT does not declare; add the "
          "axis to out<>(...) or reduce it with sum(over(AXIS), ...)");
};
template <bool Ok, fixed_string TENSOR> struct distinct_axes {
  static_assert(Ok, "scandsl: TENSOR has the same axis twice; give every dimension its own axis");
};
template <bool Ok, fixed_string TENSOR> struct tensor_has_axes {
  static_assert(
      Ok, "scandsl: TENSOR is used without its axes; write TENSOR(axes...), or scalar<\"...\"> for a number");
};
template <bool Ok, fixed_string FUNCTION> struct takes_values {
  static_assert(
      Ok, "scandsl: FUNCTION takes values, but got a condition; turn it into a value with select(c, a, b)");
};
template <bool Ok, fixed_string FUNCTION> struct takes_conditions {
  static_assert(Ok,
                "scandsl: FUNCTION takes a condition where it got a value; compare the value with something");
};
template <bool Ok> struct output_is_a_value {
  static_assert(
      Ok, "scandsl: an output takes a value, but got a condition; turn it into a value with select(c, a, b)");
};
template <bool Ok, int GOT> struct operator_arity {
  static_assert(
      Ok,
      "scandsl: scan: the operator's lift does not take GOT operands; give as many as lift has parameters "
      "(decayed_sum takes the decay, then the input)");
};
template <bool Ok, int EXPECTED> struct lift_gives_state {
  static_assert(
      Ok, "scandsl: scan: lift must return state(...) with EXPECTED components, as many as the identity");
};
template <bool Ok, int EXPECTED> struct combine_gives_state {
  static_assert(
      Ok, "scandsl: scan: combine(left, right) must take two states and return state(...) with EXPECTED "
          "components, as many as the identity");
};
template <bool Ok> struct project_gives_value {
  static_assert(Ok, "scandsl: scan: project(state) must take one state and return one value");
};
template <bool Ok> struct identity_is_numbers {
  static_assert(Ok, "scandsl: scan_op: the identity must be state(numbers...)");
};
template <bool Ok, int GOT> struct start_matches {
  static_assert(
      Ok, "scandsl: over(...).starting_from(...): GOT initial values do not make one state; give what the "
          "operator's seed takes (by default one value per component)");
};
template <bool Ok, fixed_string AXIS> struct start_is_before_the_scan {
  static_assert(
      Ok, "scandsl: over(AXIS).starting_from(...): an initial state cannot vary along the scanned AXIS");
};
template <bool Ok> struct last_of_a_scan {
  static_assert(Ok, "scandsl: last(...) takes scan(...) itself; apply functions to its result instead");
};
template <bool Ok, int GOT> struct function_arity {
  static_assert(Ok, "scandsl: fn: the function does not take GOT arguments");
};
template <bool Ok> struct function_gives_value {
  static_assert(Ok, "scandsl: fn: the function must return a value of the language");
};
template <bool Ok> struct restart_interval {
  static_assert(
      Ok, "scandsl: over(...).restart_every(k): k is an integer or a scalar<\"...\">, the same everywhere");
};
template <bool Ok> struct restart_offsets {
  static_assert(Ok,
                "scandsl: over(...).restart_at(offsets): offsets is a tensor<\"...\">, bare or with one axis "
                "(the segments)");
};
template <bool Ok> struct run_time_flag {
  static_assert(Ok, "scandsl: over(...).reversed(flag), .exclusive(flag): flag is a scalar<\"...\">");
};
template <bool Ok> struct optional_operand {
  static_assert(Ok, "scandsl: value_or(operand, number): operand is a tensor with its axes or a scalar");
};
template <bool Ok> struct takes_equations {
  static_assert(Ok,
                "scandsl: op<\"name\">(...) takes one or more equations out<\"y\">(axes...) = expression");
};
template <bool Ok, fixed_string TENSOR> struct bound {
  static_assert(Ok, "scandsl: run: TENSOR of the program is not bound; pass  TENSOR = view(...)");
};
template <bool Ok, fixed_string SCALAR> struct scalar_bound {
  static_assert(Ok, "scandsl: run: SCALAR of the program is not bound; pass  SCALAR = number");
};
template <bool Ok, fixed_string NAME> struct known {
  static_assert(Ok, "scandsl: run: NAME is bound, but the program has nothing of that name");
};
template <bool Ok, fixed_string NAME> struct bound_once {
  static_assert(Ok, "scandsl: run: NAME is bound twice");
};
template <bool Ok, fixed_string TENSOR, int EXPECTED, int GOT> struct rank {
  static_assert(
      Ok, "scandsl: run: the view bound to TENSOR has rank GOT, the program uses it with rank EXPECTED");
};
template <bool Ok, fixed_string TENSOR> struct writable {
  static_assert(Ok, "scandsl: run: the output TENSOR is bound to memory that is const");
};
template <bool Ok, fixed_string TENSOR> struct floating_elements {
  static_assert(Ok, "scandsl: run: TENSOR holds values: float, double, bfloat16 or float16");
};
template <bool Ok, fixed_string TENSOR> struct integer_elements {
  static_assert(Ok, "scandsl: run: the offsets TENSOR holds integers: std::int32_t or std::int64_t");
};
template <bool Ok, fixed_string NAME> struct bound_to_its_kind {
  static_assert(Ok, "scandsl: run: NAME is a tensor bound to a number, or a scalar bound to a view");
};
template <bool Ok> struct takes_bindings {
  static_assert(
      Ok, "scandsl: run: every argument after the executor is a binding  name = view(...) or name = number");
};

}  // namespace scandsl::check
