#pragma once
#include "scandsl/exec/cuda/arguments.hpp"
#include "scandsl/exec/cuda/node_lists.cuh"
#include "scandsl/pass/cuda_plan.hpp"

/// The pace of strips that lie side by side in memory. Each walks for itself, one is soon some tiles ahead of
/// another, and memory is slower the less its addresses come in order. So a word of the workspace counts the
/// tiles that the strips of a sequence have asked for, and none asks for its next one while it is too far
/// ahead of their mean.
///
/// That is a hint, by which no result changes: whoever has waited long in vain waits no more, and says that
/// it has asked for all. And nobody has to clear the memory. A word whose upper half is not `mark` counts
/// nothing yet, and who finds it so makes it count from 0; the last one to finish leaves 0 in it.
///
/// A block's first thread does all that; the others wait for it at each tile in any case.
namespace scandsl::cuda_detail {

/// Whether strips of known types keep pace: those of scans that write what they make, and of gradients that
/// read three operands or more. (Gradients that read two have no register left: log-sums' would go from 0.90
/// of a copy to 0.82, and to 0.80 where what has to be known is in shared memory. Of other programs of
/// several sweeps it is not measured.)
template <class K, class Arrangement>
inline constexpr bool paces = [] {
  using group = typename K::group;
  if constexpr (!Arrangement::place::can_share || !Arrangement::has_streams || scan_count<group> == 0)
    return false;
  else if constexpr (sweep_count<group> == 1)
    return !only_reduces<group, 0>;
  else
    return group::is_gradient && size_of_list<walked_loads<group, all_sweeps>> > 2;
}();

/// A strip says 1 for each tile that it asks for, and 1 when it has finished: tiles + 1 in all.
template <bool Paces> class pacer {
public:
  __device__ __forceinline__ explicit pacer(const pace_arguments& of) : of_(of) {}
  /// The block has asked for its first tile.
  __device__ __forceinline__ void begin() {
    if (of_.words == nullptr || threadIdx.x != 0) return;
    sequence_ = static_cast<int>(blockIdx.x) / of_.strips;
    unsigned long long expected = 0, found = 0;
    do {
      expected = found;
      found = atomicCAS(word(), expected, mark);
    } while (found != expected && found >> 32 != mark >> 32);
    say();
    look();
  }
  /// ... and now for one more.
  __device__ __forceinline__ void say() const {
    if (sequence_ >= 0) asm volatile("red.relaxed.gpu.global.add.u64 [%0], 1;" ::"l"(word()) : "memory");
  }
  /// Asks how far all are: wait() needs the answer.
  __device__ __forceinline__ void look() {
    if (sequence_ >= 0)
      asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                   : "=r"(seen_)
                   : "l"(word())
                   : "memory");  // its lower half
  }
  /// Waits, before the block asks for one more, while it is more than half a tile ahead of the mean. `said`:
  /// how many it has asked for.
  __device__ __forceinline__ void wait(int said) {
    if (sequence_ < 0) return;
    const auto enough = static_cast<std::uint32_t>(of_.strips * said - of_.strips / 2);
    for (int looks = cuda_pace_policy::most_looks; seen_ < enough; --looks) {
      if (looks == 0) return finish(said);
      look();
    }
  }
  /// Says that the block, which has asked for `said` tiles, asks for no more that others should wait for. (A
  /// word in which more was counted, by a run that was cut off, counts anew after this one.)
  __device__ __forceinline__ void finish(int said) {
    if (sequence_ < 0) return;
    const auto all = static_cast<std::uint32_t>(of_.tiles + 1), rest = all - static_cast<std::uint32_t>(said);
    const auto before = static_cast<std::uint32_t>(atomicAdd(word(), static_cast<unsigned long long>(rest)));
    if (before + rest >= static_cast<std::uint32_t>(of_.strips) * all) atomicExch(word(), 0ULL);
    sequence_ = -1;
  }

private:
  static constexpr unsigned long long mark = 0x73636e64ULL << 32;  ///< nothing that memory is likely to hold

  __device__ __forceinline__ unsigned long long* word() const {
    return of_.words + sequence_ * (cuda_pace_policy::bytes_of_word / static_cast<int>(sizeof(*of_.words)));
  }

  const pace_arguments& of_;
  int sequence_ = -1;  ///< -1: there is no pace to keep, or no more
  std::uint32_t seen_ = 0;
};
template <> class pacer<false> {
public:
  __device__ __forceinline__ explicit pacer(const pace_arguments&) {}
  __device__ __forceinline__ void begin() {}
  __device__ __forceinline__ void say() const {}
  __device__ __forceinline__ void look() {}
  __device__ __forceinline__ void wait(int) {}
  __device__ __forceinline__ void finish(int) {}
};

}  // namespace scandsl::cuda_detail
