#pragma once
#include "scandsl/exec/cuda/walk.cuh"

/// What the pieces of few lanes (pieces.cuh) come to: where that is kept between the launch that folds them
/// and the one that walks them, and how a block of the latter adds up what precedes its own.
namespace scandsl::cuda_detail {

/// What a launch of piece_kernel is told.
struct piece_arguments {
  std::int64_t pieces = 1, length = 0;  ///< of each lane (of all, with a list); steps of each
  std::int64_t lanes = 0;               ///< all, empty ones of a thread's among them
  std::int64_t side = 0;  ///< units of lanes side by side, whose pieces come one after the other
  /// [component][piece][lane] of pieces, and whether they are fit; then [component][piece][stretch][lane] of
  /// what precedes stretches. In the arithmetic's type.
  void* states = nullptr;
  bool folds = false;  ///< the first launch
  part_list parts;  ///< of reductions, in place of pieces of one length; `lanes` are then those side by side
};

template <class K, class Strip> struct piece_sums {
  using group = typename K::group;
  using C = typename K::compute;
  using scans = scans_in<group, 0>;
  using kept_type = typename scratch_type_of<C>::type;
  static constexpr int lanes = Strip::lanes, threads = Strip::threads;
  static constexpr int components = component_capacity<group>;
  /// Whether of the pieces nothing is wanted but what they make together.
  static constexpr bool only_folds = only_reduces<group, 0>;
  /// Whether stretches may be unfit for being combined. Then lanes are gone through once more, and must not
  /// have been written meanwhile: such programs cannot work in place.
  static constexpr bool may_overflow = any_scales<group, scans>;

  const typename K::arguments& a;
  const piece_arguments& of;
  Strip strip_threads;
  std::int64_t piece = 0;        ///< number of the block's, in scan order,
  std::int64_t first_piece = 0;  ///< and of the first one of its lanes
  std::int64_t first_unit = 0;   ///< of the block's lanes,
  std::int64_t first_kept = 0;   ///< and of those for which states lie side by side

  __device__ __forceinline__ piece_sums(const typename K::arguments& given, const piece_arguments& what,
                                        unsigned char* exchange)
      : a(given), of(what), strip_threads(given, reinterpret_cast<C*>(exchange)) {}

protected:
  __device__ __forceinline__ int segments() const { return threads >> a.log2_lane_threads; }
  static constexpr __host__ __device__ int groups_of(int lane_threads) {
    const int groups = quotient_of_powers(threads, lane_threads * lanes);
    return groups > 0 ? groups : 1;
  }

  // ---- where states are kept

  __device__ __forceinline__ kept_type* piece_at(std::int64_t number) const {
    return static_cast<kept_type*>(of.states) + number * of.lanes +
           (strip_threads.thread.unit - first_kept) * lanes;
  }
  __device__ __forceinline__ kept_type* fitness_at(std::int64_t number) const {
    return piece_at(number) + components * of.pieces * of.lanes;
  }
  __device__ __forceinline__ kept_type* stretch_at() const {
    return static_cast<kept_type*>(of.states) + (components + 1) * of.pieces * of.lanes +
           (piece * segments() + strip_threads.segment) * of.lanes + strip_threads.thread.unit * lanes;
  }
  __device__ __forceinline__ void put(kept_type* to, std::int64_t apart,
                                      states<group, C> (&state)[lanes]) const {
    if (strip_threads.thread.valid == 0) return;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) leave_frames<group, scans>(state[lane]);
    for_components<group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        to[component_index<group, scans>(S, Component) * apart + lane] =
            static_cast<kept_type>(std::get<Component>(state_of<S>(state[lane])));
    });
  }
  static __device__ __forceinline__ states<group, C> kept_at(const kept_type* from, std::int64_t apart) {
    states<group, C> state;
    for_components<group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
      std::get<Component>(state_of<S>(state)) =
          static_cast<C>(from[component_index<group, scans>(S, Component) * apart]);
    });
    return state;
  }

  // ---- what precedes a stretch

  /// Moves the carry, which holds the lanes' seeds, to where the thread's stretch begins. False, for the
  /// whole block, where states that are combined for that are not fit.
  __device__ __forceinline__ bool take_preceding() {
    auto& thread = strip_threads.thread;
    const int columns = a.lane_threads * lanes, groups = groups_of(a.lane_threads);
    C* const exchange = strip_threads.exchange;
    const std::int64_t first_lane = (first_unit - first_kept) * lanes;
    bool suspect = false;
    const auto exchanged = [&](int component, int which, int column) -> C& {
      return exchange[(component * groups + which) * columns + column];
    };
    const auto take = [&](int which, int column) {
      states<group, C> state;
      for_components<group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
        std::get<Component>(state_of<S>(state)) =
            exchanged(component_index<group, scans>(S, Component), which, column);
      });
      return state;
    };
    const auto leave = [&](const states<group, C>& state, int which, int column) {
      for_components<group, scans>([&]<int S, int Component>(index_constant<S>, index_constant<Component>) {
        exchanged(component_index<group, scans>(S, Component), which, column) =
            std::get<Component>(state_of<S>(state));
      });
    };
    states<group, C> in_piece[lanes];
    const bool has_more = !only_folds && strip_threads.segment > 0 && thread.valid > 0;
    if (has_more) {
      const kept_type* const from = stretch_at();
      const std::int64_t apart = of.pieces * of.lanes * segments();
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) in_piece[lane] = kept_at(from + lane, apart);
    }
    // A thread has a column, or some, and a share of the pieces; then the first ones a column and all shares.
    const int which = threads > columns ? static_cast<int>(threadIdx.x) / columns : 0;
    const int column_of_thread = static_cast<int>(threadIdx.x) & (columns - 1);
#pragma unroll 1
    for (int column = column_of_thread; column < columns; column += threads) {
      const std::int64_t share = (piece - first_piece + groups - 1) / groups,
                         first = first_piece + which * share,
                         end = first + share < piece ? first + share : piece;
      states<group, C> all;
      set_identity<group, scans>(all);
      if (first_lane + column < of.lanes)
        suspect = add_pieces(first, end, first_lane + column, all) || suspect;
      leave(all, which, column);
    }
    wait_for_all(threads);
    if (groups > 1) {
      if (which == 0) {
        states<group, C> all = take(0, column_of_thread);
#pragma unroll 1
        for (int other = 1; other < groups; other += batch) {
          states<group, C> next[batch];
#pragma unroll
          for (int i = 0; i < batch; ++i)
            if (other + i < groups)
              next[i] = take(other + i, column_of_thread);
            else
              set_identity<group, scans>(next[i]);
          suspect = append_batch(all, next, groups - other) || suspect;
        }
        leave(all, 0, column_of_thread);
      }
      wait_for_all(threads);
    }
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      states<group, C> next = take(0, strip_threads.lane_thread * lanes + lane);
      suspect = append(thread.carry[lane], next) || suspect;
    }
    if (has_more) {
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane)
        suspect = append(thread.carry[lane], in_piece[lane]) || suspect;
      suspect = suspect || (may_overflow && *fitness_at(piece) != kept_type(0));
    }
    return !may_overflow || !any_of_all(threads, suspect);
  }
  /// carry = combine(carry, next). Whether that may make a NaN which the scan in order does not make.
  static __device__ __forceinline__ bool append(states<group, C>& carry, states<group, C>& next) {
    const bool suspect = may_overflow && overflows<group, scans>(carry, next);
    combine_onto<group, scans>(carry, next);
    copy_states<group, scans>(next, carry);
    return suspect;
  }
  /// Appends the first `count` of a batch; the others are identities. Log-sums are restated in the frame of
  /// the largest and added.
  static constexpr int batch = larger(1, 16 / components);
  static __device__ __forceinline__ bool
  append_batch(states<group, C>& all, const states<group, C> (&next)[batch], std::int64_t count) {
    if constexpr (may_overflow) {
      bool suspect = false;
#pragma unroll
      for (int i = 0; i < batch; ++i)
        if (i < count) {
          states<group, C> each = next[i];
          suspect = append(all, each) | suspect;
        }
      return suspect;
    }
    for_each_index(sequence_of<scans>{}, [&]<int Scan>(index_constant<Scan>) {
      auto& to = state_of<Scan>(all);
      if constexpr (is_log_sum<group, Scan>) {
        auto& [m, sum] = to;
        C most = m;
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          const C other = state_of<Scan>(next[i])[0];
          most = other > most ? other : most;
        }
        const auto restated = [&](C of, C s) { return of == most ? s : s * arithmetic<C>::exp(of - most); };
        sum = restated(m, sum);
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          const auto& [other, s] = state_of<Scan>(next[i]);
          sum = sum + restated(other, s);
        }
        m = most;
      } else {
#pragma unroll
        for (int i = 0; i < batch; ++i)
          if (i < count)
            combiner<group, Scan, all_components<group, Scan>>::apply(to, state_of<Scan>(next[i]));
      }
    });
    return false;
  }
  /// Appends pieces [first, end) of a lane.
  __device__ __forceinline__ bool add_pieces(std::int64_t first, std::int64_t end, std::int64_t lane,
                                             states<group, C>& all) const {
    bool suspect = false;
    const std::int64_t apart = of.pieces * of.lanes;
    const kept_type* from = static_cast<const kept_type*>(of.states) + first * of.lanes + lane;
#pragma unroll 1
    for (std::int64_t number = first; number < end; number += batch) {
      states<group, C> next[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        set_identity<group, scans>(next[i]);
        if (number + i < end) {
          next[i] = kept_at(from, apart);
          if constexpr (may_overflow) suspect = suspect | (from[components * apart] != kept_type(0));
        }
        from += of.lanes;
      }
      suspect = append_batch(all, next, end - number) | suspect;
    }
    return suspect;
  }
};

}  // namespace scandsl::cuda_detail
