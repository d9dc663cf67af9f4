#pragma once
#include <tuple>

#include "scandsl/exec/bind.hpp"
#include "scandsl/exec/cuda/typed_run.cuh"
#include "scandsl/exec/validate.hpp"
#include "scandsl/pass/plan_cuda_kernel.hpp"

namespace scandsl {

namespace cuda_detail {

template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;

/// Tensor number I of P holds T number I. (nvcc cannot name kernels whose types have strings among their
/// arguments.)
template <const program& P, class... T> struct types_by_tensor {
  template <name Id>
  using of = std::tuple_element_t<static_cast<std::size_t>(P.find_tensor(Id)), std::tuple<T...>>;
};

/// The element types that bindings say; any_type where it is known at run time only.
template <class... B> struct types_of_bindings {
  static constexpr bool bind(const name& id) { return count_names<B...>(id) > 0; }
  template <name Id> static constexpr auto find() { return std::type_identity<float>{}; }  // not bound
  template <name Id, class First, class... Rest> static constexpr auto find() {
    if constexpr (First::text.value() != Id)
      return find<Id, Rest...>();
    else if constexpr (requires { typename decltype(First::view)::element; })
      return std::type_identity<std::remove_cv_t<typename decltype(First::view)::element>>{};
    else
      return std::type_identity<any_type>{};
  }
  template <name Id> using of = typename decltype(find<Id, B...>())::type;
};

/// What bindings say of the operands of P.
struct bound_types {
  bool known =
      true;  ///< those that are read or written at every step are of float32, bfloat16 or float16 each
  bool halves = false;  ///< what is written at every step is of 16 bits
};
template <const program& P, class... B, int... I>
auto by_tensor(std::integer_sequence<int, I...>)
    -> types_by_tensor<P, typename types_of_bindings<B...>::template of<P.tensors[I].id>...>;

template <const program& P, class... B> constexpr bound_types bound_types_of() {
  using types = types_of_bindings<B...>;
  bool known = !(detail::binds_double<B>() || ...), written = false, halves = true;
  for_each_index(
      std::make_integer_sequence<int, kernels_of<P>.programs.count>{}, [&]<int K>(index_constant<K>) {
        using group = kernel_group<P, K>;
        for_each_index(std::make_integer_sequence<int, group::value.tensors.count>{}, [&]<int T>(
                                                                                          index_constant<T>) {
          constexpr tensor_decl declared = group::value.tensors[T];
          if constexpr (declared.role != tensor_role::scratch && declared.role != tensor_role::positions) {
            if constexpr (types::bind(declared.id)) {
              using element = typename types::template of<declared.id>;
              constexpr bool half = is_half_type<element>;
              if (is_walked<group, T>) known = known && (half || std::is_same_v<element, float>);
              if (is_walked<group, T> && declared.role == tensor_role::output) {
                written = true;
                halves = halves && half;
              }
            }
          }
        });
      });
  return {known, written && halves};
}
/// Calls run(arithmetic, operands' types) with what the bindings say, or with what is found at run time. Not
/// one of the kernels for other types is compiled where the bindings say all.
template <const program& P, class... B, class Run> auto with_bound_types(const problem& bound, Run&& run) {
  constexpr bound_types types = bound_types_of<P, B...>();
  if constexpr (types.known)
    return run(std::type_identity<std::conditional_t<types.halves, approximate, float>>{},
               std::type_identity<decltype(by_tensor<P, B...>(
                   std::make_integer_sequence<int, P.tensors.count>{}))>{});
  else
    return with_types<P>(bound,
                         [&]<class C, class T>(std::type_identity<C> arithmetic, std::type_identity<T>) {
                           return run(arithmetic, std::type_identity<uniform_types<T>>{});
                         });
}

}  // namespace cuda_detail

/// Runs program P on the GPU: run<logcumsumexp>(cuda{stream}, x = view(px, B, N, D), y = view(py, B, N, D)),
/// with device pointers. Arguments, arithmetic, rounding and errors as on the CPU; the values of offsets are
/// not looked at, for they lie on the device. Throws cuda_error where a launch fails.
template <const program& P> void run(const cuda& executor, const problem& bound) {
  const iteration_space space = validate(P, bound, works_in_place<P>(), false);
  cuda_detail::with_types<P>(bound, [&]<class C, class T>(std::type_identity<C>, std::type_identity<T>) {
    cuda_detail::run_typed<P, C, cuda_detail::uniform_types<T>>(executor, bound, space);
  });
}
template <const program& P, class... B>
  requires(detail::is_binding<B> && ...)
void run(const cuda& executor, const B&... bindings) {
  const problem bound = bind<P>(bindings...);
  const iteration_space space = validate(P, bound, works_in_place<P>(), false);
  cuda_detail::with_bound_types<P, B...>(
      bound, [&]<class C, class Types>(std::type_identity<C>, std::type_identity<Types>) {
        cuda_detail::run_typed<P, C, Types>(executor, bound, space);
      });
}

/// Bytes of device memory that run<P> with the same arguments needs as the workspace of cuda, on a device of
/// as many multiprocessors. Where few long lanes are scanned in one sweep it runs with less, too, but on a
/// few multiprocessors only: up to a hundred times slower; and where many are along a strided axis, a few
/// hundredths slower.
template <const program& P> std::int64_t workspace_bytes(const problem& bound) {
  const iteration_space space = make_iteration_space(P, bound);
  return cuda_detail::with_types<P>(
      bound, [&]<class C, class T>(std::type_identity<C>, std::type_identity<T>) {
        return cuda_detail::size_typed<P, C, cuda_detail::uniform_types<T>>(bound, space).bytes;
      });
}
template <const program& P, class... B>
  requires(detail::is_binding<B> && ...)
std::int64_t workspace_bytes(const B&... bindings) {
  cuda_sizing sizing;
  run<P>(sizing, bindings...);
  return sizing.bytes;
}
/// ... and where device.with_carries is set, of memory for carries.
template <const program& P, class... B>
  requires(detail::is_binding<B> && ...)
void run(cuda_sizing& device, const B&... bindings) {
  const problem bound = bind<P>(bindings...);
  const iteration_space space = make_iteration_space(P, bound);
  device = cuda_detail::with_bound_types<P, B...>(
      bound, [&]<class C, class Types>(std::type_identity<C>, std::type_identity<Types>) {
        return cuda_detail::size_typed<P, C, Types>(bound, space, device.with_carries);
      });
}

}  // namespace scandsl
