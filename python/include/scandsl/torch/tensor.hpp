#pragma once
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scandsl/core/view.hpp"
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/exec/cuda_executor.hpp"
#include "scandsl/torch/current_stream.hpp"

/// Tensors of torch as what scandsl runs on, by the part of LibTorch's interface that is the same from
/// release to release. Nothing here knows Python.
namespace scandsl::binding {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using optional_tensor = std::optional<Tensor>;
using tensor_list = std::vector<Tensor>;

/// Throws dtype_error, naming the operand.
inline dtype dtype_of(const char* operand, ScalarType type) {
  switch (type) {
  case ScalarType::Float: return dtype::float32;
  case ScalarType::Double: return dtype::float64;
  case ScalarType::BFloat16: return dtype::bfloat16;
  case ScalarType::Half: return dtype::float16;
  case ScalarType::Int: return dtype::int32;
  case ScalarType::Long: return dtype::int64;
  default:
    throw dtype_error(
        message("float32, float64, bfloat16 or float16 (of integers int32 or int64) for ", operand),
        toString(type), "convert it first");
  }
}

inline ScalarType torch_dtype(dtype type) {
  switch (type) {
  case dtype::float32: return ScalarType::Float;
  case dtype::float64: return ScalarType::Double;
  case dtype::bfloat16: return ScalarType::BFloat16;
  case dtype::float16: return ScalarType::Half;
  case dtype::int32: return ScalarType::Int;
  case dtype::int64: return ScalarType::Long;
  }
  throw dtype_error("one of the six dtypes", message(static_cast<int>(type)), "initialise it");
}

/// Throws dtype_error for None, which torch lets through where another operand is a tensor.
inline void require_tensor(const char* operand, const Tensor& tensor) {
  if (!tensor.defined()) throw dtype_error(message("a Tensor for ", operand), "None", "give one");
}

/// A tensor's memory as it lies, never a copy.
inline array array_of(const char* operand, const Tensor& tensor, bool writable = false) {
  require_tensor(operand, tensor);
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  if (sizes.size() > static_cast<std::size_t>(max_rank))
    throw argument_error(message("at most ", max_rank, " dimensions for ", operand), message(sizes.size()),
                         "merge some with flatten");
  array result;
  result.data = tensor.data_ptr();
  result.type = dtype_of(operand, tensor.scalar_type());
  result.writable = writable;
  for (; result.rank < static_cast<int>(sizes.size()); ++result.rank) {
    result.extents[result.rank] = sizes[static_cast<std::size_t>(result.rank)];
    result.strides[result.rank] = strides[static_cast<std::size_t>(result.rank)];
  }
  return result;
}
inline std::optional<array> array_of(const char* operand, const std::optional<Tensor>& tensor) {
  return tensor ? std::optional(array_of(operand, *tensor)) : std::nullopt;
}

/// Contiguous memory from torch's allocator, where `like` lies.
inline Tensor allocate(std::span<const std::int64_t> extents, ScalarType type, const Tensor& like) {
  std::int64_t strides[max_rank + 1] = {}, stride = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= extents[i] > 0 ? extents[i] : 1;
  }
  std::int32_t device_type = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device_type));
  AtenTensorHandle handle = nullptr;
  TORCH_ERROR_CODE_CHECK(
      aoti_torch_empty_strided(static_cast<std::int64_t>(extents.size()), extents.data(), strides,
                               torch::stable::detail::to<std::int32_t>(torch::stable::detail::from(type)),
                               device_type, like.get_device_index(), &handle));
  return Tensor(handle);
}

/// A tensor of the shape and (where `like` is dense) the layout of `like`, as torch.empty_like.
inline Tensor allocate_like(const Tensor& like, ScalarType type) {
  if (like.is_contiguous()) {
    const auto sizes = like.sizes();
    return allocate({sizes.data(), sizes.size()}, type, like);
  }
  using torch::stable::detail::from;
  std::array<StableIValue, 6> stack{from(like),         from(std::optional(type)), from(std::nullopt),
                                    from(std::nullopt), from(std::nullopt),        from(std::nullopt)};
  TORCH_ERROR_CODE_CHECK(torch_call_dispatcher("aten::empty_like", "", stack.data(), TORCH_ABI_VERSION));
  return torch::stable::detail::to<Tensor>(stack[0]);
}
inline Tensor allocate_like(const Tensor& like) { return allocate_like(like, like.scalar_type()); }

/// Throws argument_error where a tensor lies on another device than `first`.
inline void require_same_device(const char* operand, const std::optional<Tensor>& tensor,
                                const char* first_name, const Tensor& first) {
  require_tensor(first_name, first);
  if (tensor) require_tensor(operand, *tensor);
  if (!tensor ||
      (tensor->is_cuda() == first.is_cuda() && tensor->get_device_index() == first.get_device_index()))
    return;
  const auto device = [](const Tensor& of) {
    return of.is_cuda() ? message("cuda:", of.get_device_index()) : message("cpu");
  };
  throw argument_error(message(operand, " on ", device(first), ", where ", first_name, " lies"),
                       device(*tensor), "move it first");
}

/// Memory from torch's allocator where a tensor lies, as runs ask for it. It goes back with this, to be used
/// again behind what is on the stream by then.
class workspaces {
public:
  explicit workspaces(const Tensor& where) : like_(where) {}

  static void* allocate(void* context, std::int64_t bytes) {
    auto& self = *static_cast<workspaces*>(context);
    self.held_.push_back(binding::allocate({&bytes, 1}, ScalarType::Byte, self.like_));
    return self.held_.back().data_ptr();
  }

private:
  const Tensor& like_;
  tensor_list held_;
};

/// Calls op(device) for the GPU that holds `first`, with torch's current stream and its memory.
template <class Op> void on_gpu(const Tensor& first, Op&& op) {
  namespace accelerator = torch::stable::accelerator;
  const auto index = first.get_device_index();
  std::optional<accelerator::DeviceGuard> guard;  // it takes 0.3 us, where devices need not change too
  if (accelerator::getCurrentDeviceIndex() != index) guard.emplace(index);
  workspaces memory(first);
  cuda device{current_stream(index), workspaces::allocate, &memory};
  op(device);
}

/// Calls op(device) for the device that holds `first`: as many threads as torch uses, or torch's current
/// stream and its memory.
template <class Op> void run_where(const Tensor& first, Op&& op) {
  if (!first.is_cuda()) {
    const cpu device{static_cast<int>(torch::stable::get_num_threads())};
    op(device);
    return;
  }
  on_gpu(first, [&](const cuda& device) { op(device); });
}

}  // namespace scandsl::binding
