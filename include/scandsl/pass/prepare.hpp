#pragma once
#include "scandsl/pass/expand_sums.hpp"
#include "scandsl/pass/log_sum.hpp"
#include "scandsl/pass/schedule.hpp"
#include "scandsl/pass/simplify.hpp"
#include "scandsl/pass/sink.hpp"
#include "scandsl/pass/split.hpp"

namespace scandsl {

/// A program as executors take it: derivative rules dropped, sums as scans, log-add-exp carried as (max,
/// sum), simplified, functions that both sides of a flag share applied once.
constexpr program prepare(const program& p) {
  return sink_selects(simplify(log_sum(simplify(expand_sums(drop_rules(p))))));
}

/// The kernel programs of P and what goes with them, each as a constant of its own.
template <const program& P> inline constexpr kernel_programs kernels_of = split(prepare(P));
template <const program& P, int K> inline constexpr program kernel_program = kernels_of<P>.programs[K];
template <const program& P, int K>
inline constexpr schedule kernel_schedule = make_schedule(kernel_program<P, K>, kernels_of<P>.walked_axis[K]);
template <const program& P, int K>
inline constexpr walk_table kernel_table = make_walk_table(kernel_program<P, K>, kernel_schedule<P, K>);

/// An input may be overwritten in place when one kernel with one sweep reads it, and nothing is written
/// before that sweep.
template <const program& P> constexpr bool works_in_place() {
  if (kernels_of<P>.programs.count != 1) return false;
  constexpr const schedule& only = kernel_schedule<P, 0>;
  return only.sweeps == 0 || (only.sweeps == 1 && only.boundary[0].stores.count == 0);
}

}  // namespace scandsl
