#pragma once
#include "scandsl/core/order.hpp"
#include "scandsl/pass/problem.hpp"

/// The problem of one kernel program, and small questions about it that every plan asks.
namespace scandsl {
namespace detail {

/// The distinct elements of a view, in bytes: dimensions of stride 0 repeat memory.
inline std::int64_t bytes_of(const erased_view& view) {
  std::int64_t count = 1;
  for (int i = 0; i < view.rank; ++i)
    for (const dim& d : view.axis[i])
      if (d.stride != 0 || d.extent == 0) count *= d.extent;
  return count * static_cast<std::int64_t>(size_of(view.type));
}

/// How often a scan restarts: the value of its node `every`; 0: never.
inline std::int64_t restart_interval(const program& p, const problem& bound, node_id n) {
  if (n == no_node) return 0;
  const double value = p.nodes[n].op == opcode::constant
                           ? p.nodes[n].value
                           : bound.parameters[static_cast<std::size_t>(p.nodes[n].target)];
  return value >= 1.0 ? static_cast<std::int64_t>(smaller(value, 0x1p62)) : 0;
}

/// Arithmetic is in float64 where an operand is.
inline bool computes_in_double(const program& p, const problem& bound) {
  for (int t = 0; t < p.tensors.count; ++t)
    if (bound.tensors[static_cast<std::size_t>(t)].bound &&
        bound.tensors[static_cast<std::size_t>(t)].view.type == dtype::float64)
      return true;
  return false;
}

}  // namespace detail

namespace detail {

/// Takes the dimensions that the kernel reads at one position out of a view, which goes to that position.
inline void slice(erased_view& view, const tensor_decl& declared) {
  for (int i = 0; i < declared.axes.count; ++i) {
    if (declared.place[i] <= 0) continue;
    const std::int64_t offset = offset_at(view.axis[i], declared.place[i] - 1);
    if (view.data != nullptr)
      view.data = static_cast<char*>(view.data) + offset * static_cast<std::int64_t>(size_of(view.type));
    view.axis[i] = dims{};
  }
}

}  // namespace detail

/// Whether a kernel program has the operands of the whole one, in its order: then problems of the whole are
/// its own.
constexpr bool has_same_operands(const program& whole, const program& kernel) {
  return kernel.axes == whole.axes && kernel.tensors == whole.tensors &&
         kernel.parameters == whole.parameters;
}

/// The problem of a kernel program: the operands of the whole one by name, and scratch without memory yet.
inline problem kernel_problem(const program& whole, const problem& bound, const program& kernel,
                              const iteration_space& space, dtype scratch_type) {
  problem result;
  result.tensors.resize(static_cast<std::size_t>(kernel.tensors.count));
  for (int i = 0; i < kernel.parameters.count; ++i) {
    const parameter_decl& declared = kernel.parameters[i];
    result.parameters[static_cast<std::size_t>(i)] =
        declared.is_extent
            ? static_cast<double>(space.extent[static_cast<std::size_t>(whole.find_axis(declared.id))])
            : bound.parameters[static_cast<std::size_t>(whole.find_parameter(declared.id))];
  }
  for (int i = 0; i < kernel.tensors.count; ++i) {
    const tensor_decl& declared = kernel.tensors[i];
    bound_tensor& target = result.tensors[static_cast<std::size_t>(i)];
    const int known = whole.find_tensor(declared.id);
    if (known >= 0) {
      target = bound.tensors[static_cast<std::size_t>(known)];
      if (target.bound) detail::slice(target.view, declared);
      continue;
    }
    target.bound = true;
    const bool positions = declared.role == tensor_role::positions;
    target.view =
        erased_view{nullptr, positions ? dtype::int64 : scratch_type, true, declared.axes.count, {}};
    std::int64_t stride = 1;
    for (int a = target.view.rank - 1; a >= 0; --a) {
      const int axis = whole.find_axis(kernel.axes[declared.axes[a]]);
      const std::int64_t extent = space.extent[static_cast<std::size_t>(axis)];
      target.view.axis[a] = dims{{extent, stride}};
      stride *= extent;
    }
  }
  return result;
}

}  // namespace scandsl
