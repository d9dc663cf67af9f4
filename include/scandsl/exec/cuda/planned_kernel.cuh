#pragma once
#include <optional>

#include "scandsl/exec/cuda/launch.cuh"

/// One kernel program from its plan to its launch, and the scratch that it wants.
namespace scandsl::cuda_detail {

/// Bytes of the carries that sweeps save, and for how many lanes; none where a lane is one tile.
template <class K> std::int64_t saved_bytes(const cuda_kernel_plan& plan, typename K::arguments& a) {
  constexpr int components = larger(saved_count<typename K::group, typename K::compute>,
                                    saved_count<typename K::framed::group, typename K::compute>);
  if constexpr (components == 0) {
    return 0;
  } else {
    const int length = with_arrangement<K>(
        plan, a, [&]<class A>(std::type_identity<A>) { return A::tile_steps(a.lane_threads); });
    const auto tiles_of = [&](std::int64_t steps) { return (steps + length - 1) / length; };
    const bool restarts = a.chunk > 0 && a.chunk_dimension < 0;
    std::int64_t tiles = tiles_of(a.chunk_dimension >= 0 ? a.chunk : a.steps);
    if (tiles <= 1 && !restarts && a.offsets == nullptr) return 0;
    const std::int64_t more =
        a.offsets != nullptr ? a.segments : 0;  // each may end within a tile, or a chunk
    tiles = restarts ? ((a.steps + a.chunk - 1) / a.chunk + more) * tiles_of(a.chunk) : tiles + more;
    a.saved_lanes = a.lanes * (plan.arrangement == cuda_arrangement::row ? 1 : tile_policy<K>::strip_lanes);
    return tiles * components * a.saved_lanes * static_cast<std::int64_t>(sizeof(typename K::compute));
  }
}

/// The pieces of lanes of several sweeps, and the bytes of what scans make of them.
template <class K>
sweep_pieces cut_sweeps(const cuda_kernel_plan& plan, const typename K::arguments& a, std::int64_t& bytes) {
  using group = typename K::group;
  const bool row = plan.arrangement == cuda_arrangement::row;
  const int length = with_arrangement<K>(
      plan, a, [&]<class A>(std::type_identity<A>) { return A::tile_steps(a.lane_threads); });
  sweep_pieces cut;
  cut.count = static_cast<int>(plan.pieces);
  cut.tiles = static_cast<int>(plan.piece / length);
  cut.lanes = a.lanes * (row ? 1 : tile_policy<K>::strip_lanes);
  bytes = sweep_count<group> * (sweep_capacity<group> + 1) * (cut.count + std::int64_t{1}) * cut.lanes *
          static_cast<std::int64_t>(sizeof(typename scratch_type_of<typename K::compute>::type));
  return cut;
}

/// Whether strips keep pace (pace.cuh), how many of each sequence, and the bytes of the words for it. They do
/// where all blocks are on the device at a time.
template <class K>
pace_arguments find_pace(const cuda_kernel_plan& plan, const typename K::arguments& a,
                         const cuda_device& device, std::int64_t& bytes) {
  using policy = tile_policy<K>;
  pace_arguments pace;
  if constexpr (policy::streams && !policy::sums_scratch && !K::group::only_rows) {
    using fast = typename K::framed;
    using strips = typename strip_of<K>::template of<fast>;
    if constexpr (paces<fast, strips>) {
      if (plan.arrangement != cuda_arrangement::strip || plan.packed || plan.chunk > 0 || plan.pieces > 1 ||
          !a.shares_stages)
        return pace;
      using walk = runner<fast, strips>;
      constexpr std::int64_t reserved = 1024;  // by the system, of each block's shared memory
      const std::int64_t length = strips::tile_steps(plan.lane_threads),
                         tiles = (a.steps + length - 1) / length,
                         of_sequence = a.inner_extent / (plan.lane_threads * policy::strip_lanes),
                         blocks = a.lanes / plan.lane_threads,
                         exchange =
                             static_cast<std::int64_t>(exchange_bytes_of<K, strip_of<K>>(plan.lane_threads)),
                         resident = smaller<std::int64_t>(strips::blocks_resident,
                                                          (device.shared_bytes + reserved) /
                                                              (2 * walk::stage_bytes + exchange + reserved));
      if (tiles < cuda_pace_policy::fewest_tiles || of_sequence < 2 ||
          static_cast<double>(blocks) < cuda_pace_policy::fewest_blocks * device.multiprocessors ||
          blocks > device.multiprocessors * resident || (tiles + 1) * of_sequence >= std::int64_t{1} << 31)
        return pace;
      pace.strips = static_cast<int>(of_sequence);
      pace.tiles = static_cast<int>(tiles);
      bytes = blocks / of_sequence * cuda_pace_policy::bytes_of_word;
    }
  }
  return pace;
}

/// A space whose lanes are numbered, where that is wanted.
template <class K> class numbered_space {
public:
  numbered_space(const program& p, const walk_table& table, const iteration_space& given, bool wanted)
      : space_(&given) {
    if constexpr (tile_policy<K>::kept_carries > 0)
      if (wanted && detail::can_number_lanes(p)) {
        copy_.emplace(given);
        lanes = detail::number_lanes(p, table, *copy_);
        space_ = &*copy_;
      }
  }
  const iteration_space& space() const { return *space_; }
  std::int64_t lanes = 0;  ///< 0: they are not numbered

private:
  std::optional<iteration_space> copy_;
  const iteration_space* space_;
};

/// One kernel program, planned, with the arguments of its launch.
template <class K> class planned_kernel {
public:
  /// Parallel: few lanes are shared by many blocks, where there will be scratch for it. With_carries: there
  /// will be memory for carries.
  planned_kernel(const program& p, const walk_table& table, const problem& bound,
                 const iteration_space& space, const cuda_device& on, bool parallel = true,
                 bool with_carries = false)
      : planned_kernel(p, table, bound, numbered_space<K>(p, table, space, with_carries), on, parallel) {}

  /// Whether its scratch is for speed only.
  bool can_do_without() const { return plan.lookback_tiles > 0 || plan.pieces > 1 || keeps_pace(); }
  /// Where there is no room for the words by which strips keep pace: false if it is none of these that it
  /// wants. The plan is the same without them.
  bool forget_pace() {
    if (!keeps_pace()) return false;
    arguments.pace = {};
    bytes = 0;
    return true;
  }
  /// Of what its sweeps save, is kept of pieces, or a look-back publishes, or strips that keep pace count.
  std::int64_t scratch_bytes() const { return bytes; }
  /// Whether what lies in tensor t can be left in parts, where its scratch is.
  bool can_leave_parts(int t) const { return parts_lie_as(plan, t, tile_shape<K>()); }
  cuda_kernel_plan& planned() { return plan; }
  /// Of the carries that it leaves or finds.
  std::int64_t carry_bytes() const { return bytes_of_carries; }
  /// Says where tensor t, of which that was not known, is.
  void place(int t, void* data) {
    arguments.tensor[t].data = data;
    arguments.tensor[t].mode = access_mode<K>(plan, arguments, t);
    describe_reads<K>(arguments);
  }

  void launch(void* scratch, void* carries, launch_stream& on) {
    if (bytes_of_carries > 0) arguments.carries.data = carries;
    if constexpr (policy::looks_back)
      if (plan.lookback_tiles > 0) return launch_lookback<K>(arguments, book, bytes, device, scratch, on);
    if constexpr (policy::takes_pieces)
      if (plan.pieces > 1) {
        if constexpr (policy::reduces)
          return launch_parts<K>(plan, arguments, pieces, device, scratch, on);
        else
          return launch_pieces<K>(arguments, pieces, device, scratch, on);
      }
    if (keeps_pace())
      arguments.pace.words = static_cast<unsigned long long*>(scratch);
    else
      arguments.saved = bytes > bytes_of_pieces ? scratch : nullptr;
    arguments.pieces.states = static_cast<char*>(scratch) + (bytes - bytes_of_pieces);
    with_arrangement<K>(plan, arguments, [&]<class A>(std::type_identity<A>) {
      const int launches =
          plan.pieces > 1 ? launch_of_fold<typename K::group>(sweep_count<typename K::group>) + 1 : 1;
      for (arguments.pieces.launch = 0; arguments.pieces.launch < launches; ++arguments.pieces.launch) {
        launch_walk<K, A>(arguments, on, launches_overlap(device));
        if (arguments.pieces.launch + 1 < launches) launch_join<K, A>(arguments, on);
      }
    });
  }

private:
  using policy = tile_policy<K>;

  cuda_kernel_plan plan;
  typename K::arguments arguments;
  cuda_device device;
  lookback_arguments book;
  piece_arguments pieces;
  std::int64_t bytes = 0, bytes_of_carries = 0, bytes_of_pieces = 0;  ///< of pieces of several sweeps

  planned_kernel(const program& p, const walk_table& table, const problem& bound,
                 const numbered_space<K>& numbered, const cuda_device& on, bool parallel)
      : plan(plan_for(p, table, bound, numbered, shape_of(parallel, reads_what_others_write(p, bound)), on)),
        arguments(make_arguments<K>(plan, p, table, bound, numbered.space())), device(on) {
    if constexpr (policy::takes_pieces)
      if (plan.pieces > 1) pieces = make_pieces<K>(plan, arguments, bytes);
    if constexpr (policy::looks_back)
      if (plan.lookback_tiles > 0) book = make_lookback<K>(plan, arguments, bytes);
    if constexpr (policy::kept_carries > 0)
      if (numbered.lanes > 0) describe_carries(p, numbered.lanes);
    if constexpr (saved_count<typename K::group, typename K::compute> > 0)
      if (bytes_of_carries == 0) bytes = (saved_bytes<K>(plan, arguments) + 15) / 16 * 16;
    if constexpr (cuts_sweeps<typename K::group>)
      if (plan.pieces > 1) {
        arguments.pieces = cut_sweeps<K>(plan, arguments, bytes_of_pieces);
        bytes += bytes_of_pieces;
      }
    if (parallel && bytes == 0) arguments.pace = find_pace<K>(plan, arguments, device, bytes);
  }
  /// Carries that the scan left are worth more than pieces of strips: where it left any, lanes are many, or
  /// short. (Rows may be few and long all the same, where the scan's states are too large to look back.)
  static cuda_kernel_plan plan_for(const program& p, const walk_table& table, const problem& bound,
                                   const numbered_space<K>& numbered, cuda_tile_shape shape,
                                   const cuda_device& on) {
    if constexpr (policy::kept_carries > 0 && policy::several_sweeps)
      if (numbered.lanes > 0) {
        cuda_tile_shape whole = shape;
        whole.idle_of_strips = 0;
        whole.finds_carries = true;
        const cuda_kernel_plan walk = plan_cuda_kernel(p, table, bound, numbered.space(), whole, on);
        if (keeps_carries(p, walk, whole, true)) return walk;
      }
    return plan_cuda_kernel(p, table, bound, numbered.space(), shape, on);
  }
  /// How the carries lie that it leaves or finds, if it does.
  void describe_carries(const program& p, std::int64_t lanes) {
    if (!keeps_carries(p, plan, tile_shape<K>(), policy::several_sweeps)) return;
    const std::int64_t interval = carry_interval(plan.arrangement);
    carry_arguments& carries = arguments.carries;
    carries.lanes = lanes;
    const auto number = static_cast<std::size_t>(p.tensors.count);
    const std::size_t count = plan.nest.lanes.size();
    for (std::size_t d = 0; d < count; ++d) carries.lane_stride[d] = plan.nest.lanes[d].stride[number];
    if (plan.arrangement == cuda_arrangement::strip) {
      carries.inner_stride = carries.lane_stride[count - 1];
      carries.lane_stride[count - 1] *= policy::strip_lanes;
    }
    bytes_of_carries =
        scandsl::carry_bytes(interval, arguments.steps, lanes, policy::kept_carries,
                             static_cast<int>(sizeof(typename scratch_type_of<typename K::compute>::type)));
  }

  /// Then all bytes are words for it.
  bool keeps_pace() const { return arguments.pace.tiles > 0; }

  static cuda_tile_shape shape_of(bool parallel, bool in_place) {
    cuda_tile_shape shape = tile_shape<K>();
    shape.lookback = shape.lookback && parallel;
    shape.pieces = shape.pieces && parallel && !in_place;
    shape.parts = shape.parts && parallel && !in_place;
    if (!parallel || in_place) shape.idle_of_rows = shape.idle_of_strips = 0;
    return shape;
  }
  /// Whether an output lies where an input does that pieces read when others have written it: what is read
  /// once a lane, or where lanes may have to be gone through once more, as by several sweeps, anything.
  static bool reads_what_others_write(const program& p, const problem& bound) {
    const auto lies_at = [&](int t, tensor_role role) -> const void* {
      const bound_tensor& b = bound.tensors[static_cast<std::size_t>(t)];
      return p.tensors[t].role == role && b.bound ? b.view.data : nullptr;
    };
    bool reads = false;
    if constexpr (cuts_sweeps<typename K::group>)
      for (int t = 0; t < p.tensors.count; ++t)
        if (const void* const at = lies_at(t, tensor_role::input))
          for (int o = 0; o < p.tensors.count; ++o) reads = reads || lies_at(o, tensor_role::output) == at;
    if constexpr (policy::takes_pieces)
      for_each_index(std::make_integer_sequence<int, K::tensors>{}, [&]<int I>(index_constant<I>) {
        if constexpr (piece_worker_of<K>::may_overflow || !is_walked<typename K::group, I>)
          if (const void* const at = lies_at(I, tensor_role::input))
            for (int o = 0; o < p.tensors.count; ++o) reads = reads || lies_at(o, tensor_role::output) == at;
      });
    return reads;
  }
};

}  // namespace scandsl::cuda_detail
