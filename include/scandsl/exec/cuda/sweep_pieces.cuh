#pragma once
#include "scandsl/exec/cuda/scan_tile.cuh"

/// Few lanes of a program of several sweeps, cut into pieces of several tiles, of which each block has one.
/// The kernel is launched once for each sweep with scans, and once more:
///
///     launch 0   folds sweep 0 of each piece
///     launch 1   walks sweep 0, from what the pieces before make; folds sweep 1
///     launch 2   walks sweep 1 likewise
///
/// A fold is the walk from the scans' identity, of which nothing is written but what the scans have become.
/// Between two of these launches a small one joins what they have become. Tallies, of which each block has
/// those of its piece behind launch 2, are joined likewise, before launch 3.
namespace scandsl::cuda_detail {

/// The one scan of a sweep; -1: there are none, or more.
template <class Group> constexpr int find_only_scan(int sweep) {
  int found = -1, count = 0;
  for (int i = 0; i < Group::value.scans.count; ++i)
    if (Group::plan.sweep_of_scan[i] == sweep) found = i, ++count;
  return count == 1 ? found : -1;
}
/// Of a sweep whose scan is in units of another sum, the component that is its factor in the robust program;
/// -1: there is no such scan.
template <class Framed, class Robust> constexpr int find_factor(int sweep) {
  const int framed = find_only_scan<Framed>(sweep), robust = find_only_scan<Robust>(sweep);
  if (framed < 0 || robust < 0 || Framed::value.scans[framed].scaled_by < 0) return -1;
  for (int k = 0; k < 2; ++k)
    if (Robust::value.scans[robust].identity[k] == 1.0) return k;
  return -1;
}
/// Whether what the two programs make of a piece is the same, but for that factor: the ratio of the other
/// sums before the piece and behind it.
template <class Framed, class Robust> constexpr bool makes_same_states() {
  bool same = Framed::plan.sweeps == Robust::plan.sweeps;
  for (int s = 0; s < Framed::plan.sweeps && same; ++s) {
    const int framed = find_only_scan<Framed>(s), robust = find_only_scan<Robust>(s);
    if (Framed::plan.sweep[s].has_scans != Robust::plan.sweep[s].has_scans) same = false;
    if (!Framed::plan.sweep[s].has_scans) continue;
    if (framed < 0 || robust < 0) return false;
    const scan_decl &f = Framed::value.scans[framed], &r = Robust::value.scans[robust];
    if (f.scaled_by < 0)
      same = same && f.components == r.components && f.log_sum == r.log_sum;
    else
      same = same && f.components == 1 && r.components == 2 && find_factor<Framed, Robust>(s) >= 0 &&
             r.identity[1 - find_factor<Framed, Robust>(s)] == 0.0 &&
             Framed::plan.sweep_of_scan[f.scaled_by] == s - 1 && find_only_scan<Framed>(s - 1) == f.scaled_by;
  }
  return same;
}

/// What the robust program K makes of one lane's pieces, whichever kernel found it: [sweep][component][slot]
/// [lane], slots numbered in the order of the sweep. First, slot i + 1 holds what scans make of piece i; once
/// threads have joined, what they make of all as far as that, and slot 0 the scans' identity. Of reductions,
/// tallies among them, only the last slot is joined.
template <class K, int S> struct piece_states {
  using group = typename K::group;
  using C = typename K::compute;
  using saved_type = typename scratch_type_of<C>::type;
  using all = scans_in<group, S>;
  static constexpr int flag = sweep_capacity<group>;

  saved_type* first;
  std::int64_t apart, lanes;

  __device__ __forceinline__ piece_states(const sweep_pieces& of, std::int64_t lane)
      : first(static_cast<saved_type*>(of.states) +
              S * (sweep_capacity<group> + std::int64_t{1}) * (of.count + 1) * of.lanes + lane),
        apart((of.count + std::int64_t{1}) * of.lanes), lanes(of.lanes) {}
  __device__ __forceinline__ saved_type& at(int slot, int component) const {
    return first[component * apart + slot * lanes];
  }
  /// Whether pieces may not be joined. Of a thread's first lane.
  __device__ __forceinline__ saved_type& suspect() const { return at(0, flag); }

  /// Of the scans in Holder.
  template <class Holder> __device__ __forceinline__ void read(int slot, states<group, C>& state) const {
    for_components<group, Holder>([&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
      std::get<Component>(state_of<N>(state)) =
          static_cast<C>(at(slot, component_index<group, all>(N, Component)));
    });
  }
  template <class Holder>
  __device__ __forceinline__ void write(int slot, const states<group, C>& state) const {
    for_components<group, Holder>([&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
      at(slot, component_index<group, all>(N, Component)) =
          static_cast<saved_type>(std::get<Component>(state_of<N>(state)));
    });
  }
};

/// Between two launches: appends each piece's states of the scans in Holder to those before it. Threads that
/// share lanes take some pieces each, and join.
template <class K, class Arrangement, int S, class here>
__device__ __forceinline__ void join_pieces_of(const typename K::arguments& a,
                                               typename K::compute* exchange) {
  using group = typename K::group;
  constexpr int lanes = Arrangement::lanes;
  Arrangement threads(a, exchange);
  const std::int64_t unit = threads.unit_of(blockIdx.x);
  const bool exists = unit < a.lanes, writes = exists && threads.of_sharing() == 0;
  const auto of = [&](int lane) { return piece_states<K, S>(a.pieces, (exists ? unit : 0) * lanes + lane); };
  const int share = (a.pieces.count + threads.sharing() - 1) / threads.sharing(),
            first = threads.of_sharing() * share, end = smaller(a.pieces.count, first + share);
  states<group, typename K::compute> local[Arrangement::runs], preceding[Arrangement::runs], total[lanes];
  bool suspect = false;
  const auto append = [&](states<group, typename K::compute>& state, int lane, int piece) {
    states<group, typename K::compute> next = state;
    of(lane).template read<here>(piece + 1, next);
    if constexpr (any_scales<group, here>) suspect = suspect | overflows<group, here>(state, next);
    combine_onto<group, here>(state, next);
    copy_states<group, here>(next, state);
  };
  threads.thread.valid = exists ? lanes : 0;
#pragma unroll
  for (int lane = 0; lane < lanes; ++lane) {
    set_identity<group, here>(local[lane]);
    set_identity<group, here>(threads.thread.carry[lane]);
    if (writes) of(lane).template write<here>(0, local[lane]);
#pragma unroll 4
    for (int i = first; i < end; ++i) append(local[lane], lane, i);
  }
  suspect = threads.template join<here, false, true>(local, preceding, total, suspect & exists, exists);
  if (writes && std::is_same_v<here, folded_in<group, S>>) of(0).suspect() = suspect ? 1 : 0;
  if (suspect || !exists) return;
  if constexpr (reduces<group, here>) {  // what precedes a piece is not wanted, nor known
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      if (writes) of(lane).template write<here>(a.pieces.count, total[lane]);
  } else {
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
#pragma unroll 4
      for (int i = first; i < end; ++i) {
        append(preceding[lane], lane, i);
        of(lane).template write<here>(i + 1, preceding[lane]);
      }
  }
}
/// ... of the sweep that this launch has folded, and the tallies of that which it went through. A function of
/// its own, out of the way of a kernel's registers.
template <class K, class Arrangement>
__device__ __noinline__ void join_pieces(const typename K::arguments& a, unsigned char* shared) {
  using group = typename K::group;
  const auto exchange = reinterpret_cast<typename K::compute*>(shared);
  for_each_index(std::make_integer_sequence<int, sweep_count<group>>{}, [&]<int S>(index_constant<S>) {
    if constexpr (sweep_has_scans<group, S>)
      if (launch_of_fold<group>(S) == a.pieces.launch)
        join_pieces_of<K, Arrangement, S, folded_in<group, S>>(a, exchange);
    if constexpr (has_tallies<group, S>)
      if (launch_of_fold<group>(S) + 1 == a.pieces.launch)
        join_pieces_of<K, Arrangement, S, tallies_in<group, S>>(a, exchange);
  });
}

template <class K, class Arrangement> struct piece_scanner : tile_scanner<K, Arrangement> {
  using base = tile_scanner<K, Arrangement>;
  using group = typename K::group;
  using robust_group = typename K::robust::group;
  using C = typename K::compute;
  using base::a, base::threads, base::lanes;
  /// What states are kept as.
  using saved_type = typename scratch_type_of<C>::type;
  using base::base;

  /// Whether lanes may be cut into pieces, and whether the kernel for tiles that hold frames takes them, too.
  static constexpr bool takes_pieces = cuts_sweeps<group> && !Arrangement::clustered;
  static constexpr bool streams_pieces =
      takes_pieces && (std::is_same_v<K, typename K::robust> || makes_same_states<group, robust_group>());

  /// Tiles that a sweep goes through, numbered in the order of the first sweep.
  struct tiles_to_do {
    int first, count;
    bool writes;
  };

  int piece = 0;  ///< number of the block's, in the order of the first sweep

  __device__ __forceinline__ bool in_pieces() const { return takes_pieces && a.pieces.count > 1; }
  /// Finds the block's piece; the number of its lanes' block.
  __device__ __forceinline__ std::int64_t find_piece() {
    std::int64_t block = blockIdx.x;
    if (in_pieces()) {
      const std::int64_t count = a.pieces.count;
      piece = static_cast<int>(split_off(block, count));
    }
    return block;
  }
  /// Of as many tiles as a lane has.
  template <int S> __device__ __forceinline__ tiles_to_do own_tiles(int all) const {
    const int first = smaller(piece * a.pieces.tiles, all);
    return {first, smaller(first + a.pieces.tiles, all) - first, !folds_piece<S>()};
  }
  /// How many pieces come before the block's own in the order of a sweep.
  template <bool Back> __device__ __forceinline__ int pieces_before() const {
    return Back ? a.pieces.count - 1 - piece : piece;
  }

  /// Whether sweep S, or what comes before it once a lane, has its turn in this launch or had it before.
  template <int S> __device__ __forceinline__ bool reaches() const {
    return !in_pieces() || launch_of_fold<group>(S) <= a.pieces.launch;
  }
  template <int S> __device__ __forceinline__ bool writes_boundary() const {
    return !in_pieces() || (piece == 0 && launch_of_fold<group>(S) == a.pieces.launch);
  }
  template <int S> __device__ __forceinline__ bool folds_now() const {
    return sweep_has_scans<group, S> && launch_of_fold<group>(S) == a.pieces.launch;
  }
  /// Whether the block folds its piece in this launch, and so writes nothing.
  template <int S> __device__ __forceinline__ bool folds_piece() const {
    return in_pieces() && folds_now<S>();
  }
  template <int S> __device__ __forceinline__ bool walks_now() const {
    constexpr bool matters = is_replayed<group>(S) ||
                             stage_of<group, stage_kind::sweep, S>.stores.count > 0 || has_tallies<group, S>;
    return matters && launch_of_fold<group>(S) + (sweep_has_scans<group, S> ? 1 : 0) == a.pieces.launch;
  }

  static __device__ __forceinline__ void copy_carries(const states<group, C> (&from)[lanes],
                                                      states<group, C> (&to)[lanes]) {
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) to[lane] = from[lane];
  }
  template <int S> __device__ __forceinline__ void set_carry(const states<group, C> (&from)[lanes]) {
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      copy_states<group, folded_in<group, S>>(from[lane], threads.thread.carry[lane]);
  }
  template <int S> __device__ __forceinline__ void set_no_carry() {
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      set_identity<group, folded_in<group, S>>(threads.thread.carry[lane]);
  }

  /// Leaves what the scans of sweep S have made of the block's piece.
  template <int S, bool Back> __device__ __forceinline__ void publish() {
    if (!threads.thread.writes || threads.thread.valid == 0) return;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      states<group, C>& carry = threads.thread.carry[lane];
      leave_frames<group, folded_in<group, S>>(carry);
      if (lane >= threads.thread.valid)
        set_identity<group, folded_in<group, S>>(carry);  // joined like others
      for_components<group, folded_in<group, S>>(
          [&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
            pieces_of<S>(lane).at(pieces_before<Back>() + 1, place_of<S>(N, Component)) =
                static_cast<saved_type>(std::get<Component>(state_of<N>(carry)));
          });
    }
  }
  /// Makes the tallies of sweep S those of all steps: of the block's piece, which it leaves, or in the last
  /// launch of all pieces.
  template <int S> __device__ __forceinline__ void finish_tallies() {
    if constexpr (has_tallies<group, S>) {
      if (!in_pieces() || walks_now<S>()) base::template join_tallies<S>();
      if constexpr (std::is_same_v<group, robust_group>) {  // others leave pieces to those
        if (!in_pieces() || threads.thread.valid == 0) return;
        using here = tallies_in<group, S>;
#pragma unroll
        for (int lane = 0; lane < lanes; ++lane) {
          states<group, C>& carry = threads.thread.carry[lane];
          const auto of = pieces_of<S>(lane);
          if (walks_now<S>()) {
            if (lane >= threads.thread.valid) set_identity<group, here>(carry);
            if (threads.thread.writes) of.template write<here>(piece + 1, carry);
          } else if (launch_of_fold<group>(sweep_count<group>) == a.pieces.launch) {
            of.template read<here>(a.pieces.count, carry);
          }
        }
      }
    }
  }
  /// Appends the first `count` pieces in the order of sweep S (where it only reduces: all of them) to the
  /// carry. False, for all that come and go together, where that may make a NaN which the scan in order does
  /// not make.
  template <int S> __device__ __forceinline__ bool add_pieces(int count) {
    if constexpr (reduces<group, folded_in<group, S>>) count = a.pieces.count;
    bool suspect = threads.thread.valid > 0 && pieces_of<S>(0).suspect() != 0;
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane)
      if (lane < threads.thread.valid)
        suspect = append<S>(count, lane, threads.thread.carry[lane]) || suspect;
    return !threads.any(suspect);
  }
  /// Appends all that come before the block's own. Where the next sweep's scan, which goes the other way, is
  /// in units of this one's sum, leaves its factor: the ratio of the sums before the piece and behind it.
  template <int S, bool Back> __device__ __forceinline__ bool begin_piece() {
    constexpr bool scales = scales_others<group>(S);
    states<group, C> behind[lanes];
    if constexpr (scales)
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) {
        behind[lane] = threads.thread.carry[lane];
        if (threads.thread.valid > 0) append<S>(pieces_before<Back>() + 1, lane, behind[lane]);
      }
    const bool fits = add_pieces<S>(pieces_before<Back>());
    if constexpr (scales)
#pragma unroll
      for (int lane = 0; lane < lanes; ++lane) {
        constexpr int sum = find_only_scan<group>(S);
        const auto& [m, s] = state_of<sum>(threads.thread.carry[lane]);
        const auto& [top, all] = state_of<sum>(behind[lane]);
        // Both are empty where all elements are -inf.
        const C ratio = s == all ? C(1) : s / all, shrink = m == top ? C(1) : arithmetic<C>::exp(m - top);
        if (threads.thread.writes && threads.thread.valid > 0)
          pieces_of<S + 1>(lane).at(pieces_before<!Back>() + 1, factor_of<S + 1>) =
              static_cast<saved_type>(lane < threads.thread.valid ? ratio * shrink : C(1));
      }
    return fits;
  }

private:
  template <int S>
  static constexpr int factor_of =
      std::is_same_v<group, robust_group> ? -1 : find_factor<group, robust_group>(S);
  /// Of a component, the number in the robust program's states.
  template <int S> static constexpr int place_of(int scan, int component) {
    return factor_of<S> >= 0 ? 1 - factor_of<S> : component_index<group, scans_in<group, S>>(scan, component);
  }
  template <int S> __device__ __forceinline__ auto pieces_of(int lane) const {
    // Computed where it is wanted: compilers would hold it in registers all through a sweep.
    std::int64_t unit = threads.thread.unit;
    asm volatile("" : "+l"(unit));
    return piece_states<typename K::robust, S>(a.pieces, unit * lanes + lane);
  }
  /// Appends what is in a slot to a lane's state; whether that is suspect.
  template <int S> __device__ __forceinline__ bool append(int slot, int lane, states<group, C>& state) const {
    using here = folded_in<group, S>;
    const auto of = pieces_of<S>(lane);
    if constexpr (factor_of<S> >= 0) {
      C& r = std::get<0>(state_of<find_only_scan<group>(S)>(state));
      r = static_cast<C>(of.at(slot, factor_of<S>)) * r + static_cast<C>(of.at(slot, 1 - factor_of<S>));
      return !(arithmetic<C>::abs(r) < C(1e37F));
    } else {
      states<group, C> next = state;
      for_components<group, here>([&]<int N, int Component>(index_constant<N>, index_constant<Component>) {
        std::get<Component>(state_of<N>(next)) = static_cast<C>(of.at(slot, place_of<S>(N, Component)));
      });
      const bool suspect = any_scales<group, here> && overflows<group, here>(state, next);
      combine_onto<group, here>(state, next);
      copy_states<group, here>(next, state);
      return suspect;
    }
  }
};

}  // namespace scandsl::cuda_detail
