#pragma once
#include "scandsl/exec/cuda/elements.cuh"
#include "scandsl/exec/cuda/states.cuh"

/// What one device thread knows of its lanes: where they lie, what was computed once for them, their carries;
/// and the stages of the schedule, evaluated for them.
///
/// A thread holds `Runs` runs of `Length` consecutive steps each, in scan order. In a strip every run is a
/// lane of its own; in a row they are stretches of one lane.
namespace scandsl::cuda_detail {

template <class K, int Lanes> struct lane_group {
  using group = typename K::group;
  using C = typename K::compute;
  using arguments = typename K::arguments;
  using placed = sequence_of<placed_tensors<group>>;
  static constexpr int still_count = size_of_list<still_loads<group>>,
                       kept_count = size_of_list<kept_nodes<group>>;

  const arguments& a;
  std::int64_t unit = 0;                 ///< number of the lane, or of the vector of lanes
  std::int64_t place[arguments::slots];  ///< of the first lane at position 0 of the walk, in elements: of
                                         ///< tensors in placed_tensors
  std::int64_t segment_index = 0, low = 0, high = 0;
  int valid = 0;         ///< lanes that exist
  bool complete = true;  ///< each thread of the warp has all of its lanes, or none
  /// Something that was gathered is no number, where sweeps may overwrite the operand.
  mutable bool gathered_nan = false;
  bool writes = false;  ///< among the threads that share these lanes, the one that writes what is once a lane
  static constexpr int still_slots = still_count > 0 ? still_count : 1,
                       kept_slots = kept_count > 0 ? kept_count : 1;
  C still[still_slots][Lanes];
  C kept[kept_slots][Lanes];
  states<group, C> carry[Lanes];

  __device__ __forceinline__ explicit lane_group(const arguments& given) : a(given) {}

  /// Few: there are fewer than 2^31 units.
  template <bool Few> __device__ __forceinline__ void find_in_dimensions(std::int64_t rest) {
    std::int64_t inner, chunk = 0;  // where it is along the innermost dimension, and which chunk
    if (Few || a.small) {
      for_each_index(placed{}, [&]<int T>(index_constant<T>) { place[T] = 0; });
      auto number = static_cast<std::uint32_t>(rest);
      std::uint32_t innermost = 0, numbered_chunk = 0;
#pragma unroll 1
      for (int d = a.lane_dimensions - 1; d >= 0; --d) {
        const std::uint32_t at = split_lanes_off(a, d, number);
        for_each_index(placed{}, [&]<int T>(index_constant<T>) {
          place[T] += static_cast<std::int64_t>(at) * a.lane[d].stride[T];
        });
        if (d == a.lane_dimensions - 1) innermost = at;
        if (d == a.chunk_dimension) numbered_chunk = at;
      }
      inner = innermost;
      chunk = numbered_chunk;
    } else {
      for_each_index(placed{}, [&]<int T>(index_constant<T>) { place[T] = lane_offset(a, T, rest); });
      inner = lane_position(a, a.lane_dimensions - 1, rest);
      if (a.chunk_dimension >= 0) chunk = lane_position(a, a.chunk_dimension, rest);
    }
    if (Lanes > 1) {
      const std::int64_t left = a.inner_extent - inner * Lanes;
      valid = left < Lanes ? static_cast<int>(left) : Lanes;
    }
    if (a.chunk_dimension >= 0) {
      const std::int64_t left = a.steps - chunk * a.chunk;
      high = left < a.chunk ? left : a.chunk;
    }
  }

  /// Has what was gathered come before the threads meet, behind which others may overwrite it: to ask what it
  /// is takes that it is there. (What follows where it is no number does nothing that matters.)
  __device__ __forceinline__ void wait_for_gathers() const {
    if (gathered_nan) asm volatile("nanosleep.u32 1;" ::: "memory");
  }

  /// Goes to the row that comes so many rows after it, of those that share what was computed for them.
  __device__ __forceinline__ void go_on(int rows) {
    for_each_index(placed{}, [&]<int T>(index_constant<T>) { place[T] += rows * a.repeated.stride[T]; });
  }

  /// Finds unit `index` (a lane, or a vector of lanes) and the range of the walk in one segment (Packed: that
  /// there are). Few: there are fewer than 2^31 units, which takes no call of a function.
  template <bool Packed, bool Few = false>
  __device__ __forceinline__ void find(std::int64_t index, std::int64_t segment) {
    const bool exists = index < a.lanes;
    std::int64_t rest = exists ? index : a.lanes - 1;
    unit = rest;
    low = 0;
    high = a.steps;
    valid = Lanes;
    if (a.one_dimension) {
      for_each_index(placed{}, [&]<int T>(index_constant<T>) { place[T] = rest * a.lane[0].stride[T]; });
      if (Lanes > 1) {
        const std::int64_t left = a.inner_extent - rest * Lanes;
        valid = left < Lanes ? static_cast<int>(left) : Lanes;
      }
    } else {
      find_in_dimensions<Few>(rest);
    }
    if (!exists) valid = 0;
    if constexpr (Lanes > 1) complete = __all_sync(__activemask(), valid == Lanes || valid == 0);
    segment_index = segment;
    if (Packed && a.offsets != nullptr) {
      low = offset_at(segment);
      high = offset_at(segment + 1);
    }
  }
  __device__ __forceinline__ std::int64_t offset_at(std::int64_t segment) const {
    const std::int64_t at = segment * a.offsets_stride;
    return a.wide_offsets ? static_cast<const std::int64_t*>(a.offsets)[at]
                          : static_cast<const std::int32_t*>(a.offsets)[at];
  }

  __device__ __forceinline__ std::int64_t segment_offset(int t) const {
    std::int64_t sum = 0, rest = segment_index;
#pragma unroll 1
    for (int d = a.segment_dimensions - 1; d >= 0; --d)
      sum += split_off(rest, a.segment[d].extent) * a.segment[d].stride[t];
    return sum;
  }

  /// Of tensor t, which is read or written once a lane.
  template <int T> __device__ __forceinline__ std::int64_t offset_once() const {
    const std::int64_t of_lane = is_placed<group, T> ? place[T]
                                 : a.one_dimension   ? unit * a.lane[0].stride[T]
                                                     : lane_offset(a, T, unit);
    return of_lane + segment_offset(T);
  }

  __device__ __forceinline__ void load_still() {
    for_each_index(sequence_of<still_loads<group>>{}, [&]<int I>(index_constant<I>) {
      constexpr int at = position_in<still_loads<group>, I>, t = node_at<group, I>.target;
      constexpr tensor_decl declared = tensor_at<group, t>;
      using V = value_of_node<group, I, C>;
      V values[Lanes];
      const std::int64_t first = offset_once<t>();
      if constexpr (declared.role == tensor_role::positions) {
#pragma unroll
        for (int lane = 0; lane < Lanes; ++lane)
          values[lane] = static_cast<V>(first + lane * a.inner_stride[t]);
      } else {
        if (declared.optional && !a.tensor[t].bound)
#pragma unroll
          for (int lane = 0; lane < Lanes; ++lane) values[lane] = static_cast<V>(declared.fallback);
        else
          load_lanes(a.tensor[t], first, a.inner_stride[t], valid, values);
      }
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane) still[at][lane] = as_kept<C>(values[lane]);
    });
  }

  /// What one lane computes at a boundary.
  struct lane_at_boundary {
    const lane_group& lanes;
    int lane;
    template <int S, int Component>
    __device__ __forceinline__ C last(index_constant<S>, index_constant<Component>) const {
      return std::get<Component>(state_of<S>(lanes.carry[lane]));
    }
    static constexpr bool knows_divisors = has_small_integers<C>;
    template <int I, class... Position>
    __device__ __forceinline__ std::int32_t floor_quotient(index_constant<I>, std::int32_t x,
                                                           Position... position) const {
      return floor_quotient_at<group, I>(lanes.a, x, position...);
    }
  };
  /// What the lanes read at a boundary.
  template <int B> struct boundary_memory {
    static constexpr bool takes_branches = true;
    const lane_group& lanes;

    __device__ __forceinline__ lane_at_boundary of_lane(int lane) const { return {lanes, lane}; }
    template <int I>
    __device__ __forceinline__ void read(index_constant<I>,
                                         value_of_node<group, I, C> (&values)[Lanes]) const {
      constexpr node each = node_at<group, I>;
      constexpr int kept_at = position_in<kept_nodes<group>, I>;
      if constexpr (kept_at >= 0 && each.op != opcode::load) {
#pragma unroll
        for (int lane = 0; lane < Lanes; ++lane)
          values[lane] = from_kept<group, I>(lanes.kept[kept_at][lane]);
      } else {
        constexpr int t = each.target;
        constexpr tensor_decl declared = tensor_at<group, t>;
        using V = value_of_node<group, I, C>;
        if constexpr (declared.role == tensor_role::positions) {
          const std::int64_t first = lanes.template offset_once<t>();  // a call, where dimensions are several
#pragma unroll
          for (int lane = 0; lane < Lanes; ++lane)
            values[lane] = static_cast<V>(first + lane * lanes.a.inner_stride[t]);
        } else {
#pragma unroll
          for (int lane = 0; lane < Lanes; ++lane)
            if constexpr (declared.optional) values[lane] = static_cast<V>(declared.fallback);
          if (!declared.optional || lanes.a.tensor[t].bound)
            load_lanes(lanes.a.tensor[t], lanes.template offset_once<t>(), lanes.a.inner_stride[t],
                       lanes.valid, values);
        }
      }
    }
    template <int I, int Positions>
    __device__ __forceinline__ void
    gather(index_constant<I>, const typename arithmetic<C>::integer (&positions)[Positions][Lanes],
           value_of_node<group, I, C> (&values)[Lanes]) const {
      constexpr int t = node_at<group, I>.target, slot = computed_before<group, t, 0>;
      constexpr tensor_decl declared = tensor_at<group, t>;
      using V = value_of_node<group, I, C>;
      const auto& a = lanes.a;
      if (declared.optional && !a.tensor[t].bound) {
#pragma unroll
        for (int lane = 0; lane < Lanes; ++lane) values[lane] = static_cast<V>(declared.fallback);
        return;
      }
      std::int64_t offset[Lanes];
      bool exists[Lanes];
      const std::int64_t first = lanes.template offset_once<t>();
#pragma unroll
      for (int lane = 0; lane < Lanes; ++lane) {
        exists[lane] = lane < lanes.valid;
        offset[lane] = first + lane * a.inner_stride[t];
      }
#pragma unroll
      for (int p = 0; p < Positions; ++p) {
        const computed_axis& axis = a.computed[slot + p];
#pragma unroll
        for (int lane = 0; lane < Lanes; ++lane) exists[lane] = exists[lane] & has(axis, positions[p][lane]);
        if (axis.dimensions == 1) {
#pragma unroll
          for (int lane = 0; lane < Lanes; ++lane) offset[lane] += positions[p][lane] * axis.stride[0];
        } else {
#pragma unroll
          for (int lane = 0; lane < Lanes; ++lane)
            offset[lane] += offset_in_dimensions(axis, positions[p][lane]);
        }
      }
      if constexpr (declared.role == tensor_role::table) {
#pragma unroll
        for (int lane = 0; lane < Lanes; ++lane)
          values[lane] = exists[lane] ? saturated<V>(a.table[slot][positions[0][lane]]) : V(0);
      } else {
        load_where<typename K::template element_of_operand<t>>(a.tensor[t], offset, exists, values);
        if constexpr (find_walked_namesake<group, t>() != t && !std::is_integral_v<V>)
#pragma unroll
          for (int lane = 0; lane < Lanes; ++lane)
            lanes.gathered_nan = lanes.gathered_nan || values[lane] != values[lane];
      }
    }
  };

  /// Evaluates boundary B: keeps what later stages read, seeds the scans of sweep B, stores what is due.
  template <int B> __device__ __forceinline__ void boundary() {
    using here = stage<group, stage_kind::boundary, B>;
    auto u = here::evaluate_uniforms(a.parameters);
    typename here::template variables<C> values[Lanes];
    here::evaluate_lanes(u, values, boundary_memory<B>{*this});
#pragma unroll
    for (int lane = 0; lane < Lanes; ++lane) {
      auto& v = values[lane];
      for_each_index(std::make_integer_sequence<int, stage_of<group, stage_kind::boundary, B>.keeps.count>{},
                     [&]<int N>(index_constant<N>) {
                       constexpr int node_index = stage_of<group, stage_kind::boundary, B>.keeps[N];
                       kept[position_in<kept_nodes<group>, node_index>][lane] =
                           as_kept<C>(here::template get<node_index>(u, v));
                     });
      for_components<group, scans_in<group, B>>(
          [&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
            constexpr int initial = scan_at<group, S>.initial[Component];
            C& target = std::get<Component>(state_of<S>(carry[lane]));
            if constexpr (initial == no_node)
              target = static_cast<C>(identity_of<group, S, Component>);
            else
              target = here::template get<initial>(u, v);
          });
    }
    for_each_index(std::make_integer_sequence<int, stage_of<group, stage_kind::boundary, B>.stores.count>{},
                   [&]<int N>(index_constant<N>) {
                     constexpr store_decl store =
                         store_at<group, stage_of<group, stage_kind::boundary, B>.stores[N]>;
                     constexpr int t = store.tensor;
                     if (!writes || !a.tensor[t].bound) return;
                     lane_values<C, Lanes> stored;
#pragma unroll
                     for (int lane = 0; lane < Lanes; ++lane)
                       stored.value[lane] = here::template get<store.value>(u, values[lane]);
                     store_any_lanes(a.tensor[t], offset_once<t>(), a.inner_stride[t], valid, stored);
                   });
  }
};

/// exp(x - m): relative error 2^-21 + |x - m| 2^-24; 0 below 2^-126. For operands of 16 bits with one
/// rounding less to do and |m| 2^-24 more to err: as if x and m were float32 numbers.
template <class C> __device__ __forceinline__ C exp_in_frame(C x, C m) {
  if constexpr (std::is_same_v<C, approximate>)
    return C(exp2_approximate(fmaf(x.value, 1.4426950408889634F, -1.4426950408889634F * m.value)));
  return C(exp2_approximate((static_cast<float>(x) - static_cast<float>(m)) * 1.4426950408889634F));
}

/// Takes log-sums in Holder out of their frames: an empty sum in some frame is no running maximum.
template <class Group, class Holder, class C>
__device__ __forceinline__ void leave_frames(states<Group, C>& state) {
  for_each_index(sequence_of<Holder>{}, [&]<int Scan>(index_constant<Scan>) {
    if constexpr (is_log_sum<Group, Scan>) {
      auto& [m, s] = state_of<Scan>(state);
      if (s == C(0)) m = static_cast<C>(identity_of<Group, Scan, 0>);
    }
  });
}

/// 1 / sum of a sum in a frame, which is neither tiny nor huge: with the error of reciprocal_approximate for
/// operands of 16 bits, else rounded once, near enough.
template <class C> __device__ __forceinline__ C reciprocal_of_sum(C sum) {
  const float r = reciprocal_approximate(static_cast<float>(sum));
  if constexpr (std::is_same_v<C, approximate>) return C(r);
  return C(fmaf(fmaf(-static_cast<float>(sum), r, 1.0F), r, r));
}

/// What a stage of a sweep reads at one step, and how it advances its scans. `Tile` gives the walked loads of
/// run `run`, step `step`, and what sweeps before this one computed there. Kind sweep carries every scan of
/// the sweep; kind aggregate those of rounds up to Round, later ones being left out. Framed: the m of
/// log-sums that can_be_framed stays.
template <class K, stage_kind Kind, int Sweep, int Round, bool Framed, class Tile> struct step_memory {
  using group = typename K::group;
  using C = typename K::compute;
  using here = stage<group, Kind, Sweep>;
  static constexpr bool takes_branches = false;  // a branch at every step of an unrolled tile costs more
  template <int Scan> static constexpr bool in_frame = Framed && can_be_framed<K, sweep_of<group, Scan>>;
  static constexpr bool has_common = Tile::keeps_common && !(Kind == stage_kind::aggregate && Sweep == 0);
  static constexpr bool remembers_some =
      (Kind == stage_kind::sweep && size_of_list<remembered_nodes<group, Sweep>> > 0) || has_common ||
      Tile::keeps_shared;
  template <int I>
  static constexpr int remembered_alone =
      Kind == stage_kind::sweep ? position_in<remembered_nodes<group, Sweep>, I> : -1;
  template <int I>
  static constexpr bool is_shared = Tile::keeps_shared && position_in<shared_nodes<group>, I> >= 0;
  template <int I>
  static constexpr int remembered_at = remembered_alone<I> >= 0 || is_shared<I> ? 0
                                       : has_common ? position_in<common_nodes<group>, I>
                                                    : -1;
  const Tile& tile;
  int run, step;
  states<group, C>& state;
  bool advances = true;  ///< else the scans stay as they are

  template <int I> __device__ __forceinline__ value_of_node<group, I, C> read(index_constant<I> which) const {
    if constexpr (here::template from<I> == source::kept)
      return from_kept<group, I>(tile.thread.kept[position_in<kept_nodes<group>, I>][Tile::lane_of(run)]);
    else if constexpr (here::template from<I> == source::scratch)
      return tile.template replayed<position_in<replayed_nodes<group>, I>>(step);
    else if constexpr (position_in<still_loads<group>, I> >= 0)
      return from_kept<group, I>(tile.thread.still[position_in<still_loads<group>, I>][Tile::lane_of(run)]);
    else if constexpr (is_integer(node_at<group, I>))
      return load_at<group, I, C>(tile.thread.a, exists(),
                                  [&] { return offset<node_at<group, I>.target>(); });
    else
      return tile.read(which, run, step);
  }
  template <int I> __device__ __forceinline__ C remembered() const {
    if constexpr (remembered_alone<I> >= 0)
      return tile.remembered(remembered_alone<I>, run, step);
    else if constexpr (is_shared<I>)
      return tile.shared(position_in<shared_nodes<group>, I>, run, step);
    else
      return tile.common(position_in<common_nodes<group>, I>, run, step);
  }
  template <int I, class... Position>
  __device__ __forceinline__ value_of_node<group, I, C> gather(index_constant<I>,
                                                               Position... positions) const {
    return gather_at<group, I, C>(
        tile.thread.a, exists(), [&] { return offset<node_at<group, I>.target>(); }, positions...);
  }
  static constexpr bool knows_divisors = has_small_integers<C>;
  template <int I, class... Position>
  __device__ __forceinline__ std::int32_t floor_quotient(index_constant<I>, std::int32_t x,
                                                         Position... position) const {
    return floor_quotient_at<group, I>(tile.thread.a, x, position...);
  }
  __device__ __forceinline__ bool exists() const {
    return tile.has_step(run, step) && Tile::lane_of(run) < tile.thread.valid;
  }
  /// Of this step and lane in tensor T, in elements.
  template <int T> __device__ __forceinline__ std::int64_t offset() const {
    const auto& a = tile.thread.a;
    // From the run's first step on: one addition a step.
    const std::int64_t along = Tile::anywhere ? walk_offset(a, T, tile.position(run, step))
                                              : tile.position(run, 0) * a.walk[0].stride[T] +
                                                    step * (tile.direction() * a.walk[0].stride[T]);
    if constexpr (counts_the_walk<group, T>)
      return tile.thread.place[T] + along;
    else
      return tile.thread.place[T] + along + Tile::lane_of(run) * a.inner_stride[T];
  }
  template <int S, int Component>
  __device__ __forceinline__ C last(index_constant<S>, index_constant<Component>) const {
    return C(0);  // `last` is evaluated at boundaries and kept
  }
  /// In a frame, whose exponentials are approximate too: absolute error 2^-22, relative error 2^-22 where the
  /// result is beyond [-0.7, 0.7].
  __device__ __forceinline__ C log_of_sum(C sum) const {
    return C(log2_approximate(static_cast<float>(sum)) * 0.6931471805599453F);
  }
  __device__ __forceinline__ C exp_in_frame(C x, C m) const { return cuda_detail::exp_in_frame(x, m); }
  /// What is added to scan S's sum in a frame: nothing where nothing exists.
  template <int S> __device__ __forceinline__ C masked(C term) const {
    if constexpr (Tile::fills_missing && vanishes<group, S>)
      return term;
    else
      return advances ? term : C(0);
  }
  template <int S>
  static constexpr bool keeps_exponential =
      Tile::keeps_exponentials && position_in<kept_exponentials<group>, S> >= 0;
  /// The same of what scan S takes here, which its fold may have left, as a term of its sum.
  template <int S> __device__ __forceinline__ C exp_of_element(C x, C m) const {
    if constexpr (keeps_exponential<S>) {
      C& kept = tile.exponential(position_in<kept_exponentials<group>, S>, run, step);
      if constexpr (Kind == stage_kind::aggregate && sweep_of<group, S> == Sweep)
        kept = masked<S>(exp_in_frame(x, m));
      return kept;
    } else {
      return exp_in_frame(x, m);
    }
  }
  __device__ __forceinline__ C share(C x, C sum) const { return x * reciprocal_of_sum(sum); }
  template <int S, class Element, class Before, class After>
  __device__ __forceinline__ void advance(index_constant<S>, const Element& element, Before&& before,
                                          After&& after) const {
    if constexpr (Kind == stage_kind::aggregate && round_of<group, S> > Round) {
      return;
    } else {
      before(state_of<S>(state));
      if constexpr (in_frame<S> && is_log_sum<group, S>) {  // m stays, also for a compiler
        auto& [m, sum] = state_of<S>(state);
        const C next = sum + exp_of_element<S>(std::get<0>(element), m);
        if (keeps_exponential<S> || advances) sum = next;
      } else if constexpr (is_tally<group>(S)) {  // of a tile in parts, or the slow ways, step by step
        C& sum = std::get<0>(state_of<S>(state));
        const bool counts = (Framed && !Tile::has_parts) || tile.has_step(run, step);
        sum = counts ? sum + std::get<0>(element) : sum;
      } else if constexpr (scale_of<group, S> >= 0) {  // a sum, to which what does not exist adds 0
        C& sum = std::get<0>(state_of<S>(state));
        sum = sum + (Kind == stage_kind::sweep ? std::get<0>(element) : masked<S>(std::get<0>(element)));
      } else {
        auto next = state_of<S>(state);
        combiner<group, S, here::template live_components<S>>::apply(next, element);
        for_each_index(std::make_integer_sequence<int, components_of<group, S>>{},
                       [&]<int N>(index_constant<N>) {
                         C& component = std::get<N>(state_of<S>(state));
                         component = advances ? std::get<N>(next) : component;
                       });
      }
      after(state_of<S>(state));
    }
  }
};

/// Sees what elements a stage hands to scan Scan, and advances nothing.
template <class K, int Sweep, int Scan, class Tile>
struct probe_memory : step_memory<K, stage_kind::aggregate, Sweep, 0, true, Tile> {
  using C = typename K::compute;
  C& found;
  __device__ __forceinline__ probe_memory(const Tile& tile, int run, states<typename K::group, C>& state,
                                          C& to)
      : step_memory<K, stage_kind::aggregate, Sweep, 0, true, Tile>{tile, run, 0, state, true}, found(to) {}
  template <int S, class Element, class Before, class After>
  __device__ __forceinline__ void advance(index_constant<S>, const Element& element, Before&&,
                                          After&&) const {
    if constexpr (S == Scan) found = std::get<0>(element);
  }
};

/// Where one step of a thread's lanes lies: as a tile's place.
template <class K, int Lanes> struct one_step {
  static constexpr int runs = Lanes, length = 1, vectors = 1, width = Lanes, threads = 0, lane_count = Lanes;
  static constexpr bool can_flip = false, vector_is_step = true, rolled = false, can_share = false,
                        repeats = false, ragged = false;
  static constexpr __device__ __forceinline__ int run_of(int, int e) { return e; }
  static constexpr __device__ __forceinline__ int step_of(int, int) { return 0; }
  static constexpr __device__ __forceinline__ int vector_of(int, int) { return 0; }
  static constexpr __device__ __forceinline__ int element_of(int run, int) { return run; }
  static constexpr __device__ __forceinline__ int lane_of(int run) { return run; }

  const lane_group<K, Lanes>& thread;
  std::int64_t at;
  __device__ __forceinline__ one_step(const lane_group<K, Lanes>& t, std::int64_t where)
      : thread(t), at(where) {}
  __device__ __forceinline__ bool flipped() const { return false; }
  __device__ __forceinline__ int direction() const { return 1; }
  __device__ __forceinline__ int steps(int) const { return 1; }
  __device__ __forceinline__ std::int64_t position(int, int) const { return at; }
  __device__ __forceinline__ int count(int) const { return thread.valid; }
  static constexpr __device__ __forceinline__ bool has(int) { return true; }
  static constexpr __device__ __forceinline__ bool has_all() { return true; }
  __device__ __forceinline__ bool whole(int t) const {
    return thread.valid == Lanes && thread.a.walk_dimensions == 1 &&
           (Lanes == 1 || thread.a.tensor[t].mode == access::vector);
  }
  __device__ __forceinline__ std::int64_t first(int t) const {
    return thread.place[t] + at * thread.a.walk[0].stride[t];
  }
  __device__ __forceinline__ std::int64_t next(int) const { return 0; }
  __device__ __forceinline__ element_path path(int t) const {
    return {thread.place[t], at, thread.a.inner_stride[t], 0, 0, {thread.valid, 0, thread.valid}};
  }
};

}  // namespace scandsl::cuda_detail
