#pragma once
#include <algorithm>

#include "scandsl/exec/bind.hpp"
#include "scandsl/exec/cpu/driver.hpp"
#include "scandsl/pass/explain.hpp"

namespace scandsl {

/// The CPU executor. `threads` 0: as many as OpenMP would use.
struct cpu {
  int threads = 0;
};

namespace cpu_detail {

/// The iteration space of what is bound to P. Throws as run() does.
template <const program& P> iteration_space validated(const problem& bound) {
  return validate(P, bound, works_in_place<P>());
}

/// Other: the other way to walk.
template <const program& P, int K, bool Other> struct kernel_group {
  static constexpr const program& value = kernel_program<P, K>;
  static constexpr const schedule& plan = Other ? other_schedule<P, K> : kernel_schedule<P, K>;
};
/// Calls f(whether it is the other one) for the way to walk kernel program K: that along which angles may
/// turn, which they do not in float64, else the first, but where it is short.
template <const program& P, int K, bool InDouble, class F>
decltype(auto) with_walk(const iteration_space& of_kernel, F&& f) {
  if constexpr (has_other_walk<P, K>) {
    constexpr int axis = kernels_of<P>.walked_axis[K];
    if constexpr (any_rotates(other_table<P, K>) && !InDouble)
      return f(std::true_type{});
    else if constexpr (axis >= 0)
      if (of_kernel.extent[static_cast<std::size_t>(axis)] < walk_policy::fewest_steps)
        return f(std::true_type{});
  }
  return f(std::false_type{});
}

template <class Group, class C> void combine_scalars(int scan, C* left, const C* right) {
  for_each_index(std::make_integer_sequence<int, Group::value.scans.count>{}, [&]<int S>(index_constant<S>) {
    if (S != scan) return;
    constexpr int components = Group::value.scans[S].components;
    using combine = combiner<Group, S, all_components<Group, S>>;
    typename combine::template states<C> l, r;
    std::copy_n(left, components, l.begin());
    std::copy_n(right, components, r.begin());
    combine::apply(l, r);
    std::copy_n(l.begin(), components, left);
  });
}

template <const program& P, int K, bool Other, class C> kernel_set<C> make_kernel_set() {
  using group = kernel_group<P, K, Other>;
  constexpr int sweeps = group::plan.sweeps;
  kernel_set<C> set;
  set.p = &group::value;
  set.table = Other ? &other_table<P, K> : &kernel_table<P, K>;
  set.combine = combine_scalars<group, C>;
  for_each_index(std::make_integer_sequence<int, sweeps>{}, [&]<int I>(index_constant<I>) {
    set.sweep[I] = stage_kernel<group, stage_kind::sweep, I, C>::run;
    if constexpr (group::plan.sweep[I].has_scans)
      set.aggregate[I] = stage_kernel<group, stage_kind::aggregate, I, C>::run;
  });
  for_each_index(std::make_integer_sequence<int, sweeps + 1>{}, [&]<int I>(index_constant<I>) {
    set.boundary[I] = stage_kernel<group, stage_kind::boundary, I, C>::run;
  });
  if constexpr (is_reduction(group::value)) {
    set.rows = row_kernel<group, C>::run;
    set.row_axis = row_kernel<group, C>::axis;
    set.value_rows = row_kernel<group, C>::value_rows;
  }
  return set;
}

/// Memory for the scratch tensors of a run, by name.
template <class C> class scratch_memory {
public:
  C* get(const name& id, std::int64_t count) {
    for (auto& [held, values] : tensors)
      if (held == id) return values.get();
    tensors.emplace_back(
        id, std::make_unique_for_overwrite<C[]>(static_cast<std::size_t>(std::max<std::int64_t>(count, 1))));
    return tensors.back().second.get();
  }

private:
  std::vector<std::pair<name, std::unique_ptr<C[]>>> tensors;
};

inline int threads_of(const cpu& executor) {
  return executor.threads > 0 ? executor.threads : available_threads();
}

template <const program& P, class C>
void run_as(const cpu& executor, const problem& bound, const iteration_space& space) {
  scratch_memory<C> scratch;
  constexpr const program& walked = walked_program<P>;
  static_assert(!has_turning_program<P> ||
                    (kernels_of<P>.programs.count > 1 && kernels_of<walked>.programs.count > 1),
                "works_in_place allows what P in one kernel may");
  for_each_index(
      std::make_integer_sequence<int, kernels_of<walked>.programs.count>{}, [&]<int K>(index_constant<K>) {
        const program& kernel = kernel_program<walked, K>;
        problem part = kernel_problem(P, bound, kernel, space, dtype_of<C>);
        for (int t = 0; t < kernel.tensors.count; ++t)
          if (kernel.tensors[t].role == tensor_role::scratch) {
            erased_view& view = part.tensors[static_cast<std::size_t>(t)].view;
            std::int64_t count = 1;
            for (int a = 0; a < view.rank; ++a) count *= view.axis[a].count();
            view.data = scratch.get(kernel.tensors[t].id, count);
          }
        const iteration_space of_kernel = make_iteration_space(kernel, part);
        with_walk<walked, K, std::is_same_v<C, double>>(
            of_kernel, [&]<bool Other>(std::bool_constant<Other>) {
              run_kernel<C>(make_kernel_set<walked, K, Other, C>(), part, of_kernel, threads_of(executor));
            });
      });
}

template <const program& P, bool MayBeDouble> void run_bound(const cpu& executor, const problem& bound) {
  const iteration_space space = validated<P>(bound);
  if constexpr (MayBeDouble)
    if (detail::computes_in_double(P, bound)) return run_as<P, double>(executor, bound, space);
  run_as<P, float>(executor, bound, space);
}

template <const program& P> cpu_plan plan_bound(const cpu_device& device, const problem& bound) {
  const bool in_double = detail::computes_in_double(P, bound);
  constexpr const program& walked = walked_program<P>;
  cpu_plan result{P.id, device, in_double, {}};
  const iteration_space space = make_iteration_space(P, bound);
  for (int t = 0; t < P.tensors.count; ++t)
    if (const bound_tensor& each = bound.tensors[static_cast<std::size_t>(t)]; each.bound) {
      result.floor_bytes += detail::bytes_of(each.view);
      if (P.tensors[t].role == tensor_role::output) result.output_bytes += detail::bytes_of(each.view);
    }
  for_each_index(
      std::make_integer_sequence<int, kernels_of<walked>.programs.count>{}, [&]<int K>(index_constant<K>) {
        const problem part = kernel_problem(P, bound, kernel_program<walked, K>, space,
                                            in_double ? dtype::float64 : dtype::float32);
        const iteration_space of_kernel = make_iteration_space(kernel_program<walked, K>, part);
        const auto summarise = [&]<bool Other>(std::bool_constant<Other>) {
          const walk_table& table = Other ? other_table<walked, K> : kernel_table<walked, K>;
          result.kernels.push_back(summarise_kernel(kernel_program<walked, K>, table, part, device));
        };
        if (in_double)
          with_walk<walked, K, true>(of_kernel, summarise);
        else
          with_walk<walked, K, false>(of_kernel, summarise);
        result.moved_bytes += result.kernels.back().read_bytes + result.kernels.back().written_bytes;
        result.scratch_bytes += written_scratch_bytes(kernel_program<walked, K>, part);
      });
  return result;
}

}  // namespace cpu_detail

/// Runs program P on the CPU: run<logcumsumexp>(cpu{}, x = view(px, B, N, D), y = view(py, B, N, D)).
/// Every tensor and scalar that is not optional is bound, by name. Arithmetic is in float64 where an operand
/// is, in float32 otherwise; each output is rounded once, to its own type. Throws shape_error, dtype_error,
/// argument_error or overlap_error before anything is written. Zero extents are fine.
template <const program& P, class... B> void run(const cpu& executor, const B&... bindings) {
  constexpr bool may_be_double = (detail::binds_double<B>() || ...);
  cpu_detail::run_bound<P, may_be_double>(executor, bind<P>(bindings...));
}

/// The same with operands that were bound at run time.
template <const program& P> void run(const cpu& executor, const problem& bound) {
  cpu_detail::run_bound<P, true>(executor, bound);
}

/// How run<P> with the same arguments would go on a device like `device`. The views may be without memory:
/// shape<float>(B, N, D).
template <const program& P, class... B> cpu_plan plan(const cpu_device& device, const B&... bindings) {
  return cpu_detail::plan_bound<P>(device, bind<P>(bindings...));
}
/// On this machine.
template <const program& P, class... B> cpu_plan plan(const cpu& executor, const B&... bindings) {
  using namespace cpu_detail;
  const problem bound = bind<P>(bindings...);
  const bool in_double = detail::computes_in_double(P, bound);
  return plan_bound<P>({threads_of(executor), in_double ? pack_width<double> : pack_width<float>}, bound);
}

}  // namespace scandsl
