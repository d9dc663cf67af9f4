#pragma once
#include <bit>

#include "scandsl/core/order.hpp"
#include "scandsl/exec/cuda/walk.cuh"
#include "scandsl/pass/cuda_plan.hpp"

namespace scandsl::cuda_detail {

/// How much one thread of a kernel holds.
template <class K> struct tile_policy {
  using group = typename K::group;
  static constexpr bool is_typed = knows_types<K>;
  static constexpr bool several_sweeps = group::plan.sweeps > 1;
  static constexpr int smallest_element = [] {
    int smallest = static_cast<int>(sizeof(typename K::compute));
    for_each_index(std::make_integer_sequence<int, K::tensors>{}, [&]<int T>(index_constant<T>) {
      using element = typename K::template element<T>;
      if constexpr (is_walked<group, T> && !std::is_same_v<element, any_type>)
        smallest = smaller(smallest, static_cast<int>(sizeof(element)));
    });
    return smallest;
  }();
  /// Of all operands that a step reads.
  static constexpr int step_bytes = [] {
    int bytes = 0;
    for_each_index(sequence_of<walked_loads<group, all_sweeps>>{}, [&]<int I>(index_constant<I>) {
      using element = typename K::template element<node_at<group, I>.target>;
      bytes += static_cast<int>(sizeof(held_element<element, typename K::compute>));
    });
    return larger(bytes, smallest_element);
  }();
  static constexpr int state_words =
      larger(1, component_capacity<group>) * static_cast<int>(sizeof(typename K::compute)) / 4;
  /// Nodes evaluated at a step. A tile is unrolled: what a thread holds is bounded by the code it takes, too.
  static constexpr int work = [] {
    int most = 1;
    for (int s = 0; s < group::plan.sweeps; ++s) {
      int nodes = group::plan.sweep[s].instructions.count;
      for (int q = 0; q < s; ++q)
        if (replays<group>(s, q)) nodes += group::plan.sweep[q].instructions.count;
      for (const scan_decl& scan : group::value.scans) nodes += 4 * scan.components;
      most = larger(most, nodes);
    }
    return most;
  }();
  static constexpr int unrolled_steps(int elements) {
    return larger(1, cuda_strip_policy::unrolled_work / (elements * work));
  }
  /// Elements of 16 bytes: a row's vector. A strip's may be fewer (strip_lanes).
  static constexpr int width = 16 / smallest_element;
  static constexpr bool is_map = group::plan.sweeps == 1 && scan_count<group> == 0;
  static constexpr bool reduces = group::plan.sweeps == 1 && only_reduces<group, 0>;
  static constexpr bool sums_scratch = cuda_detail::sums_scratch<K>;
  /// Whether angles turn along what one thread holds of a map, or reduces.
  static constexpr bool turns = (is_map && size_of_list<rotating_nodes<K, stage_kind::sweep, 0>> > 0) ||
                                (reduces && size_of_list<rotating_nodes<K, stage_kind::aggregate, 0>> > 0);
  static constexpr bool hoists = size_of_list<kept_nodes<group>> > 0 && !turns;
  static constexpr int strip_held_words = several_sweeps     ? cuda_strip_policy::held_words_of_sweeps
                                          : turns && reduces ? cuda_part_policy::held_words_of_turns
                                          : !is_map          ? cuda_strip_policy::held_words
                                          : hoists           ? cuda_strip_policy::held_words_of_hoisting_maps
                                                             : cuda_strip_policy::held_words_of_maps;
  /// Scans of one sweep, of types that are known.
  static constexpr bool scans = is_typed && !several_sweeps && shares_tiles<group>;
  static constexpr int strip_lanes = [] {
    int lanes = several_sweeps ? smaller(width, cuda_strip_policy::lanes_of_sweeps)
                : scans        ? larger(1, cuda_strip_policy::bytes_of_scans / smallest_element)
                               : width;
    while (turns && is_typed && lanes > 2 &&
           lanes * cuda_strip_policy::steps_of_turns * step_bytes > 4 * strip_held_words)
      lanes /= 2;
    while (lanes > 1 && lanes * smallest_element > 4 &&
           (lanes * state_words > 16 || unrolled_steps(lanes) < 4))
      lanes /= 2;
    return lanes;
  }();
  static constexpr int strip_steps = static_cast<int>(std::bit_floor(static_cast<unsigned>(clamped(
      smaller(4 * strip_held_words / ((several_sweeps || scans || turns ? strip_lanes : width) * step_bytes),
              unrolled_steps(strip_lanes)),
      2,
      several_sweeps       ? cuda_strip_policy::steps_of_sweeps
      : scans              ? cuda_strip_policy::steps_of_scans
      : is_map&& hoists    ? cuda_strip_policy::steps_of_hoisting_maps
      : is_typed || is_map ? cuda_strip_policy::most_steps
                           : cuda_strip_policy::steps_of_other_types))));
  static constexpr int strip_threads = is_map                     ? cuda_strip_policy::threads_of_maps
                                       : several_sweeps           ? cuda_strip_policy::threads_of_sweeps
                                       : scans || state_words > 1 ? 128
                                                                  : 256;
  /// Of rows that share what is computed for them; 0: they have nothing to share.
  static constexpr int repeat_vectors = [] {
    const int shared =
        is_typed && several_sweeps && !group::only_strips ? width * size_of_list<shared_nodes<group>> : 0;
    return shared == 0 || shared > cuda_row_policy::shared_words ? 0 : cuda_row_policy::shared_words / shared;
  }();
  static constexpr int row_held_words =
      several_sweeps ? cuda_row_policy::held_words_of_sweeps : cuda_row_policy::held_words;
  static constexpr int row_vectors = [] {
    if (!is_typed) return 1;  // rows have a warp at least, and short ones would compute what is not there
    int vectors = larger(1, cuda_row_policy::elements / width);
    while (vectors > 1 && (vectors * width > unrolled_steps(1) || vectors * state_words > 12 ||
                           vectors * width * step_bytes > 4 * row_held_words))
      vectors /= 2;
    return vectors;
  }();
  /// Few lanes along strips are cut into pieces; along rows they look back, with states of few words.
  static constexpr bool shares_lanes = scans_once<K> && !sums_scratch;
  static constexpr bool takes_pieces = shares_lanes && !group::only_rows;
  static constexpr bool looks_back = shares_lanes && state_words <= 8 && !group::only_strips;
  /// In float64 with types that are looked up, or small: seldom run.
  static constexpr bool rolled = (!is_typed || sums_scratch) && std::is_same_v<typename K::compute, double>;
  /// Sweeps over tensors of known types.
  static constexpr bool streams = is_typed && group::plan.sweeps > 0 && !rolled;
  /// Of rows that are one tile, beside which nothing is on its way: more, so that what is once a thread, and
  /// what joins threads, weighs half. (Gradients of log-sums hold exponentials.)
  static constexpr int one_tile_vectors = [] {
    const int more = 2 * row_vectors;
    const bool holds =
        streams && !is_map && !reduces && !group::only_strips && !reads_twice<K> && repeat_vectors == 0 &&
        (!several_sweeps || size_of_list<kept_exponentials<group>> == 0) &&
        more * width * work <= cuda_row_policy::unrolled_work_of_one_tile && more * state_words <= 16 &&
        more * width * step_bytes <= 4 * cuda_row_policy::held_words_of_one_tile;
    return holds ? more : row_vectors;
  }();
  /// Of rows of several tiles: no more than there are registers for beside the tile that is on its way.
  static constexpr bool walks_sweeps = streams && several_sweeps && !group::only_strips && !reads_twice<K>;
  static constexpr int walked_vectors = [] {
    using policy = cuda_row_policy;
    int vectors = row_vectors;
    if (walks_sweeps)
      while (vectors > 1 && vectors * width * step_bytes > 4 * policy::held_words_of_walked_sweeps)
        vectors /= 2;
    return vectors;
  }();
  /// Whether rows of one tile have kernels of their own, but for those of parts of a warp.
  static constexpr bool one_tile_apart = walks_sweeps || one_tile_vectors > row_vectors;
  /// Rows of several blocks are held in registers where several sweeps need them. (Of one sweep, which reads
  /// its tiles once in any case, 0.64 of a copy for rows of two blocks; walked by one block: 0.75.)
  static constexpr bool clusters = walks_sweeps;
  /// ... but where they are read twice, in shared memory.
  static constexpr bool staged_rows = streams && !group::only_strips && reads_twice<K>;
  static_assert(ragged_rows_apart<K> == (clusters || staged_rows));
  static constexpr int cluster_vectors = [] {
    if (one_tile_vectors > row_vectors) return one_tile_vectors;
    const int more = cuda_row_policy::more_in_clusters * row_vectors;
    return more * width * step_bytes > 4 * row_held_words ? row_vectors : more;
  }();
  /// Components of carries that walks leave for their gradient's kernels, or find there; 0: none.
  static constexpr int kept_carries =
      streams && (group::is_gradient ? first_is_replayed<group> : leaves_carries<K>)
          ? kept_count<group, typename K::compute>
          : 0;
  /// Several rows share a warp in kernels of their own, where the types are known.
  static constexpr int fewest_row_threads = streams && !sums_scratch ? 1 : 32;
  /// Shared memory of a look-back along rows, for each thread: elements of the tiles that wait, and what
  /// precedes its vectors in each.
  static constexpr int lookback_row_bytes(int vectors) {
    using policy = cuda_lookback_policy;
    return vectors * ((policy::delay + 2) * width * step_bytes + (policy::delay + 1) * state_words * 4);
  }
  static constexpr int lookback_vectors = [] {
    using policy = cuda_lookback_policy;
    int vectors = 2 * row_vectors;
    while (vectors > 1 && (vectors * width * step_bytes > policy::held_bytes ||
                           lookback_row_bytes(vectors) > policy::shared_bytes / policy::threads))
      vectors /= 2;
    return vectors;
  }();
};

}  // namespace scandsl::cuda_detail
