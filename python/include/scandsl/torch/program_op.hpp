#pragma once
#include <array>
#include <optional>
#include <type_traits>

#include "scandsl/pass/gradient.hpp"
#include "scandsl/torch/kernel.hpp"
#include "scandsl/torch/program_call.hpp"

#ifdef __CUDACC__
#include "scandsl/cuda.cuh"
#endif

/// Where the ops of a file are registered: torch.ops.<namespace>. Whoever compiles the file says it.
#ifndef SCANDSL_TORCH_NAMESPACE
#define SCANDSL_TORCH_NAMESPACE "scandsl_own"
#endif
#ifndef SCANDSL_TORCH_PART
#define SCANDSL_TORCH_PART 0
#endif
/// 1: nvcc compiles the file, too, and makes the kernels for CUDA tensors.
#ifndef SCANDSL_TORCH_CUDA
#define SCANDSL_TORCH_CUDA 0
#endif

namespace scandsl {
namespace binding {

template <const program& P> inline constexpr program gradient_program = gradient(P);
template <const program& P> inline constexpr program second_gradient_program = gradient(gradient_program<P>);

/// The device that this compilation makes kernels for: a C++ compiler those of the CPU, which nvcc does not
/// take, nvcc those of CUDA. One file may be compiled by both (cmake/scandsl-torch.cmake). It is an argument
/// of what differs, so that the linker takes neither for the other.
#ifdef __CUDACC__
using compiled_device = cuda;
#else
using compiled_device = cpu;
#endif

template <const program& P, bool Second> void execute(const cpu& device, const problem& bound) {
  run<P>(device, bound);
}
#ifdef __CUDACC__
/// Element types with kernels of their own: those that people train with. The others share one, which is
/// slower and saves minutes of compilation; so do all types of second derivatives.
template <bool Second>
inline constexpr cuda_detail::typed_elements own_types = {!Second, !Second, false, false};

template <const program& P, bool Second> void execute(const cuda& device, const problem& bound) {
  const iteration_space space = validate(P, bound, works_in_place<P>(), false);
  constexpr cuda_detail::typed_elements types = own_types<Second>;  // nvcc wants it named
  cuda_detail::with_types<P, types>(
      bound, [&]<class C, class T>(std::type_identity<C>, std::type_identity<T>) {
        cuda_detail::run_typed<P, C, cuda_detail::uniform_types<T>>(device, bound, space);
      });
}
#endif

/// For tensors of the other device.
[[noreturn]] inline void refuse(const cuda&) {
  throw cuda_error("an op that was built for CUDA", "one for the CPU",
                   "name its file .cu and build it where nvcc is");
}
[[noreturn]] inline void refuse(const cpu&) {
  throw argument_error("all tensors on one device", "some on a GPU and some not", "move them first");
}

/// Reads a kernel's arguments one after the other.
class argument_reader {
public:
  explicit argument_reader(StableIValue* stack) : stack_(stack) {}
  template <class T> T next() { return torch::stable::detail::to<T>(*stack_++); }

private:
  StableIValue* stack_;
};

/// The operands and the scalars of a call of program P.
template <const program& P> struct operand_list {
  std::array<optional_tensor, max_tensors> tensors;  ///< by program::tensors
  std::array<double, max_parameters> scalars{};      ///< by program::parameters

  explicit operand_list(argument_reader& arguments) {
    for (int i = 0; i < P.tensors.count; ++i)
      if (is_operand(P.tensors[i]))
        tensors[static_cast<std::size_t>(i)] = P.tensors[i].optional
                                                   ? arguments.next<optional_tensor>()
                                                   : optional_tensor(arguments.next<Tensor>());
    for (int i = 0; i < P.parameters.count; ++i)
      scalars[static_cast<std::size_t>(i)] = arguments.next<double>();
  }

  void bind(program_call& call) const {
    for (int i = 0; i < P.tensors.count; ++i)
      call.bind(text_of(P.tensors[i].id), tensors[static_cast<std::size_t>(i)]);
    for (int i = 0; i < P.parameters.count; ++i)
      call.set(text_of(P.parameters[i].id), scalars[static_cast<std::size_t>(i)]);
  }

  /// The operand with the most axes, of several the first: results are of its dtype, where it lies.
  const Tensor& principal() const {
    const Tensor* found = nullptr;
    int rank = -1;
    for (int i = 0; i < P.tensors.count; ++i)
      if (const optional_tensor& each = tensors[static_cast<std::size_t>(i)];
          each && is_differentiable(P.tensors[i]) && P.tensors[i].axes.count > rank) {
        found = &*each;
        rank = P.tensors[i].axes.count;
      }
    if (found == nullptr) throw argument_error("an operand", "none", "give one");
    return *found;
  }
  void require_one_device() const {
    for (int i = 0; i < P.tensors.count; ++i)
      require_same_device(P.tensors[i].id.text, tensors[static_cast<std::size_t>(i)], "the other operands",
                          principal());
  }

  std::vector<std::int64_t> extents_of(int output) const {
    std::vector<std::int64_t> extents;
    for (const std::int16_t axis : P.tensors[output].axes) extents.push_back(extent_of(axis));
    return extents;
  }
  Tensor new_result(int output) const {
    const std::vector<std::int64_t> extents = extents_of(output);
    return allocate(extents, principal().scalar_type(), principal());
  }

private:
  std::int64_t extent_of(int axis) const {
    for (int i = 0; i < P.tensors.count; ++i) {
      const optional_tensor& each = tensors[static_cast<std::size_t>(i)];
      const tensor_decl& declared = P.tensors[i];
      for (int k = 0; each && k < declared.axes.count && k < each->dim(); ++k)
        if (declared.axes[k] == axis) return each->size(k) - (declared.role == tensor_role::offsets ? 1 : 0);
    }
    return 1;  // a segment, where no sequences are packed
  }
};

/// The three kernels of the op whose program is P, as Operation in python/scandsl/_operation.py wants them,
/// for the tensors of a device.
template <const program& P, class Device> class program_kernels {
public:
  static void forward(StableIValue* stack, std::uint64_t, std::uint64_t) {
    translating_errors([&] {
      argument_reader arguments(stack);
      const operand_list<P> operands(arguments);
      program_call call(P);
      operands.bind(call);
      operands.require_one_device();
      tensor_list results;
      for (int i = 0; i < P.tensors.count; ++i)
        if (P.tensors[i].role == tensor_role::output) {
          results.push_back(operands.new_result(i));
          call.bind(text_of(P.tensors[i].id), results.back(), true);
        }
      launch<P>(operands, call);
      stack[0] = torch::stable::detail::from(results);
    });
  }

  static void backward(StableIValue* stack, std::uint64_t, std::uint64_t) {
    translating_errors([&] {
      constexpr const program& gradients = gradient_program<P>;
      const auto names = derivative_names(P);
      argument_reader arguments(stack);
      program_call call(gradients);
      for_each(tensor_role::output, [&](int, const std::string& id) {
        call.bind(names.at(id), arguments.next<optional_tensor>());
      });
      const operand_list<P> operands(arguments);
      operands.bind(call);
      result_maker make(call, arguments.next<std::vector<bool>>());
      for_each(tensor_role::input, [&](int i, const std::string& id) {
        make.next(names.at(id),
                  [&] { return allocate_like(operands.tensors[static_cast<std::size_t>(i)].value()); });
      });
      launch<gradients>(operands, call);
      stack[0] = torch::stable::detail::from(make.results);
    });
  }

  static void double_backward(StableIValue* stack, std::uint64_t, std::uint64_t) {
    translating_errors([&] {
      constexpr const program& second = second_gradient_program<P>;
      const auto names = derivative_names(P), names_of_second = derivative_names(gradient_program<P>);
      const auto second_name = [&](const std::string& id) {
        const auto found = names_of_second.find(id);  // the gradient may not depend on it
        return found == names_of_second.end() ? std::string() : found->second;
      };
      argument_reader arguments(stack);
      program_call call(second);
      for_each(tensor_role::input, [&](int, const std::string& id) {
        call.bind(second_name(names.at(id)), arguments.next<optional_tensor>());
      });
      std::array<optional_tensor, max_tensors> cotangents;
      for_each(tensor_role::output, [&](int i, const std::string&) {
        cotangents[static_cast<std::size_t>(i)] = arguments.next<optional_tensor>();
      });
      const operand_list<P> operands(arguments);
      operands.bind(call);
      Tensor zero =
          allocate(std::vector<std::int64_t>{1}, operands.principal().scalar_type(), operands.principal());
      torch::stable::zero_(zero);
      for_each(tensor_role::output, [&](int i, const std::string& id) {
        call.bind_or_zero(names.at(id), cotangents[static_cast<std::size_t>(i)], operands.extents_of(i),
                          zero);
      });
      result_maker make(call, arguments.next<std::vector<bool>>());
      for_each(tensor_role::output, [&](int i, const std::string& id) {
        make.next(second_name(names.at(id)), [&] { return operands.new_result(i); });
      });
      for_each(tensor_role::input, [&](int i, const std::string& id) {
        make.next(second_name(id),
                  [&] { return allocate_like(operands.tensors[static_cast<std::size_t>(i)].value()); });
      });
      launch<second, true>(operands, call);
      stack[0] = torch::stable::detail::from(make.results);
    });
  }

private:
  /// Allocates the results that are wanted; one that the program does not have is 0.
  struct result_maker {
    program_call& call;
    std::vector<bool> wanted;
    tensor_list results = {};
    std::size_t at = 0;

    result_maker(program_call& of, std::vector<bool> which) : call(of), wanted(std::move(which)) {}
    template <class Allocate> void next(const std::string& id, Allocate&& allocate) {
      if (!wanted.at(at++)) return;
      results.push_back(allocate());
      if (call.has(id))
        call.bind(id, results.back(), true);
      else
        torch::stable::zero_(results.back());
    }
  };

  /// visit(index, name) for the tensors of a role; input means those with a gradient.
  template <class F> static void for_each(tensor_role role, F&& visit) {
    for (int i = 0; i < P.tensors.count; ++i)
      if (P.tensors[i].role == role) visit(i, text_of(P.tensors[i].id));
  }

  template <const program& Q, bool Second = false>
  static void launch(const operand_list<P>& operands, const program_call& call) {
    if (!call.writes()) return;
    run_where(operands.principal(), [&](const auto& device) {
      if constexpr (std::is_same_v<decltype(device), const Device&>)
        execute<Q, Second>(device, call.bound());
      else
        refuse(device);
    });
  }
};

/// How the op of a program is declared to torch and to Python.
class program_schema {
public:
  explicit program_schema(const program& p) : p_(p) {}

  std::string forward() const { return text_of(p_.id) + "(" + operands() + ") -> Tensor[]"; }
  std::string backward() const {
    return text_of(p_.id) + "_backward(" + cotangents(tensor_role::output) + operands() +
           ", bool[] wanted) -> Tensor[]";
  }
  std::string double_backward() const {
    return text_of(p_.id) + "_double_backward(" + cotangents(tensor_role::input) +
           cotangents(tensor_role::output) + operands() + ", bool[] wanted) -> Tensor[]";
  }

  /// Read by python/scandsl/_own.py: a line for each tensor and scalar, what it is, its name, and its axes or
  /// its default.
  std::string description() const {
    std::string text;
    for (const tensor_decl& each : p_.tensors) {
      text += each.role == tensor_role::output ? "output" : is_differentiable(each) ? "operand" : "offsets";
      if (each.optional) text += "?";
      text += " " + text_of(each.id);
      for (const std::int16_t axis : each.axes) text += " " + text_of(p_.axes[axis]);
      text += "\n";
    }
    for (const parameter_decl& each : p_.parameters)
      text += std::string(each.optional ? "scalar?" : "scalar") + " " + text_of(each.id) + " " +
              message(each.fallback).c_str() + "\n";
    return text;
  }

private:
  const program& p_;

  std::string operands() const {
    std::string text;
    for (const tensor_decl& each : p_.tensors)
      if (is_operand(each))
        text += separator(text) + "Tensor" + (each.optional ? "? " : " ") + text_of(each.id);
    for (const parameter_decl& each : p_.parameters) text += separator(text) + "float " + text_of(each.id);
    return text;
  }
  std::string cotangents(tensor_role role) const {
    std::string text;
    for (const tensor_decl& each : p_.tensors)
      if (each.role == role)
        text += "Tensor? cotangent_of_" + std::string(role == tensor_role::input ? "d" : "") +
                text_of(each.id) + ", ";
    return text;
  }
  static std::string separator(const std::string& before) { return before.empty() ? "" : ", "; }
};

}  // namespace binding

/// Which kernels a file registers: it may be compiled once for each of them, side by side. 0: all.
enum class op_part { all, forward, backward, double_backward };

/// The op of a program, in torch: `const torch_op<ring> registered;` at namespace scope, in a file for
/// scandsl.load or for scandsl_torch_module (docs/torch.md). Its derivatives are derived: first and second
/// ones, and forward mode.
template <const program& P, op_part Part = static_cast<op_part>(SCANDSL_TORCH_PART),
          class Device = binding::compiled_device>
class torch_op {
public:
  torch_op() {
    const std::vector<binding::kernel> kernels = own_kernels();
    if constexpr (std::is_same_v<Device, cpu>) {
      declared_.emplace(SCANDSL_TORCH_NAMESPACE, kernels);
      cpu_.emplace(SCANDSL_TORCH_NAMESPACE, "CPU", kernels);
      if constexpr (has(op_part::forward))
        description_.emplace(SCANDSL_TORCH_NAMESPACE, binding::text_of(P.id) + "_description", describe);
    }
    if constexpr (std::is_same_v<Device, cuda> || !SCANDSL_TORCH_CUDA)  // in the latter case they refuse
      cuda_.emplace(SCANDSL_TORCH_NAMESPACE, "CUDA", kernels);
  }

private:
  std::optional<binding::declarations> declared_;
  std::optional<binding::device_kernels> cpu_, cuda_;
  std::optional<binding::text_kernel> description_;

  static constexpr bool has(op_part part) { return Part == op_part::all || Part == part; }

  static std::vector<binding::kernel> own_kernels() {
    const binding::program_schema schema(P);
    using made = binding::program_kernels<P, Device>;
    std::vector<binding::kernel> list;
    if constexpr (has(op_part::forward)) list.push_back({schema.forward(), made::forward});
    if constexpr (has(op_part::backward)) list.push_back({schema.backward(), made::backward});
    if constexpr (has(op_part::double_backward))
      list.push_back({schema.double_backward(), made::double_backward});
    return list;
  }
  static void describe(StableIValue* stack, std::uint64_t, std::uint64_t) {
    stack[0] = torch::stable::detail::from(binding::program_schema(P).description());
  }
};

}  // namespace scandsl
