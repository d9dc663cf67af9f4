#pragma once
#include "scandsl/core/order.hpp"
#include "scandsl/exec/cuda/arguments.hpp"
#include "scandsl/pass/cuda_plan.hpp"

/// What blocks of one tile have the L2 cache fetch for later ones (looks_ahead in scan_tile.cuh).
namespace scandsl::cuda_detail {

/// Of a block that reads, side by side, at_once[t] elements of tensor t (0: none that may be fetched), and
/// has that many units of lanes.
template <class A, int Tensors>
void describe_ahead(const std::int64_t (&at_once)[Tensors], std::int64_t units_of_block, A& a) {
  const auto size = [&](int t) { return static_cast<std::int64_t>(size_of(a.tensor[t].type)); };
  std::int64_t of_block = 0;
  for (int t = 0; t < Tensors; ++t) {
    const tensor_argument& memory = a.tensor[t];
    const auto fits = [&](std::int64_t elements) { return elements >= 0 && elements * size(t) % 16 == 0; };
    const std::int64_t elements = at_once[t];
    bool fetches = memory.bound && memory.mode == access::vector && a.walk[0].stride[t] > 0 && elements > 0 &&
                   fits(elements) && reinterpret_cast<std::uintptr_t>(memory.data) % 16 == 0 &&
                   (a.along_rows || fits(a.walk[0].stride[t]));
    for (int d = 0; d < a.lane_dimensions; ++d)
      fetches = fetches && fits(a.lane[d].stride[t] * (d + 1 < a.lane_dimensions ? 1 : units_of_block));
    a.ahead[t] = {0, fetches ? static_cast<int>(elements * size(t)) : 0};
    of_block += a.ahead[t].bytes * (a.along_rows ? 1 : steps_of_lane(a));
  }
  if (of_block == 0) return;
  const std::int64_t blocks = larger<std::int64_t>(cuda_ahead_policy::bytes / of_block, 1),
                     units = blocks * units_of_block;
  for (int t = 0; t < Tensors; ++t) {
    if (a.ahead[t].bytes == 0) continue;
    int d = 0;  // the innermost of the dimensions that lie one behind the other
    while (d + 1 < a.lane_dimensions && a.lane[d].stride[t] == a.lane[d + 1].stride[t] * a.lane[d + 1].extent)
      ++d;
    std::int64_t inner = 1;
    for (int i = d + 1; i < a.lane_dimensions; ++i) inner *= a.lane[i].extent;
    const std::int64_t further = larger<std::int64_t>(1, (units + inner / 2) / inner);
    if (further * inner < a.lanes && further * inner <= 2 * units)
      a.ahead[t].apart = further * a.lane[d].stride[t] * size(t);
  }
}
/// Says what each block has fetched for a later one: of inputs in which that lies as far from its own
/// everywhere, because the lanes' outer dimensions lie one behind the other.
template <class K, class Arrangement> void describe_ahead(typename K::arguments& a) {
  if (a.lane_dimensions == 0 || a.walk_dimensions != 1) return;
  std::int64_t at_once[K::tensors];
  for (int t = 0; t < K::tensors; ++t)
    at_once[t] =
        K::group::value.tensors[t].role == tensor_role::input ? Arrangement::elements_at_once(a, t) : 0;
  describe_ahead(at_once, Arrangement::units_of_block(a), a);
}

}  // namespace scandsl::cuda_detail
