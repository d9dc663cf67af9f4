#pragma once
#include <algorithm>
#include <functional>
#include <vector>

#include "scandsl/exec/cuda/run.cuh"
#include "scandsl/pass/explain_cuda.hpp"

namespace scandsl {
namespace cuda_detail {

/// Bytes of the tensors that sweep S of K reads at every step, or of those that all sweeps do.
template <class K, int S> std::int64_t bytes_read(const problem& bound, int& operands) {
  using group = typename K::group;
  bool read[max_tensors] = {};
  for_each_index(sequence_of<walked_loads<group, S>>{},
                 [&]<int I>(index_constant<I>) { read[node_at<group, I>.target] = true; });
  std::int64_t bytes = 0;
  operands = 0;
  for (int t = 0; t < K::tensors; ++t)
    if (const bound_tensor& b = bound.tensors[static_cast<std::size_t>(t)]; read[t] && b.bound) {
      bytes += detail::bytes_of(b.view);
      ++operands;
    }
  return bytes;
}

template <class K>
cuda_kernel_summary summarise(const program& p, const walk_table& table, const problem& bound,
                              const iteration_space& space, const cuda_device& device) {
  using fast = typename K::framed;
  using group = typename fast::group;
  using policy = tile_policy<K>;
  cuda_kernel_summary result{p, table, plan_cuda_kernel(p, table, bound, space, tile_shape<K>(), device)};
  auto a = make_arguments<K>(result.plan, p, table, bound, space);
  const std::int64_t saved = saved_bytes<K>(result.plan, a);
  with_arrangement<K>(result.plan, a, [&]<class A>(std::type_identity<A>) {
    result.tile_steps = A::in_stage ? static_cast<int>(steps_of_lane(a)) : A::tile_steps(a.lane_threads);
    result.one_tile = policy::streams && result.plan.lookback_tiles == 0 && runs_one_tile<A>(a);
  });
  for_each_index(std::make_integer_sequence<int, sweep_count<group>>{}, [&]<int S>(index_constant<S>) {
    cuda_sweep_summary sweep;
    const std::int64_t bytes = bytes_read<fast, S>(bound, sweep.operands_read);
    sweep.operands_written = table.sweep[S].stores.count;
    sweep.tallies = size_of_list<tallies_in<group, S>>;
    sweep.rotates = size_of_list<rotating_nodes<fast, stage_kind::sweep, S>> > 0 ||
                    size_of_list<rotating_nodes<fast, stage_kind::aggregate, S>> > 0;
    for (int q = 0; q < S; ++q)
      if (replays<group>(S, q)) sweep.computed_again.push_back(q);
    if (!result.one_tile) {
      // Pieces of several sweeps are gone through again where something comes of it.
      const bool matters =
          sweep_count<group> == 1
              ? !only_reduces<group, S>
              : sweep_has_scans<group, S> && (is_replayed<group>(S) || table.sweep[S].stores.count > 0);
      const bool twice = result.plan.pieces > 1 && matters;
      sweep.read_bytes = twice ? 2 * bytes : bytes;
      result.read_bytes += sweep.read_bytes;
      using C = typename fast::compute;
      if constexpr (is_replayed<group>(S) && saved_count<group, C> > 0)
        sweep.saved_bytes = saved * kept_count<group, C, S> / saved_count<group, C>;
      if (!sweep.computed_again.empty()) result.read_bytes += twice ? 2 * saved : saved;
      result.written_bytes += sweep.saved_bytes;
    }
    result.sweeps.push_back(sweep);
  });
  int unused = 0;
  if (result.one_tile) result.read_bytes += bytes_read<fast, all_sweeps>(bound, unused);
  for (const store_decl& store : p.stores)
    if (const bound_tensor& b = bound.tensors[static_cast<std::size_t>(store.tensor)]; b.bound)
      result.written_bytes += detail::bytes_of(b.view);
  return result;
}

/// Numbers of kernels that do not run, for later ones do what they would have done.
using left_out_kernels = std::vector<int>;

/// What planned_run does where kernel program K adds up what another one has left (take_parts_for): whether K
/// does that one's sum, too, which is left out then. Counts: what that changes in what is moved.
template <const program& P, int K, class C, class Types>
bool take_sums(problem& part, const problem& bound, const iteration_space& space, cuda_plan& plan,
               left_out_kernels& left_out, bool counts = true) {
  constexpr summed_parts summed = summed_parts_of<P, K>;
  if constexpr (summed.producer >= 0) {
    const program& other = kernel_program<P, summed.producer>;
    cuda_kernel_summary& by = plan.kernels[summed.producer];
    if constexpr (summed.before >= 0) {
      problem of_other = kernel_problem(P, bound, other, space, scratch_dtype<C>);
      take_sums<P, summed.producer, C, Types>(of_other, bound, space, plan, left_out, false);
      if (add_up_at_once(part, kernel_program<P, K>, summed, other, of_other)) {
        if (counts) {
          plan.moved_bytes -= by.read_bytes + by.written_bytes;
          left_out.push_back(summed.producer);
        }
        return true;
      }
    }
    using producer = kernel_for<P, summed.producer, C, Types>;
    if (!parts_lie_as(by.plan, summed.there, tile_shape<producer>())) return false;
    const erased_view& sums = part.tensors[static_cast<std::size_t>(summed.tensor)].view;
    const std::int64_t joined = detail::bytes_of(sums);
    take_parts(part, summed.tensor, by.plan);
    if (!counts) return false;
    by.written_bytes += detail::bytes_of(sums) - joined;
    plan.moved_bytes += detail::bytes_of(sums) - joined;
  }
  return false;
}

}  // namespace cuda_detail

/// How run<P> with the same arguments would go on a device like `device`. The views may be without memory:
/// shape<float>(B, N, D). What is read once a lane (initial states, lengths of sequences) is not counted as
/// moved.
template <const program& P, class... B> cuda_plan plan(const cuda_device& device, const B&... bindings) {
  const problem bound = bind<P>(bindings...);
  const iteration_space space = make_iteration_space(P, bound);
  cuda_plan result{P.id, device};
  for (int t = 0; t < P.tensors.count; ++t)
    if (const bound_tensor& each = bound.tensors[static_cast<std::size_t>(t)]; each.bound) {
      result.floor_bytes += detail::bytes_of(each.view);
      if (P.tensors[t].role == tensor_role::output) result.output_bytes += detail::bytes_of(each.view);
    }
  result.is_gradient = P.is_gradient;
  cuda_detail::with_bound_types<P, B...>(bound, [&]<class C, class types>(std::type_identity<C>,
                                                                          std::type_identity<types>) {
    cuda_detail::left_out_kernels left_out;
    for_each_index(
        std::make_integer_sequence<int, kernels_of<P>.programs.count>{}, [&]<int K>(index_constant<K>) {
          const program& p = kernel_program<P, K>;
          problem part = kernel_problem(P, bound, p, space, cuda_detail::scratch_dtype<C>);
          const bool at_once = cuda_detail::take_sums<P, K, C, types>(part, bound, space, result, left_out);
          result.kernels.push_back(cuda_detail::summarise<cuda_detail::kernel_for<P, K, C, types>>(
              p, kernel_table<P, K>, part, make_iteration_space(p, part), device));
          result.kernels.back().adds_at_once = at_once;
          result.moved_bytes += result.kernels.back().read_bytes + result.kernels.back().written_bytes;
        });
    std::sort(left_out.begin(), left_out.end(), std::greater<>{});
    for (const int each : left_out) result.kernels.erase(result.kernels.begin() + each);
    result.workspace_bytes = cuda_detail::size_typed<P, C, types>(bound, space, false, device).bytes;
    const auto with_carries = cuda_detail::size_typed<P, C, types>(bound, space, true, device);
    result.carry_bytes = with_carries.carry_bytes;
    result.workspace_with_carries = with_carries.bytes;
  });
  return result;
}

}  // namespace scandsl
