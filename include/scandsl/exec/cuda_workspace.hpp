#pragma once
#include <limits>

#include "scandsl/core/error.hpp"
#include "scandsl/core/name.hpp"
#include "scandsl/exec/cuda_executor.hpp"

namespace scandsl::cuda_detail {

/// What one run needs of the workspace, handed out in order: places are known while the run is planned, and
/// the memory only when all of them are.
class workspace_layout {
public:
  static constexpr std::int64_t nowhere = -1;

  /// Without an executor there is room for all.
  workspace_layout() = default;
  explicit workspace_layout(const cuda& executor) {
    if (executor.allocate == nullptr)
      room_ = executor.workspace.data == nullptr ? 0 : executor.workspace.bytes;
  }

  /// The place of `bytes`.
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t place = used_;
    used_ += rounded(bytes);
    return place;
  }
  /// ... nowhere where there is no room.
  std::int64_t take_if_there(std::int64_t bytes) {
    return rounded(bytes) > room_ - used_ ? nowhere : take(bytes);
  }
  std::int64_t bytes() const { return used_; }

  /// Where place 0 is: in the executor's workspace, or in what its allocator gives, which is asked once and
  /// only where anything was taken. Throws argument_error where that is too little; `user` needs it.
  char* memory(const cuda& executor, const name& user) const {
    if (used_ == 0) return nullptr;
    if (executor.allocate != nullptr) {
      if (void* const given = executor.allocate(executor.context, used_)) return static_cast<char*>(given);
      throw argument_error(message(used_, " bytes of device memory for ", user.view()), "a null pointer",
                           "let the allocator throw where it has none");
    }
    if (used_ > room_)
      throw argument_error(message("a workspace of at least ", used_, " bytes for ", user.view()),
                           message(executor.workspace.bytes), "give what workspace_bytes asks for");
    return static_cast<char*>(executor.workspace.data);
  }

private:
  std::int64_t room_ = std::numeric_limits<std::int64_t>::max(), used_ = 0;

  static std::int64_t rounded(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }
};

}  // namespace scandsl::cuda_detail
