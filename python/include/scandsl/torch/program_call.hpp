#pragma once
#include <map>
#include <set>
#include <string>

#include "scandsl/pass/problem.hpp"
#include "scandsl/torch/tensor.hpp"

/// Programs whose operands are tensors, by name; each dimension of a tensor is one axis.
namespace scandsl::binding {

inline std::string text_of(const name& id) { return std::string(id.view()); }

inline bool is_operand(const tensor_decl& declared) {
  return declared.role == tensor_role::input || declared.role == tensor_role::offsets;
}
inline bool is_differentiable(const tensor_decl& declared) { return declared.role == tensor_role::input; }

/// What gradient(p) calls the cotangents of p's outputs and the gradients of its inputs: d and the name, with
/// one more d as long as that is taken.
inline std::map<std::string, std::string> derivative_names(const program& p) {
  std::set<std::string> taken;
  for (const tensor_decl& each : p.tensors)
    if (each.role != tensor_role::output) taken.insert(text_of(each.id));
  for (const parameter_decl& each : p.parameters) taken.insert(text_of(each.id));
  std::map<std::string, std::string> names;
  const auto add = [&](const tensor_decl& declared) {
    std::string derived = "d" + text_of(declared.id);
    while (taken.contains(derived)) derived.insert(0, 1, 'd');
    taken.insert(derived);
    names[text_of(declared.id)] = derived;
  };
  for (const tensor_decl& each : p.tensors)
    if (each.role == tensor_role::output) add(each);
  for (const tensor_decl& each : p.tensors)
    if (is_differentiable(each)) add(each);
  return names;
}

/// The operands and the results of one run, bound as they become known.
class program_call {
public:
  explicit program_call(const program& p) : p_(p), bound_(unbound_problem(p)) {}

  /// Throws shape_error, dtype_error and argument_error. What the program does not have is left out: a
  /// gradient reads no more than it needs.
  void bind(const std::string& id, const Tensor& tensor, bool writable = false) {
    const int index = p_.find_tensor(make_name(id));
    if (index < 0) return;
    const array memory = array_of(id.c_str(), tensor, writable);
    const tensor_decl& declared = p_.tensors[index];
    if (memory.rank != declared.axes.count)
      throw shape_error(message(id, axes_text(declared)), message("rank ", memory.rank),
                        "give one dimension for each axis");
    erased_view view{memory.data, memory.type, memory.writable, memory.rank, {}};
    for (int i = 0; i < memory.rank; ++i) view.axis[i].push_back({memory.extents[i], memory.strides[i]});
    bound_.tensors[static_cast<std::size_t>(index)] = {true, view};
    writes_ = writes_ || writable;
  }
  void bind(const std::string& id, const optional_tensor& tensor) {
    if (tensor) bind(id, *tensor);
  }
  /// The same for one that counts as 0 where it is absent; `zero` is one element of the dtype.
  void bind_or_zero(const std::string& id, const optional_tensor& tensor,
                    const std::vector<std::int64_t>& extents, const Tensor& zero) {
    const int index = p_.find_tensor(make_name(id));
    if (tensor || index < 0 || p_.tensors[index].optional) return bind(id, tensor);
    erased_view view{zero.data_ptr(),
                     dtype_of(id.c_str(), zero.scalar_type()),
                     false,
                     static_cast<int>(extents.size()),
                     {}};
    for (int i = 0; i < view.rank; ++i) view.axis[i].push_back({extents[static_cast<std::size_t>(i)], 0});
    bound_.tensors[static_cast<std::size_t>(index)] = {true, view};
  }
  void set(const std::string& id, double value) {
    const int index = p_.find_parameter(make_name(id));
    if (index >= 0) bound_.parameters[static_cast<std::size_t>(index)] = value;
  }

  bool has(const std::string& id) const { return p_.find_tensor(make_name(id)) >= 0; }
  bool writes() const { return writes_; }
  const problem& bound() const { return bound_; }

private:
  const program& p_;
  problem bound_;
  bool writes_ = false;

  std::string axes_text(const tensor_decl& declared) const {
    std::string text;
    for (const std::int16_t axis : declared.axes)
      text += (text.empty() ? "(" : ", ") + text_of(p_.axes[axis]);
    return text.empty() ? " as a scalar" : text + ")";
  }
};

}  // namespace scandsl::binding
