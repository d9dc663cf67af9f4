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
      Ok,
      "scandsl: scan(op, over(AXIS), ...): no scanned operand has this AXIS; scan over one of its axes, or "
      "give an operand that varies along it (the arguments of an fn have no axes: scan outside of it)");
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
template <bool Ok, fixed_string TENSOR> struct indexed_by_axes {
  static_assert(Ok, "scandsl: TENSOR(...) takes axes, axis<\"n\"> n; TENSOR(n), or positions along them, "
                    "TENSOR(n[integer])");
};
template <bool Ok, fixed_string AXIS> struct axis_is_no_value {
  static_assert(Ok,
                "scandsl: AXIS stands where a value is taken; an axis is an index: TENSOR(AXIS), over(AXIS)");
};
template <bool Ok, int COMPONENTS> struct state_is_no_value {
  static_assert(Ok, "scandsl: a state of COMPONENTS stands where a value is taken; take it apart first: "
                    "auto [m, s] = state");
};
template <bool Ok> struct condition_is_no_bool {
  static_assert(
      Ok, "scandsl: a condition of the language is not known while the program is written; instead of if and "
          "?: use select(condition, a, b)");
};
template <bool Ok, fixed_string SCALAR> struct scalar_has_no_axes {
  static_assert(
      Ok, "scandsl: SCALAR is one number, the same everywhere; what varies along axes is a tensor<\"...\">");
};
template <bool Ok, fixed_string FUNCTION> struct takes_values {
  static_assert(
      Ok, "scandsl: FUNCTION takes values, but got a condition; turn it into a value with select(c, a, b), "
          "and write a < b < c as a < b && b < c");
};
template <bool Ok, fixed_string FUNCTION> struct takes_integers {
  static_assert(
      Ok,
      "scandsl: FUNCTION takes integers: index(axis), extent(axis), integer_tensor, integer_scalar, whole "
      "numbers, and what +, -, *, /, %, min, max and select make of them");
};
template <bool Ok, fixed_string AXIS> struct position_is_integer {
  static_assert(
      Ok, "scandsl: AXIS[position]: the position is an integer: index(axis), extent(axis), integer_tensor, "
          "integer_scalar, whole numbers, and what +, -, *, /, %, min, max and select make of them");
};
template <bool Ok, fixed_string TENSOR, fixed_string AXIS> struct position_is_apart {
  static_assert(
      Ok, "scandsl: TENSOR(..., AXIS[position], ...): a computed position varies along AXIS itself; give the "
          "dimension of TENSOR an axis of its own");
};
template <bool Ok, fixed_string TENSOR, int LIMIT> struct position_count {
  static_assert(Ok, "scandsl: TENSOR is read at more than LIMIT computed positions; merge some dimensions");
};
template <bool Ok> struct index_takes_an_axis {
  static_assert(Ok, "scandsl: index(...), extent(...), stack(...): the first argument is an axis<\"...\">");
};
template <bool Ok, fixed_string AXIS> struct stack_axis_is_new {
  static_assert(
      Ok, "scandsl: stack(AXIS, ...): what is stacked varies along AXIS already; stack along a new axis");
};
template <bool Ok> struct stack_takes_values {
  static_assert(Ok, "scandsl: stack(axis, a, b, ...) takes values, at least one");
};
template <bool Ok, fixed_string SCALAR> struct integer_takes_whole_number {
  static_assert(Ok, "scandsl: SCALAR = ... takes an integer");
};
template <bool Ok, fixed_string FUNCTION> struct takes_conditions {
  static_assert(Ok,
                "scandsl: FUNCTION takes a condition where it got a value; compare the value with something");
};
template <bool Ok> struct output_is_a_value {
  static_assert(
      Ok, "scandsl: an output takes a value, but got a condition; turn it into a value with select(c, a, b)");
};
template <bool Ok, fixed_string OUTPUT> struct output_has_axes {
  static_assert(
      Ok, "scandsl: out<OUTPUT> = expression: name its axes, out<OUTPUT>(axes...) = expression; a single "
          "number is out<OUTPUT>() = expression");
};
template <bool Ok, fixed_string OUTPUT> struct equation_is_assigned {
  static_assert(Ok,
                "scandsl: out<OUTPUT>(axes...) == expression compares; an equation is written with one =");
};
template <bool Ok, fixed_string TENSOR> struct output_is_declared {
  static_assert(
      Ok,
      "scandsl: TENSOR(axes...) = expression: an output is declared by out<TENSOR>(axes...) = expression");
};
template <bool Ok> struct over_takes_an_axis {
  static_assert(
      Ok, "scandsl: over(...) takes one axis<\"...\">; scan or sum over several axes one after the other");
};
template <bool Ok> struct scan_takes_operator {
  static_assert(
      Ok, "scandsl: scan(op, over(axis), operands...): op is a scan operator, plain_sum or another standard "
          "one, or made by scan_op(identity, lift, combine, project)");
};
template <bool Ok> struct scan_takes_over {
  static_assert(
      Ok, "scandsl: scan(op, over(axis), operands...), sum(over(axis), operand): write over(n), not n, and "
          "before the operands");
};
template <bool Ok> struct scan_takes_operands {
  static_assert(
      Ok, "scandsl: scan(op, over(axis), operands...): the operands, at least one, are values: tensors with "
          "axes, scalars, numbers, expressions");
};
template <bool Ok> struct scan_outside_functions {
  static_assert(
      Ok,
      "scandsl: scan(...) inside fn or a scan operator; scan outside, and pass the result as an argument");
};
template <bool Ok> struct state_of_values {
  static_assert(
      Ok, "scandsl: state(...) takes values, but got a condition; turn it into a value with select(c, a, b)");
};
template <bool Ok, fixed_string NAME> struct operator_is_closed {
  static_assert(
      Ok, "scandsl: scan_op: lift, combine and project use numbers and what they are given; NAME comes from "
          "outside: pass it to scan as one more operand, which lift takes");
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
  static_assert(
      Ok, "scandsl: fn: the function must return one value of the language (a condition is none: select)");
};
template <bool Ok, fixed_string NAME> struct function_is_closed {
  static_assert(Ok, "scandsl: fn: the function uses NAME from outside; pass it as an argument: "
                    "fn([](auto x, auto t) { ... })(x(n), NAME)");
};
template <bool Ok, int ARGUMENTS> struct rule_matches {
  static_assert(Ok, "scandsl: fn(...).derivative(rule): rule takes the ARGUMENTS arguments and then the "
                    "function's value; it "
                    "returns the derivative, or partials(...) of as many derivatives as there are arguments");
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
template <bool Ok> struct fallback_is_number {
  static_assert(Ok, "scandsl: value_or(operand, number): the fallback is a number, the same everywhere");
};
template <bool Ok> struct program_has_name {
  static_assert(Ok, "scandsl: op<\"name\">(equations...): give the program a name");
};
template <bool Ok> struct takes_equations {
  static_assert(Ok,
                "scandsl: op<\"name\">(...) takes one or more equations out<\"y\">(axes...) = expression");
};
template <bool Ok, fixed_string TENSOR> struct one_axis_list {
  static_assert(Ok, "scandsl: TENSOR is used with two different lists of axes; give two tensors two names");
};
template <bool Ok, fixed_string NAME> struct one_role {
  static_assert(
      Ok, "scandsl: NAME stands for two things (an input, an output, offsets or a scalar); give each its own "
          "name. A value that is used twice is a C++ variable: auto h = scan(...)");
};
template <bool Ok, fixed_string NAME> struct one_fallback {
  static_assert(Ok, "scandsl: NAME is used with and without value_or; write value_or(NAME, fallback) at "
                    "every use, or at none");
};
template <bool Ok, fixed_string OUTPUT> struct output_once {
  static_assert(Ok, "scandsl: two equations declare OUTPUT; give every output a name of its own");
};
template <bool Ok, fixed_string TENSOR, int LIMIT> struct rank_limit {
  static_assert(
      Ok, "scandsl: TENSOR has more than LIMIT axes; merge some: one axis may bind to several dimensions, "
          "dims{{...}, {...}}");
};
template <bool Ok, fixed_string TENSOR> struct binding_is_assigned {
  static_assert(Ok, "scandsl: TENSOR == view(...) compares; bind with one =");
};
template <bool Ok, fixed_string TENSOR> struct tensor_takes_view {
  static_assert(
      Ok, "scandsl: TENSOR = ... takes view(pointer, extents...); a number is bound to a scalar<\"...\">");
};
template <bool Ok, fixed_string SCALAR> struct scalar_takes_number {
  static_assert(Ok, "scandsl: SCALAR = ... takes a number; memory is bound to a tensor<\"...\">");
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
  static_assert(Ok, "scandsl: run: TENSOR holds integers: std::int32_t or std::int64_t");
};
template <bool Ok, fixed_string NAME> struct bound_to_its_kind {
  static_assert(Ok, "scandsl: run: NAME is a tensor bound to a number, or a scalar bound to a view");
};
template <bool Ok> struct run_takes_program {
  static_assert(
      Ok,
      "scandsl: run<program>(executor, bindings...): the program, made by op<\"name\">(...), is a template "
      "argument");
};
template <bool Ok> struct run_takes_executor {
  static_assert(Ok, "scandsl: run<program>(executor, bindings...): the first argument is an executor, cpu{}");
};
template <bool Ok> struct takes_bindings {
  static_assert(
      Ok, "scandsl: run: every argument after the executor is a binding  name = view(...) or name = number");
};

}  // namespace scandsl::check
