#pragma once
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
  std::int64_t pace_bytes = 0;
  if (saved == 0) result.paced_strips = find_pace<K>(result.plan, a, device, pace_bytes).strips;
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
    std::size_t number_of[static_cast<std::size_t>(kernels_of<P>.programs.count)] =
        {};  // among those that run
    for_each_index(std::make_integer_sequence<int, kernels_of<P>.programs.count>{}, [&]<int K>(
                                                                                        index_constant<K>) {
      if (cuda_detail::is_left_out<P, K>(space)) return;
      const program& p = kernel_program<P, K>;
      problem part = kernel_problem(P, bound, p, space, cuda_detail::scratch_dtype<C>);
      bool at_once = false;
      if constexpr (constexpr summed_parts summed = summed_parts_of<P, K>; summed.producer >= 0) {
        const auto by = [&](int number) -> cuda_kernel_summary& { return result.kernels[number_of[number]]; };
        const auto bytes = [&] {
          return detail::bytes_of(part.tensors[static_cast<std::size_t>(summed.tensor)].view);
        };
        at_once = cuda_detail::is_left_out<P, summed.producer>(space);
        const std::int64_t joined = bytes();
        cuda_detail::take_sums<P, K, C>(
            part, bound, space, [&]<int I>(index_constant<I>, int there) -> cuda_kernel_plan* {
              using leaving = cuda_detail::kernel_for<P, I, C, types>;
              cuda_kernel_plan& plan = by(I).plan;
              return parts_lie_as(plan, there, cuda_detail::tile_shape<leaving>()) ? &plan : nullptr;
            });
        if (!at_once) {  // parts are more
          by(summed.producer).written_bytes += bytes() - joined;
          result.moved_bytes += bytes() - joined;
        }
      }
      number_of[K] = result.kernels.size();
      result.kernels.push_back(cuda_detail::summarise<cuda_detail::kernel_for<P, K, C, types>>(
          p, kernel_table<P, K>, part, make_iteration_space(p, part), device));
      result.kernels.back().adds_at_once = at_once;
      result.moved_bytes += result.kernels.back().read_bytes + result.kernels.back().written_bytes;
    });
    result.workspace_bytes = cuda_detail::size_typed<P, C, types>(bound, space, false, device).bytes;
    const auto with_carries = cuda_detail::size_typed<P, C, types>(bound, space, true, device);
    result.carry_bytes = with_carries.carry_bytes;
    result.workspace_with_carries = with_carries.bytes;
  });
  return result;
}

}  // namespace scandsl
