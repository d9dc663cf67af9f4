#pragma once
#include <array>

#include "scandsl/exec/cuda/kernel.cuh"

/// The states of a program's scans: how they are combined, kept and passed on, and whether a stretch's is fit
/// for that.
namespace scandsl::cuda_detail {

template <int Scan, class C, int Components> struct scan_state {
  std::array<C, static_cast<std::size_t>(Components)> value;
};
template <class Group, class C, class Sequence> struct scan_states;
template <class Group, class C, int... Scan>
struct scan_states<Group, C, std::integer_sequence<int, Scan...>>
    : scan_state<Scan, C, components_of<Group, Scan>>... {};

/// The states of all scans of a program, for one lane.
template <class Group, class C>
using states = scan_states<Group, C, std::make_integer_sequence<int, scan_count<Group>>>;

template <int Scan, class C, int Components>
__device__ __forceinline__ std::array<C, static_cast<std::size_t>(Components)>&
state_of(scan_state<Scan, C, Components>& s) {
  return s.value;
}
template <int Scan, class C, int Components>
__device__ __forceinline__ const std::array<C, static_cast<std::size_t>(Components)>&
state_of(const scan_state<Scan, C, Components>& s) {
  return s.value;
}

/// Calls f(scan, component) with constants, for every component of the scans in Holder::list; Framed: without
/// the m of log-sums, which then is the same all over the tile.
template <class Group, class Holder, bool Framed = false, class F>
__device__ __forceinline__ void for_components(F&& f) {
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) {
    for_each_index(std::make_integer_sequence<int, components_of<Group, S>>{}, [&]<int K>(index_constant<K>) {
      if constexpr (!(Framed && is_log_sum<Group, S> && K == 0)) f(index_constant<S>{}, index_constant<K>{});
    });
  });
}
/// How many it visits.
template <class Group, class Holder, bool Framed>
inline constexpr int component_count = [] {
  int count = 0;
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) {
    count += components_of<Group, S> - (Framed && is_log_sum<Group, S> ? 1 : 0);
  });
  return count;
}();
/// Position of a component among those that for_components visits.
template <class Group, class Holder> constexpr int component_index(int scan, int component) {
  int index = 0;
  for (const int each : Holder::list) {
    if (each == scan) return index + component;
    index += Group::value.scans[each].components;
  }
  return -1;
}

template <class Group, class Holder, bool Framed = false, class C>
__device__ __forceinline__ void set_identity(states<Group, C>& s) {
  for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    std::get<K>(state_of<S>(s)) = static_cast<C>(identity_of<Group, S, K>);
  });
}
/// What is kept of a component, and the component from that.
template <class Group, int S, int K, class C>
__device__ __forceinline__ typename scratch_type_of<C>::type kept_of(const states<Group, C>& s) {
  const auto& state = state_of<S>(s);
  if constexpr (is_kept_as_value<Group, C>(S))
    return static_cast<float>(state[0] + arithmetic<C>::log(state[1]));
  else
    return static_cast<typename scratch_type_of<C>::type>(std::get<K>(state));
}
template <class Group, int S, int K, class C>
__device__ __forceinline__ void restore_kept(states<Group, C>& s, typename scratch_type_of<C>::type kept) {
  auto& state = state_of<S>(s);
  std::get<K>(state) = static_cast<C>(kept);
  if constexpr (is_kept_as_value<Group, C>(S)) state[1] = C(1);
}
/// right = combine(left, right).
template <class Group, class Holder, bool Framed = false, class C>
__device__ __forceinline__ void combine_onto(const states<Group, C>& left, states<Group, C>& right) {
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) {
    if constexpr (Framed && is_log_sum<Group, S>) {
      std::get<1>(state_of<S>(right)) = std::get<1>(state_of<S>(left)) + std::get<1>(state_of<S>(right));
    } else {
      auto before = state_of<S>(left);
      combiner<Group, S, all_components<Group, S>>::apply(before, state_of<S>(right));
      state_of<S>(right) = before;
    }
  });
}
/// The same for the threads that `take` it, of which a warp may have some. It is computed for all and chosen
/// from: behind a branch the compiler holds each state twice, and does not see that the vectors of a thread
/// share a factor. Strips keep the branch: their gradients have no register left.
template <class Group, class Holder, bool Framed = false, class C>
__device__ __forceinline__ void combine_onto_if(bool take, const states<Group, C>& left,
                                                states<Group, C>& right) {
  states<Group, C> combined = right;
  combine_onto<Group, Holder, Framed>(left, combined);
  for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    C& component = std::get<K>(state_of<S>(right));
    component = arithmetic<C>::select(take, std::get<K>(state_of<S>(combined)), component);
  });
}
template <class Group, class Holder, class C>
__device__ __forceinline__ void copy_states(const states<Group, C>& from, states<Group, C>& to) {
  for_each_index(sequence_of<Holder>{},
                 [&]<int S>(index_constant<S>) { state_of<S>(to) = state_of<S>(from); });
}

/// The most components that the scans of one round have: what threads exchange at a time.
template <class Group> constexpr int find_component_capacity() {
  int most = 0;
  for (int s = 0; s < Group::plan.sweeps; ++s)
    for (int round = 0; round <= find_rounds<Group>(s); ++round) {
      int count = 0;
      for (int i = 0; i < Group::value.scans.count; ++i)
        if (Group::plan.sweep_of_scan[i] == s && find_round<Group>(i) == round)
          count += Group::value.scans[i].components;
      if (count > most) most = count;
    }
  return most;
}
template <class Group> inline constexpr int component_capacity = find_component_capacity<Group>();
/// The most that the scans of one sweep have, tallies among them.
template <class Group>
inline constexpr int sweep_capacity = [] {
  int most = 0;
  for (int s = 0; s < Group::plan.sweeps; ++s) {
    int count = 0;
    for (int i = 0; i < Group::value.scans.count; ++i)
      if (Group::plan.sweep_of_scan[i] == s) count += Group::value.scans[i].components;
    most = larger(most, count);
  }
  return most;
}();

/// The states `distance` threads further up a warp, or where the scan goes Back through it, down.
template <class Group, class Holder, bool Framed, bool Back, class C>
__device__ __forceinline__ states<Group, C> shuffle_before(const states<Group, C>& from, int distance) {
  states<Group, C> left = from;
  for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    const C mine = std::get<K>(state_of<S>(from));
    const auto apart = static_cast<unsigned>(distance);
    std::get<K>(state_of<S>(left)) = Back ? shuffle_down(mine, apart, 32) : shuffle_up(mine, apart, 32);
  });
  return left;
}
template <class Group, class Holder, bool Framed = false, class C>
__device__ __forceinline__ states<Group, C> shuffle_from(const states<Group, C>& from, int lane, int width) {
  states<Group, C> state = from;
  for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    std::get<K>(state_of<S>(state)) = shuffle_from(std::get<K>(state_of<S>(from)), lane, width);
  });
  return state;
}

/// Whether the scan's combine multiplies. Adding and comparing make no NaN that a walk in order would not
/// make; nor do log-sums, which multiply by 1 or less: sums in frames have largest_sum to be below, and 2^24
/// tiles' of them stay finite; others are at most as many as there are elements.
template <class Group, int Scan> constexpr bool find_scales() {
  if (is_log_sum<Group, Scan>) return false;
  node_list roots;
  for (int k = 0; k < Group::value.scans[Scan].components; ++k)
    roots.push_back(Group::value.scans[Scan].combined[k]);
  for (const int i : nodes_below(Group::value, roots)) {
    const node& n = Group::value.nodes[i];
    if (is_apply<primitive::multiply_op>(n) || is_apply<primitive::divide_op>(n) ||
        is_apply<primitive::pow_op>(n))
      return true;
  }
  return false;
}
template <class Group, int Scan> inline constexpr bool scales = find_scales<Group, Scan>();
/// Whether the combine of some scan in Holder multiplies: a stretch of it may be unfit for being combined.
template <class Group, class Holder>
inline constexpr bool any_scales = [] {
  bool any = false;
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) { any = any || scales<Group, S>; });
  return any;
}();
/// Whether component K of a scan is a factor: it has identity 1, and the combine multiplies.
template <class Group, int Scan, int K>
inline constexpr bool is_factor = scales<Group, Scan> && identity_of<Group, Scan, K> == 1.0;

/// Whether of the scans in Holder nothing is wanted but the last value, in whatever order it is made.
template <class Group, class Holder> constexpr bool find_reduces() {
  bool reduces = true;
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) {
    constexpr int sweep = sweep_of<Group, S>;
    constexpr bool any_order = commutes(Group::value, S);
    reduces = reduces && any_order &&
              (is_tally<Group>(S) || (only_reduces<Group, sweep> && !is_replayed<Group>(sweep)));
  });
  return reduces;
}
template <class Group, class Holder> inline constexpr bool reduces = find_reduces<Group, Holder>();

/// Whether the scan's combine hides no infinity and no NaN: it adds and multiplies only.
template <class Group, int Scan> constexpr bool find_passes_on() {
  node_list roots;
  for (int k = 0; k < Group::value.scans[Scan].components; ++k)
    roots.push_back(Group::value.scans[Scan].combined[k]);
  for (const int i : nodes_below(Group::value, roots)) {
    const node& n = Group::value.nodes[i];
    if (n.op == opcode::apply && !is_apply<primitive::multiply_op>(n) && !is_apply<primitive::add_op>(n) &&
        !is_apply<primitive::subtract_op>(n) && !is_apply<primitive::neg_op>(n))
      return false;
  }
  return true;
}
/// Whether a stretch of which overflows() says nothing has no part of which it would, but for its factors:
/// products and sums of what is not finite are not finite, and sums in a frame, which are not negative, are
/// as large as their parts. (A product need not tell: a factor of 0 may have come before others overflowed.)
template <class Group, class Holder, bool Framed> constexpr bool find_whole_tells() {
  bool tells = true;
  for_each_index(sequence_of<Holder>{}, [&]<int S>(index_constant<S>) {
    if (Framed && is_log_sum<Group, S>) return;
    tells = tells && (!scales<Group, S> || find_passes_on<Group, S>());
  });
  return tells;
}
template <class Group, class Holder, bool Framed>
inline constexpr bool whole_tells = find_whole_tells<Group, Holder, Framed>();

/// Whether a factor is not finite.
template <class Group, class Holder, class C>
__device__ __forceinline__ bool factors_overflow(const states<Group, C>& stretch) {
  bool overflow = false;
  for_components<Group, Holder>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    if constexpr (is_factor<Group, S, K>) {
      const C own = std::get<K>(state_of<S>(stretch));
      overflow = overflow | !(own - own == C(0));
    }
  });
  return overflow;
}

/// Up to which magnitude a component of each of `Joined` stretches stays finite in what they make together:
/// factors where their product does; what is added to others while the product of
/// factors is above 1 (Growing), or is not. Of float32, or of float64.
template <class C, int Joined> constexpr double largest_joined(bool factor, bool growing) {
  constexpr int exponents = std::is_same_v<C, double> ? 1022 : 126;
  constexpr int of_product = exponents / 4 * 3;
  int exponent = factor ? of_product / Joined : growing ? exponents - of_product - 1 : exponents;
  if (!factor)
    for (int joined = 1; joined < Joined; joined *= 2) --exponent;
  double power = 1;
  for (int i = 0; i < exponent; ++i) power *= 2;
  return power;
}

/// Sums in units of a log-sum above this are left to the scans' own operators: so many of them are finite.
inline constexpr float largest_scaled_sum = 0x1p100F;

/// Whether joining a stretch to what precedes it may make a NaN that a walk in order does not make: the
/// stretch's own state is not finite though its identity and the carry are (decays of 2 and a carry of 0
/// would make inf * 0), or the carry is infinite (and the stretch's product of decays may have become 0).
/// Joined: or what so many such stretches make together. Framed: or a sum leaves the range in which its frame
/// is exact.
template <class Group, class Holder, bool Framed = false, int Joined = 1, class C>
__device__ __forceinline__ bool overflows(const states<Group, C>& carry, const states<Group, C>& stretch) {
  bool suspect = false, growing = false;
  if constexpr (Joined > 1)
    for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
      if constexpr (is_factor<Group, S, K>) {
        growing = growing | (arithmetic<C>::abs(std::get<K>(state_of<S>(stretch))) > C(1));
      }
    });
  for_components<Group, Holder, Framed>([&]<int S, int K>(index_constant<S>, index_constant<K>) {
    constexpr double identity = identity_of<Group, S, K>;
    const C own = std::get<K>(state_of<S>(stretch)), before = std::get<K>(state_of<S>(carry));
    if constexpr (Framed && is_log_sum<Group, S>) {
      suspect = suspect | !(own < C(largest_sum<C>));
    } else if constexpr (scale_of<Group, S> >= 0) {  // what multiplies it may be 0 (frame_form::vanishing)
      const C limit = C(largest_scaled_sum);
      suspect = suspect | !(arithmetic<C>::abs(own) < limit) | !(arithmetic<C>::abs(before) < limit);
    } else if constexpr (scales<Group, S> && identity - identity == 0.0) {
      bool fits = own - own == C(0);
      if constexpr (Joined > 1) {
        constexpr bool factor = is_factor<Group, S, K>;
        const C limit = growing ? static_cast<C>(largest_joined<C, Joined>(factor, true))
                                : static_cast<C>(largest_joined<C, Joined>(factor, false));
        fits = arithmetic<C>::abs(own) <= limit;
      }
      const bool carried = !is_live<Group, S, K> || before - before == C(0);
      suspect = suspect | (!fits & carried) | (!carried & (before == before));  // no branches
    }
  });
  return suspect;
}

}  // namespace scandsl::cuda_detail
