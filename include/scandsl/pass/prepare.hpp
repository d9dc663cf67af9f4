#pragma once
#include "scandsl/pass/address.hpp"
#include "scandsl/pass/expand_sums.hpp"
#include "scandsl/pass/in_place.hpp"
#include "scandsl/pass/log_sum.hpp"
#include "scandsl/pass/schedule.hpp"
#include "scandsl/pass/simplify.hpp"
#include "scandsl/pass/sink.hpp"
#include "scandsl/pass/split.hpp"
#include "scandsl/pass/summed_parts.hpp"
#include "scandsl/pass/telescope.hpp"
#include "scandsl/pass/unmask.hpp"

namespace scandsl {

/// A program as executors take it: derivative rules dropped, stacks written out, sums as scans, those where
/// angles turn first, log-add-exp carried as (max, sum), simplified, functions that both sides of a flag
/// share applied once, positions as loads.
constexpr program prepare(const program& p) {
  const program written_out = unroll(drop_rules(has_sums_of_angles(p) ? sum_where_angles_rotate(p) : p));
  return address(sink_selects(simplify(log_sum(simplify(expand_sums(simplify(written_out)))))));
}

/// P as a CPU walks it: sums begin along the axis along which angles may turn. (On a GPU the sines that many
/// sequences share on a grid cost less than turns of each.)
template <const program& P>
inline constexpr program turning_program = [] {
  program p = sum_where_angles_may_turn(P);
  p.reduces_apart = P.reduces_apart;
  p.only_rows = P.only_rows;
  p.contiguous_axis = P.contiguous_axis;
  return p;
}();
template <const program& P>
inline constexpr bool has_turning_program =
    has_sums_of_angles(P) && sum_where_angles_may_turn(P) != sum_where_angles_rotate(P);
template <const program& P> constexpr const program& pick_walked_program() {
  if constexpr (has_turning_program<P>)
    return turning_program<P>;
  else
    return P;
}
template <const program& P> inline constexpr const program& walked_program = pick_walked_program<P>();

/// The kernel programs of P and what goes with them, each as a constant of its own.
template <const program& P> inline constexpr kernel_programs kernels_of = split(prepare(P), P.reduces_apart);
template <const program& P, int K> inline constexpr program kernel_program = kernels_of<P>.programs[K];
template <const program& P, int K>
inline constexpr summed_parts summed_parts_of = find_summed_parts(kernels_of<P>, K);
template <const program& P, int K> inline constexpr int adder_of = find_adder(kernels_of<P>, K);
template <const program& P, int K>
inline constexpr schedule kernel_schedule = make_schedule(kernel_program<P, K>, kernels_of<P>.walked_axis[K]);
template <const program& P, int K>
inline constexpr walk_table kernel_table = make_walk_table(kernel_program<P, K>, kernel_schedule<P, K>);

/// Whether the walked axis of kernel program K is contiguous in calls that matter, and another one is:
/// nothing is compiled for strips, or for rows.
template <const program& P, int K>
inline constexpr bool has_rows_alone =
    P.only_rows || (kernel_schedule<P, K>.axis >= 0 &&
                    kernel_schedule<P, K>.axis == kernel_program<P, K>.find_axis(P.contiguous_axis));
template <const program& P, int K>
inline constexpr bool has_strips_alone = !has_rows_alone<P, K> && kernel_schedule<P, K>.axis >= 0 &&
                                         kernel_program<P, K>.find_axis(P.contiguous_axis) >= 0;

/// The other way to walk a kernel program, where there is one.
template <const program& P, int K> inline constexpr bool has_other_walk = kernels_of<P>.has_other[K];
template <const program& P, int K>
inline constexpr schedule other_schedule = make_schedule(kernel_program<P, K>, kernels_of<P>.other_axis[K]);
template <const program& P, int K>
inline constexpr walk_table other_table = make_walk_table(kernel_program<P, K>, other_schedule<P, K>);

/// The kernel programs as kernels take them that hold the m of log-sums fixed.
template <const program& P, int K> constexpr program make_framed_program() {
  if (kernel_schedule<P, K>.sweeps < 2) return kernel_program<P, K>;
  const program scaled = telescope(kernel_program<P, K>);
  return log_sums_hold_frames(scaled, make_schedule(scaled, kernels_of<P>.walked_axis[K])) ? unmask(scaled)
                                                                                           : scaled;
}
template <const program& P, int K> inline constexpr program framed_program = make_framed_program<P, K>();
template <const program& P, int K>
inline constexpr schedule framed_schedule = make_schedule(framed_program<P, K>, kernels_of<P>.walked_axis[K]);
/// Whether they are others.
template <const program& P, int K>
inline constexpr bool has_framed_program =
    is_telescoped(framed_program<P, K>)
        ? scales_hold_frames(framed_program<P, K>, framed_schedule<P, K>)
        : has_masked_shares(kernel_program<P, K>) && !has_masked_shares(framed_program<P, K>);

/// What may be overwritten in place, by the tensors of P: nothing where values cross from one kernel to
/// another.
template <const program& P> constexpr in_place_pairs works_in_place() {
  // (A program of which a CPU walks another form sums along several axes: in several kernels, either way.)
  if constexpr (kernels_of<P>.programs.count == 1)
    return find_in_place(P, kernel_program<P, 0>, kernel_schedule<P, 0>);
  else
    return {};
}

}  // namespace scandsl
