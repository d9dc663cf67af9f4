#pragma once
#include <algorithm>
#include <cmath>
#include <memory>

#include "scandsl/exec/cpu/strip.hpp"
#include "scandsl/exec/cpu/threads.hpp"

namespace scandsl::cpu_detail {

/// One long row, scanned in parallel. The row is cut into pieces, and a block of pieces is walked side by
/// side as lanes:
///   1. every piece is reduced to its state,
///   2. the states are combined in order, which gives each piece the state before it,
///   3. every piece is scanned from there.
/// A batch of blocks goes through the three phases while it is in the cache, so memory is read once and
/// written once.
template <class C, class Instructions = xsimd::default_arch> class piece_scan {
public:
  static constexpr int width = pack_width<C>;
  static constexpr std::int64_t lanes = piece_policy::packs * width;

  piece_scan(const strip_context<C>& shared, int thread_count)
      : context(shared), p(shared.p()), table(shared.table()), threads(thread_count), row(shared) {
    for (int t = 0; t < thread_count; ++t) strips.emplace_back(shared);
  }

  /// Scans the one lane of `row_nest`, whose walk has one dimension, over [low, high) of a segment.
  void run(const loop_nest& row_nest, std::int64_t segment, std::int64_t low, std::int64_t high) {
    nest = &row_nest;
    range_low = low;
    range_high = high;
    segment_index = segment;
    row.place(row_nest, 0, 1, segment, low, low);
    lend_scratch();
    cut_blocks();
    for (int i = 0; i < table.sweeps; ++i) {
      row.boundary(i);
      sweep(i);
    }
    row.boundary(table.sweeps);
  }

private:
  /// `lanes` pieces (the last block: one) of `length` positions, from `low` on.
  struct block {
    loop_nest nest;
    std::int64_t low = 0, length = 0, pieces = 1;
    std::vector<C> states, before;  ///< [piece][scan * max_components + component]
    std::vector<C> total;
  };

  void cut_blocks() {
    blocks.clear();
    const std::int64_t full = lanes * piece_policy::length;
    for (std::int64_t at = range_low; at < range_high;) {
      const std::int64_t left = range_high - at;
      block b;
      b.low = at;
      b.pieces = left >= lanes ? lanes : 1;
      b.length = left >= full ? piece_policy::length : left >= lanes ? left / lanes : left;
      b.nest.origin = nest->origin;
      dimension position = nest->walk.empty() ? dimension{} : nest->walk.back();
      advance_origin(b.nest, position, at);
      dimension piece = position;
      for (std::int64_t& stride : piece.stride) stride *= b.length;
      piece.extent = b.pieces;
      position.extent = b.length;
      b.nest.walk = {position};
      b.nest.lanes = {piece};
      at += b.pieces * b.length;
      blocks.push_back(std::move(b));
    }
  }

  /// Scratch of the row, one array of positions for every stream that a later sweep reads.
  void lend_scratch() {
    scratch.assign(static_cast<std::size_t>(table.streams), {});
    for (int i = 0; i < table.sweeps; ++i)
      for (const std::int16_t stream : table.sweep[i].keeps)
        scratch[static_cast<std::size_t>(stream)].resize(static_cast<std::size_t>(range_high - range_low));
  }

  std::size_t states_per_lane() const { return static_cast<std::size_t>(p.scans.count * max_components); }

  strip<C>& place(const block& b, int thread) {
    strip<C>& s = strips[static_cast<std::size_t>(thread)];
    s.place(b.nest, 0, static_cast<int>((b.pieces + width - 1) / width), segment_index, 0, b.length);
    for (int stream = 0; stream < table.streams; ++stream) {
      std::vector<C>& whole = scratch[static_cast<std::size_t>(stream)];
      if (!whole.empty()) s.lend_scratch(stream, whole.data() + (b.low - range_low), b.length, 1);
    }
    // What does not vary along the row was computed once, by the row; all W lanes of its pack hold it.
    for (int stream = 0; stream < table.streams; ++stream)
      for (std::int64_t pack = 0; pack * width < b.pieces; ++pack)
        std::copy_n(row.kept(stream), width, s.kept(stream) + pack * width);
    return s;
  }

  void sweep(int i) {
    const walk_stage& stage = table.sweep[i];
    const std::int64_t count = static_cast<std::int64_t>(blocks.size());
    const bool backwards = context.reversed(stage);
    const auto in_order = [&](std::int64_t k) -> block& {
      return blocks[static_cast<std::size_t>(backwards ? count - 1 - k : k)];
    };
    if (!stage.has_scans) {
      parallel_for(count, threads,
                   [&](std::int64_t k, int thread) { place(in_order(k), thread).sweep(i, 0); });
      return;
    }
    std::vector<C> carry(states_per_lane());
    read_lane(row, 0, i, carry.data());
    const std::int64_t batch = static_cast<std::int64_t>(threads) * piece_policy::blocks_a_thread;
    for (std::int64_t first = 0; first < count; first += batch) {
      const std::int64_t size = std::min(batch, count - first);
      for (int round = 0; round < table.rounds[i]; ++round) {
        parallel_for(size, threads, [&](std::int64_t k, int thread) {
          reduce(place(in_order(first + k), thread), in_order(first + k), i, round);
        });
        for (std::int64_t k = 0; k < size; ++k) chain(in_order(first + k), i, round, backwards, carry);
      }
      parallel_for(size, threads, [&](std::int64_t k, int thread) {
        finish(place(in_order(first + k), thread), in_order(first + k), i, backwards);
      });
    }
    // The final state is the one that was walked to, the same number that the outputs show. Batches, whose
    // size depends on the number of threads, go on from the chained states, as blocks do.
    if (count > 0) write_lane(row, i, in_order(count - 1).total.data());
  }

  bool is_in(int scan, int sweep_index) const { return table.sweep_of_scan[scan] == sweep_index; }

  void read_lane(strip<C>& from, std::int64_t lane, int sweep_index, C* state) {
    for (int s = 0; s < p.scans.count; ++s)
      for (int k = 0; is_in(s, sweep_index) && k < p.scans[s].components; ++k)
        state[s * max_components + k] = from.carry(s, k)[lane];
  }
  void write_lane(strip<C>& to, int sweep_index, const C* state) {
    for (int s = 0; s < p.scans.count; ++s)
      for (int k = 0; is_in(s, sweep_index) && k < p.scans[s].components; ++k)
        std::fill_n(to.carry(s, k), width, state[s * max_components + k]);
  }
  std::int64_t piece_at(const block& b, std::int64_t k, bool backwards) const {
    return backwards ? b.pieces - 1 - k : k;
  }

  /// Sets the carry of every piece of a block to what precedes it, for one scan; the lanes past the last
  /// piece repeat it.
  void start_from_before(strip<C>& s, const block& b, int scan) {
    for (int k = 0; k < p.scans[scan].components; ++k)
      for (std::int64_t lane = 0; lane < (b.pieces + width - 1) / width * width; ++lane)
        s.carry(scan, k)[lane] =
            b.before[static_cast<std::size_t>(std::min(lane, b.pieces - 1)) * states_per_lane() +
                     static_cast<std::size_t>(scan * max_components + k)];
  }
  void start_from_identity(strip<C>& s, const block& b, int scan) {
    for (int k = 0; k < p.scans[scan].components; ++k)
      std::fill_n(s.carry(scan, k), (b.pieces + width - 1) / width * width,
                  static_cast<C>(p.scans[scan].identity[k]));
  }

  /// Phase 1: the state of every piece, for the scans of one round. Scans of earlier rounds, which these
  /// depend on, start from what precedes the piece.
  void reduce(strip<C>& s, block& b, int i, int round) {
    const std::size_t lane_size = states_per_lane();
    b.states.resize(static_cast<std::size_t>(b.pieces) * lane_size);
    b.before.resize(static_cast<std::size_t>(b.pieces) * lane_size);
    for (int scan = 0; scan < p.scans.count; ++scan) {
      if (!is_in(scan, i)) continue;
      if (table.round_of_scan[scan] < round)
        start_from_before(s, b, scan);
      else
        start_from_identity(s, b, scan);
    }
    s.aggregate(i);
    for (std::int64_t piece = 0; piece < b.pieces; ++piece)
      for (int scan = 0; scan < p.scans.count; ++scan)
        for (int k = 0; is_in(scan, i) && table.round_of_scan[scan] == round && k < p.scans[scan].components;
             ++k)
          b.states[static_cast<std::size_t>(piece) * lane_size +
                   static_cast<std::size_t>(scan * max_components + k)] = s.carry(scan, k)[piece];
  }

  /// Phase 2: what precedes every piece.
  void chain(block& b, int i, int round, bool backwards, std::vector<C>& carry) {
    const std::size_t lane_size = states_per_lane();
    for (std::int64_t k = 0; k < b.pieces; ++k) {
      const std::size_t at = static_cast<std::size_t>(piece_at(b, k, backwards)) * lane_size;
      for (int scan = 0; scan < p.scans.count; ++scan) {
        if (!is_in(scan, i) || table.round_of_scan[scan] != round) continue;
        const std::size_t from = static_cast<std::size_t>(scan * max_components);
        std::copy_n(&carry[from], p.scans[scan].components, &b.before[at + from]);
        context.kernels->combine(scan, &carry[from], &b.states[at + from]);
        if (overflows(scan, &b.before[at + from], &carry[from]))
          rewalk(b, piece_at(b, k, backwards), i, scan, &carry[from]);
      }
    }
  }
  /// Whether `after`, in what the scan carries, is not finite where `before` was, or NaN where it was
  /// infinite.
  bool overflows(int scan, const C* before, const C* after) const {
    bool finite_before = true, number_before = true, finite = true, number = true;
    for (int k = 0; k < p.scans[scan].components; ++k) {
      if ((table.live_components[scan] >> k & 1U) == 0) continue;
      finite_before = finite_before && std::isfinite(before[k]);
      number_before = number_before && !std::isnan(before[k]);
      finite = finite && std::isfinite(after[k]);
      number = number && !std::isnan(after[k]);
    }
    return (finite_before && !finite) || (number_before && !number);
  }
  /// The state of a piece alone may overflow where the scan through it does not: decays of 2 and a carry of 0
  /// make inf * 0. The state after it is then the one that is walked to.
  void rewalk(const block& b, std::int64_t piece, int i, int scan, C* after) {
    strip<C>& s = place(b, 0);
    for (int other = 0; other < p.scans.count; ++other)
      if (is_in(other, i) && table.round_of_scan[other] <= table.round_of_scan[scan])
        start_from_before(s, b, other);
    s.aggregate(i);
    for (int k = 0; k < p.scans[scan].components; ++k) after[k] = s.carry(scan, k)[piece];
  }

  /// Phase 3: the scan itself.
  void finish(strip<C>& s, block& b, int i, bool backwards) {
    for (int scan = 0; scan < p.scans.count; ++scan)
      if (is_in(scan, i)) start_from_before(s, b, scan);
    s.sweep(i, 0);
    b.total.assign(states_per_lane(), C(0));
    read_lane(s, piece_at(b, b.pieces - 1, backwards), i, b.total.data());
  }

  const strip_context<C>& context;
  const program& p;
  const walk_table& table;
  int threads;
  strip<C> row;
  std::vector<strip<C>> strips;  ///< by thread
  const loop_nest* nest = nullptr;
  std::int64_t range_low = 0, range_high = 0, segment_index = 0;
  std::vector<block> blocks;
  std::vector<std::vector<C>> scratch;
};

}  // namespace scandsl::cpu_detail
