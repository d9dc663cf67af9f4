#pragma once
#include "scandsl/exec/cuda/pieces.cuh"

/// Reductions of lanes that lie side by side: each is cut into parts, which are reduced each by a block, in
/// the order of their addresses; then a block joins the parts of its lanes. What else is computed at every
/// step, without the reductions' results, is written on the way.
///
///             | part 0          | part 1          | part 2          |
///     reduce    t0 t1 t2 t3 -> P0 t0 t1 t2 t3 -> P1 ..           -> P2     stretches of four threads
///     join                                             P0 + P1 + P2
///
/// A walk of all of a lane by one block has it wait for memory tile by tile, and few lanes keep few
/// multiprocessors busy.
namespace scandsl::cuda_detail {

template <class K, class Strip> struct part_worker;

/// Where a part's log-sums hold no frame.
template <class K, class Strip>
__device__ __noinline__ void reduce_part_as_defined(const typename K::arguments& a, const piece_arguments& of,
                                                    unsigned char* shared) {
  part_worker<K, typename Strip::template slow_of<K>>(a, of, shared).template reduce<false>();
}

template <class K, class Strip> struct part_worker : piece_worker<K, Strip> {
  using base = piece_worker<K, Strip>;
  using group = typename K::group;
  using C = typename K::compute;
  using scans = scans_in<group, 0>;
  using base::a, base::of, base::shared, base::strip_threads, base::own, base::lanes, base::steps;
  static constexpr bool writes_steps = stage_of<group, stage_kind::sweep, 0>.stores.count > 0;
  /// What has been written cannot be tried again.
  static constexpr bool framed = base::framed && !writes_steps;

  __device__ __forceinline__ part_worker(const typename K::arguments& given, const piece_arguments& what,
                                         unsigned char* memory)
      : base(given, what, memory) {}
  static constexpr __host__ __device__ int exchange_bytes(int lane_threads) {
    return static_cast<int>(sizeof(C)) * Strip::exchange_elements(lane_threads);
  }

  template <bool Framed> __device__ __forceinline__ void reduce() {
    auto u = base::tile_type::template fold_stage<0>::evaluate_uniforms(a.parameters);
    states<group, C> local[lanes], preceding[lanes], total[lanes];
    bool doubtful = false;
    const std::int64_t mine = this->steps_of_mine();
    std::int64_t at = 0;
    const auto take = [&]<bool Whole>(auto now, std::bool_constant<Whole>) {
      now.load();
      if (at == 0) doubtful = this->template begin_piece<Framed>(local, u);
      if constexpr (writes_steps) {
        now.template walk<false, !Whole>(local, [](const auto&) { return true; });
      } else {
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane)
          now.template fold<0, 0, Framed, Whole ? tile_mask::none : tile_mask::steps>(u, lane, local[lane],
                                                                                      local[lane]);
      }
    };
#pragma unroll 1
    for (; at + steps <= mine; at += steps) take(this->tile_at(at), std::true_type{});
    if (at < mine || mine == 0) take(this->part_at(at), std::false_type{});
    const bool unfit =
        strip_threads.template join<scans, Framed, true>(local, preceding, total, doubtful, mine > 0);
    if constexpr (Framed) {
      if (unfit) {
        wait_for_all(Strip::threads);  // the exchange is another's now
        return reduce_part_as_defined<K, Strip>(a, of, shared);
      }
      this->take_frames(local, total);
    }
    this->keep_piece(total, unfit);
  }
};

template <class K, class Strip>
__global__ void __launch_bounds__(Strip::threads, cuda_part_policy::blocks_resident)
    part_kernel(const __grid_constant__ typename K::arguments a, const __grid_constant__ piece_arguments of) {
  extern __shared__ __align__(16) unsigned char shared[];
  let_next_begin();
  using worker = part_worker<K, Strip>;
  worker(a, of, shared).template reduce<worker::framed>();
}

}  // namespace scandsl::cuda_detail
