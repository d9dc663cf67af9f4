#pragma once
#include <array>
#include <optional>
#include <tuple>

#include "scandsl/exec/cuda/planned_kernel.cuh"
#include "scandsl/exec/cuda_workspace.hpp"
#include "scandsl/pass/kernel_problem.hpp"
#include "scandsl/pass/prepare.hpp"

/// Runs of a program whose operands' types are settled, and how they are settled when it runs. What a user
/// calls is in run.cuh; libraries of many programs include this alone, which is less to read for each file.
namespace scandsl::cuda_detail {

template <const program& P, int K> struct framed_group;
template <const program& P, int K> struct kernel_group {
  static constexpr const program& value = kernel_program<P, K>;
  static constexpr const schedule& plan = kernel_schedule<P, K>;
  static constexpr bool only_rows = has_rows_alone<P, K>, only_strips = has_strips_alone<P, K>;
  static constexpr bool is_gradient = P.is_gradient;
  using robust = kernel_group;
  using framed = std::conditional_t<has_framed_program<P, K>, framed_group<P, K>, kernel_group>;
};
/// The same kernel program for tiles in which log-sums have a frame.
template <const program& P, int K> struct framed_group {
  static constexpr const program& value = framed_program<P, K>;
  static constexpr const schedule& plan = framed_schedule<P, K>;
  static constexpr bool only_rows = has_rows_alone<P, K>, only_strips = has_strips_alone<P, K>;
  static constexpr bool is_gradient = P.is_gradient;
  using robust = kernel_group<P, K>;
  using framed = framed_group;
};

/// Every operand that is read or written at every step holds T.
template <class T> struct uniform_types {
  template <name> using of = T;
};
template <const program& P, int K, class C, class Types, int T> constexpr auto element_type() {
  using group = kernel_group<P, K>;
  constexpr tensor_decl declared = group::value.tensors[T];
  if constexpr (!is_walked<group, T>)
    return std::type_identity<any_type>{};
  else if constexpr (declared.role == tensor_role::scratch)
    return std::type_identity<typename scratch_type_of<C>::type>{};
  else
    return std::type_identity<typename Types::template of<declared.id>>{};
}
template <const program& P, int K, class C, class Types, class Sequence> struct make_kernel;
template <const program& P, int K, class C, class Types, int... T>
struct make_kernel<P, K, C, Types, std::integer_sequence<int, T...>> {
  using type =
      typed_kernel<kernel_group<P, K>, C, typename decltype(element_type<P, K, C, Types, T>())::type...>;
};
/// Whether kernel program K of P goes through nothing but what others left, which is of C in any case, if it
/// goes through anything.
template <const program& P, int K> constexpr bool find_walks_scratch() {
  bool only_scratch = true;
  for_each_index(
      std::make_integer_sequence<int, kernel_program<P, K>.tensors.count>{}, [&]<int T>(index_constant<T>) {
        if constexpr (is_walked<kernel_group<P, K>, T>)
          only_scratch = only_scratch && kernel_program<P, K>.tensors[T].role == tensor_role::scratch;
      });
  return only_scratch;
}
/// Kernel program K of P for arithmetic in C and the operands' types. (Where there are no operands of 16
/// bits, arithmetic for them has kernels in common with float32.)
template <const program& P, int K, class C, class Types>
using kernel_for =
    typename make_kernel<P, K,
                         std::conditional_t<find_walks_scratch<P, K>(), typename scratch_type_of<C>::type, C>,
                         Types, std::make_integer_sequence<int, kernel_program<P, K>.tensors.count>>::type;

/// Blocks of a cluster at most: 8 from compute capability 9.0 on, twice as many on large devices of 9.0; 1
/// where the code that runs there was made for an older one.
inline int most_cluster_blocks(int device, int multiprocessors) {
  int major = 0, minor = 0;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess)
    return 1;
  const int capability = 100 * major + 10 * minor;
#ifdef __CUDA_ARCH_LIST__
  int chosen = 0;
  for (const int made_for : {__CUDA_ARCH_LIST__})
    if (made_for <= capability) chosen = larger(chosen, made_for);
  if (chosen < 900) return 1;
#endif
  if (capability < 900) return 1;
  return capability == 900 && multiprocessors >= 100 ? cuda_row_policy::most_blocks : 8;
}

/// Of every device: asked once, for it takes longer than a plan.
struct known_devices {
  std::vector<cuda_device> all;
  known_devices() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) return;
    for (int index = 0; index < count; ++index) {
      cuda_device device;
      if (cudaDeviceGetAttribute(&device.multiprocessors, cudaDevAttrMultiProcessorCount, index) !=
              cudaSuccess ||
          cudaDeviceGetAttribute(&device.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, index) !=
              cudaSuccess)
        device = {};
      device.cluster_blocks = most_cluster_blocks(index, device.multiprocessors);
      all.push_back(device);
    }
  }
};
/// The device that is current, or where there is none, one to plan for.
inline cuda_device current_device() {
  static const known_devices known;
  int index = 0;
  if (cudaGetDevice(&index) != cudaSuccess || static_cast<std::size_t>(index) >= known.all.size()) return {};
  return known.all[static_cast<std::size_t>(index)];
}

/// Whether the operands that are read or written at every step hold what `Types` says.
template <const program& P, class Types> bool types_fit(const problem& bound) {
  bool fit = true;
  for_each_index(
      std::make_integer_sequence<int, kernels_of<P>.programs.count>{}, [&]<int K>(index_constant<K>) {
        using group = kernel_group<P, K>;
        for_each_index(
            std::make_integer_sequence<int, group::value.tensors.count>{}, [&]<int T>(index_constant<T>) {
              constexpr tensor_decl declared = group::value.tensors[T];
              if constexpr (is_walked<group, T> && declared.role != tensor_role::scratch) {
                const bound_tensor& b = bound.tensors[static_cast<std::size_t>(P.find_tensor(declared.id))];
                if (!b.bound) return;
                fit = fit && dtype_of<typename Types::template of<declared.id>> == b.view.type;
              }
            });
      });
  return fit;
}

/// The node's number of "scratch N", a tensor that lies between kernel programs: the same in all of them.
constexpr int scratch_number(const name& id) {
  int number = 0;
  for (const char c : id.view().substr(8)) number = number * 10 + (c - '0');
  return number;
}

/// Whether another kernel adds up, along an axis one long, what kernel program K would have: K does not run.
template <const program& P, int K> bool is_left_out([[maybe_unused]] const iteration_space& space) {
  if constexpr (adder_of<P, K> < 0) {
    return false;
  } else {
    constexpr const program& p = kernel_program<P, adder_of<P, K>>;
    constexpr int axis = P.find_axis(p.axes[p.scans[0].axis]);
    return space.extent[axis] == 1;
  }
}
/// Where kernel program K adds up what another one has left, has `part`, its problem, say where that is: in
/// parts, or what the other one would have added up. leaves_parts(index_constant<other>{}, tensor): the plan
/// of a kernel that leaves that tensor in parts, or null.
template <const program& P, int K, class C, class LeavesParts>
void take_sums(problem& part, const problem& bound, const iteration_space& space,
               LeavesParts&& leaves_parts) {
  constexpr summed_parts summed = summed_parts_of<P, K>;
  if constexpr (summed.producer >= 0) {
    constexpr int other = summed.producer;
    if (is_left_out<P, other>(space)) {
      problem of_other = kernel_problem(P, bound, kernel_program<P, other>, space, scratch_dtype<C>);
      take_sums<P, other, C>(of_other, bound, space, leaves_parts);
      add_up_at_once(part, kernel_program<P, K>, summed, kernel_program<P, other>, of_other);
    } else if constexpr (summed.parts) {
      if (cuda_kernel_plan* const of = leaves_parts(index_constant<other>{}, summed.there))
        take_parts(part, summed.tensor, *of);
    }
  }
}

/// A run with the types settled: all of P's kernel programs, planned before one is launched.
template <const program& P, class C, class Types> class planned_run {
public:
  planned_run(const problem& bound, const iteration_space& space, const cuda_device& device,
              workspace_layout& workspace, bool with_carries) {
    place_of.fill(workspace_layout::nowhere);
    for_each_kernel([&]<int K>(index_constant<K>) {
      const bool may_keep = with_carries && may_keep_carries<K>() && carry_bytes() == 0;
      if constexpr (has_same_operands(P, kernel_program<P, K>)) {
        plan<K>(bound, space, device, workspace, may_keep);
      } else {
        problem part = kernel_problem(P, bound, kernel_program<P, K>, space, scratch_dtype<C>);
        find_sums<K>(part, bound, space);
        if (is_left_out<P, K>(space)) return;
        plan<K>(part, make_iteration_space(kernel_program<P, K>, part), device, workspace, may_keep);
      }
    });
  }

  /// Of the carries that one of the kernels leaves or finds.
  std::int64_t carry_bytes() {
    std::int64_t bytes = 0;
    for_each_kernel([&]<int K>(index_constant<K>) {
      if (const auto& kernel = std::get<K>(kernels).kernel) bytes += kernel->carry_bytes();
    });
    return bytes;
  }

  /// `workspace`: where place 0 is.
  void launch(char* workspace, void* carries, cudaStream_t stream) {
    launch_stream on{stream};
    for_each_kernel([&]<int K>(index_constant<K>) {
      auto& [kernel, scratch] = std::get<K>(kernels);
      if (!kernel) return;  // it is left out
      for_each_scratch(kernel_program<P, K>,
                       [&](int t, std::int64_t& place) { kernel->place(t, workspace + place); });
      kernel->launch(scratch == workspace_layout::nowhere ? nullptr : workspace + scratch, carries, on);
    });
  }

private:
  static constexpr int count = kernels_of<P>.programs.count;
  template <class K> struct kernel_and_scratch {
    std::optional<planned_kernel<K>> kernel;
    std::int64_t scratch = workspace_layout::nowhere;
  };
  template <class Sequence> struct all_kernels;
  template <int... K> struct all_kernels<std::integer_sequence<int, K...>> {
    using type = std::tuple<kernel_and_scratch<kernel_for<P, K, C, Types>>...>;
  };

  typename all_kernels<std::make_integer_sequence<int, count>>::type kernels;
  std::array<std::int64_t, count == 1 ? 1 : max_nodes> place_of;  ///< of tensors between kernels, by number

  template <class F> static void for_each_kernel(F&& f) {
    for_each_index(std::make_integer_sequence<int, count>{}, f);
  }
  /// f(tensor, its place)
  template <class F> void for_each_scratch(const program& p, F&& f) {
    if constexpr (count > 1)
      for (int t = 0; t < p.tensors.count; ++t)
        if (p.tensors[t].role == tensor_role::scratch)
          f(t, place_of[static_cast<std::size_t>(scratch_number(p.tensors[t].id))]);
  }

  /// A scan of one sweep leaves carries if it is all there is; of a gradient's kernels the first that can
  /// finds them.
  template <int K> static constexpr bool may_keep_carries() {
    return count == 1 || kernel_schedule<P, K>.sweeps > 1;
  }

  template <int K, int Tensor> std::int64_t& place_in() {
    return place_of[static_cast<std::size_t>(scratch_number(kernel_program<P, K>.tensors[Tensor].id))];
  }
  /// Where what kernel program K adds up lies.
  template <int K> void find_sums(problem& part, const problem& bound, const iteration_space& space) {
    constexpr summed_parts summed = summed_parts_of<P, K>;
    if constexpr (summed.producer >= 0) {
      constexpr int other = summed.producer;
      const auto leaves_parts = [&]<int I>(index_constant<I>, int there) -> cuda_kernel_plan* {
        auto& [kernel, scratch] = std::get<I>(kernels);
        return scratch != workspace_layout::nowhere && kernel->can_leave_parts(there) ? &kernel->planned()
                                                                                      : nullptr;
      };
      take_sums<P, K, C>(part, bound, space, leaves_parts);
      if (is_left_out<P, other>(space)) {
        if constexpr (summed.before >= 0) place_in<K, summed.tensor>() = place_in<other, summed.before>();
      } else if (summed.parts && leaves_parts(index_constant<other>{}, summed.there) != nullptr) {
        place_in<K, summed.tensor>() = std::get<other>(kernels).scratch;
      }
    }
  }

  template <int K>
  void plan(const problem& part, const iteration_space& space, const cuda_device& device,
            workspace_layout& workspace, bool with_carries) {
    const program& p = kernel_program<P, K>;
    for_each_scratch(p, [&](int t, std::int64_t& place) {
      if (place != workspace_layout::nowhere) return;
      const erased_view& view = part.tensors[static_cast<std::size_t>(t)].view;
      std::int64_t elements = 1;
      for (int a = 0; a < view.rank; ++a) elements *= view.axis[a].count();
      place = workspace.take(larger<std::int64_t>(1, elements) * static_cast<std::int64_t>(sizeof(C)));
    });
    auto& [kernel, scratch] = std::get<K>(kernels);
    kernel.emplace(p, kernel_table<P, K>, part, space, device, true, with_carries);
    if (kernel->scratch_bytes() == 0) return;
    // What sweeps save is needed; a look-back, or pieces, without memory are a walk, and strips have no pace.
    scratch = kernel->can_do_without() ? workspace.take_if_there(kernel->scratch_bytes())
                                       : workspace.take(kernel->scratch_bytes());
    if (scratch != workspace_layout::nowhere || kernel->forget_pace()) return;
    kernel.emplace(p, kernel_table<P, K>, part, space, device, false, false);
    if (kernel->scratch_bytes() > 0) scratch = workspace.take(kernel->scratch_bytes());
  }
};

/// Runs with the types settled.
template <const program& P, class C, class Types>
void run_typed(const cuda& executor, const problem& bound, const iteration_space& space,
               const cuda_device& device = current_device()) {
  workspace_layout workspace(executor);
  planned_run<P, C, Types> planned(bound, space, device, workspace, executor.carries.bytes > 0);
  const std::int64_t carry_bytes = planned.carry_bytes();
  if (carry_bytes > 0 && (carry_bytes != executor.carries.bytes || executor.carries.data == nullptr ||
                          reinterpret_cast<std::uintptr_t>(executor.carries.data) % sizeof(double) != 0))
    throw argument_error(
        message("carries of ", carry_bytes, " bytes for ", P.id.view()),
        message(executor.carries.bytes, executor.carries.data == nullptr ? " at no address" : ""),
        "give what cuda_sizing asks for, aligned as cudaMalloc's");
  planned.launch(workspace.memory(executor, P.id), executor.carries.data, executor.stream);
}
/// What that needs.
template <const program& P, class C, class Types>
cuda_sizing size_typed(const problem& bound, const iteration_space& space, bool with_carries = false,
                       const cuda_device& device = current_device()) {
  workspace_layout workspace;
  planned_run<P, C, Types> planned(bound, space, device, workspace, with_carries);
  return {workspace.bytes(), with_carries, planned.carry_bytes()};
}

/// The element types that a program has kernels of their own for, where its operands have one of them.
struct typed_elements {
  bool float32 = true, bfloat16 = true, float16 = true, float64 = true;
};

/// Calls run(arithmetic, element type) for the operands' types. Types<T>: what they hold in the kernels for
/// T.
template <const program& P, typed_elements Typed = typed_elements{},
          template <class> class Types = uniform_types, class Run>
auto with_types(const problem& bound, Run&& run) {
  const bool in_double = detail::computes_in_double(P, bound);
  if constexpr (Typed.float64)
    if (in_double && types_fit<P, Types<double>>(bound))
      return run(std::type_identity<double>{}, std::type_identity<double>{});
  if (in_double) return run(std::type_identity<double>{}, std::type_identity<any_type>{});
  if constexpr (Typed.float32)
    if (types_fit<P, Types<float>>(bound))
      return run(std::type_identity<float>{}, std::type_identity<float>{});
  if constexpr (Typed.bfloat16)
    if (types_fit<P, Types<bfloat16>>(bound))
      return run(std::type_identity<approximate>{}, std::type_identity<bfloat16>{});
  if constexpr (Typed.float16)
    if (types_fit<P, Types<float16>>(bound))
      return run(std::type_identity<approximate>{}, std::type_identity<float16>{});
  return run(std::type_identity<float>{}, std::type_identity<any_type>{});
}

}  // namespace scandsl::cuda_detail
