#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "scandsl/exec/cpu/row_kernel.hpp"
#include "scandsl/exec/cpu/staging.hpp"
#include "scandsl/pass/cpu_plan.hpp"

namespace scandsl::cpu_detail {

/// The kernels of one kernel program for one compute type, with what the driver needs to know of it.
template <class C, class Instructions = xsimd::default_arch> struct kernel_set {
  const program* p = nullptr;
  const walk_table* table = nullptr;
  kernel<C> boundary[max_sweeps + 1] = {}, sweep[max_sweeps] = {}, aggregate[max_sweeps] = {};
  void (*combine)(int scan, C* left,
                  const C* right) = nullptr;  ///< left = combine(left, right), all components
  row_function<C> rows = nullptr;             ///< of a program that only reduces
  int row_axis = -1, value_rows = 0;          ///< of row_kernel
};

/// Memory that only grows and is not initialised.
template <class T> class raw_buffer {
public:
  void grow(std::size_t size) {
    if (size <= held) return;
    data = std::make_unique_for_overwrite<T[]>(size);
    held = size;
  }
  T& operator[](std::size_t i) { return data[i]; }

private:
  std::unique_ptr<T[]> data;
  std::size_t held = 0;
};

/// One call's problem as the strips see it; shared by the threads, not changed by them.
template <class C, class Instructions = xsimd::default_arch> struct strip_context {
  const kernel_set<C>* kernels = nullptr;
  const problem* bound = nullptr;
  const iteration_space* space = nullptr;
  std::vector<C> parameters;
  std::array<bool, max_tensors> streaming{};  ///< outputs that are written past the caches

  /// Whether packs of an output do, of which the first is there, and the next ones so many elements on.
  bool goes_past_cache(int tensor, const C* first, std::int64_t apart) const {
    return packs_are_lines<C> && streaming[static_cast<std::size_t>(tensor)] &&
           scandsl::detail::begins_lines(first, apart * static_cast<std::int64_t>(sizeof(C)));
  }

  const program& p() const { return *kernels->p; }
  const walk_table& table() const { return *kernels->table; }
  bool reversed(const walk_stage& stage) const {
    const bool flipped =
        stage.reverse_parameter >= 0 && parameters[static_cast<std::size_t>(stage.reverse_parameter)] != C(0);
    return stage.reversed != flipped;
  }
};

/// Some packs of lanes and one range of the walk, run by one thread: points the kernels' streams at memory,
/// or at tiles that staging fills and empties.
template <class C, class Instructions = xsimd::default_arch> class strip {
public:
  static constexpr int width = pack_width<C>;

  explicit strip(const strip_context<C>& shared) : context(shared), p(shared.p()), table(shared.table()) {}

  /// Settles on packs [first, first + count) of a nest and the walk's range [low, high) in one segment.
  void place(const loop_nest& where, std::int64_t first, int count, std::int64_t segment_index,
             std::int64_t low, std::int64_t high) {
    nest = &where;
    const lane_packs lanes(where, width);
    inner_stride = where.lanes.empty() ? std::array<std::int64_t, max_tensors>{} : where.lanes.back().stride;
    packs = count;
    segment = segment_index;
    range_low = low;
    range_high = high;
    pitch = static_cast<std::int64_t>(count) * width;
    places.resize(static_cast<std::size_t>(count));
    if (lanes.is_dense) tables.grow(static_cast<std::size_t>(count) * max_tensors * width);
    for (int j = 0; j < count; ++j) place_pack(lanes, j, first + j);
    segment_dimensions = table.segment_axis >= 0
                             ? context.space->axis[static_cast<std::size_t>(table.segment_axis)]
                             : std::vector<dimension>{};
    prepare_buffers();
  }

  /// Evaluates boundary i: seeds the scans of sweep i, keeps and stores what is due.
  void boundary(int i) {
    const walk_stage& stage = table.boundary[i];
    point_reads(stage, 0, 1, false, true);
    point_gathers(stage, 0, 1, false, true);
    point_stores(stage, 0, 1, false, true);
    call(context.kernels->boundary[i], 1);
    empty_tiles(stage, 0, 1, true);
  }

  /// Walks [low, high) for sweep i, restarting every `chunk` positions from `low` on (0: never).
  void sweep(int i, std::int64_t chunk) {
    const walk_stage& stage = table.sweep[i];
    const bool whole = chunk < 1 || chunk >= range_high - range_low;
    if (whole && has_windows()) return sweep_windows(i);
    need_scratch(range_low, range_high - range_low);
    if (whole) return walk(stage, context.kernels->sweep[i], range_low, range_high);
    save(i);
    const std::int64_t chunks = (range_high - range_low + chunk - 1) / chunk;
    for (std::int64_t c = 0; c < chunks; ++c) {
      const std::int64_t index = context.reversed(stage) ? chunks - 1 - c : c;
      if (c > 0) restore(i);
      walk(stage, context.kernels->sweep[i], range_low + index * chunk,
           std::min(range_high, range_low + (index + 1) * chunk));
    }
  }
  /// The same, reduced to the states.
  void aggregate(int i) {
    need_scratch(range_low, range_high - range_low);
    walk(table.aggregate[i], context.kernels->aggregate[i], range_low, range_high);
  }

  C* carry(int scan, int component) {
    return &carries[static_cast<std::size_t>((scan * max_components + component) * pitch)];
  }
  C* kept(int stream) { return &keeps[static_cast<std::size_t>(stream * pitch)]; }
  /// Scratch of one stream in memory of the caller: position 0 of lane 0 at `base`. Without it, the strip's
  /// own.
  void lend_scratch(int stream, C* base, std::int64_t lane_stride, std::int64_t step) {
    lent[static_cast<std::size_t>(stream)] = {base, lane_stride, step};
  }

private:
  struct pack_place {
    int valid = 0;
    bool regular = true;  ///< lanes lie inner_stride apart; else at offsets from a table
    std::array<std::int64_t, max_tensors> base{};
  };
  /// The steps whose elements a stream's tile holds: a later sweep over no more than a tile finds them there.
  struct tile_contents {
    std::int64_t low = 0, steps = 0;
    bool operator==(const tile_contents&) const = default;
  };
  struct lent_scratch {
    C* base = nullptr;
    std::int64_t lane_stride = 0, step = 0;
  };

  void place_pack(const lane_packs& lanes, int j, std::int64_t pack) {
    pack_place& place = places[static_cast<std::size_t>(j)];
    if (!lanes.is_dense && j > 0 &&
        pack % lanes.packs_inside() != 0) {  // the next pack of the same innermost row
      const pack_place& before = places[static_cast<std::size_t>(j) - 1];
      place.valid =
          static_cast<int>(std::min<std::int64_t>(width, lanes.inside - pack % lanes.packs_inside() * width));
      place.regular = true;
      for (std::size_t t = 0; t < static_cast<std::size_t>(p.tensors.count); ++t)
        place.base[t] = before.base[t] + width * inner_stride[t];
      return;
    }
    const std::int64_t first = lanes.first_lane(pack),
                       inside = first % std::max<std::int64_t>(1, lanes.inside);
    const std::int64_t end = lanes.is_dense ? lanes.total : first - inside + lanes.inside;
    place.valid = static_cast<int>(std::min<std::int64_t>(width, end - first));
    place.regular = inside + place.valid <= lanes.inside;
    for (int t = 0; t < p.tensors.count; ++t) {
      const std::int64_t start = loop_nest::offset(nest->lanes, first, t);
      place.base[static_cast<std::size_t>(t)] = nest->origin[static_cast<std::size_t>(t)] + start;
      if (place.regular) continue;
      for (int l = 0; l < place.valid; ++l)
        lane_table(j, t)[l] = loop_nest::offset(nest->lanes, first + l, t) - start;
    }
  }
  std::int64_t* lane_table(int j, int t) {
    return &tables[static_cast<std::size_t>((j * max_tensors + t) * width)];
  }

  lane_map lanes_of(int j, int tensor) {
    const pack_place& place = places[static_cast<std::size_t>(j)];
    return {inner_stride[static_cast<std::size_t>(tensor)], place.regular ? nullptr : lane_table(j, tensor),
            place.valid};
  }

  void prepare_buffers() {
    const std::size_t wide = static_cast<std::size_t>(pitch),
                      streams = static_cast<std::size_t>(table.streams);
    tile_steps =
        std::clamp<std::int64_t>(strip_policy::tile_bytes / (pitch * static_cast<std::int64_t>(sizeof(C))), 1,
                                 strip_policy::longest_tile);
    // What rotates begins with a tile, and where that is has to be the same for any number of packs.
    if (any_rotates(table))
      tile_steps = std::max<std::int64_t>(tile_steps / rotation_steps, 1) * rotation_steps;
    const std::size_t tile = static_cast<std::size_t>(tile_steps) * wide,
                      stores = static_cast<std::size_t>(p.stores.count);
    carries.grow(static_cast<std::size_t>(p.scans.count * max_components) * wide);
    keeps.grow(streams * wide);
    tiles.grow((streams + stores) * tile);
    stream_table.grow(streams * static_cast<std::size_t>(packs));
    store_table.grow(stores * static_cast<std::size_t>(packs));
    gather_table.resize(streams * static_cast<std::size_t>(packs));
    gather_rows.resize(streams);
    for (std::size_t s = 0; s < streams; ++s)
      gather_rows[s] = &gather_table[s * static_cast<std::size_t>(packs)];
    stream_rows.resize(streams);
    store_rows.resize(stores);
    for (std::size_t s = 0; s < streams; ++s)
      stream_rows[s] = &stream_table[s * static_cast<std::size_t>(packs)];
    for (std::size_t s = 0; s < stores; ++s)
      store_rows[s] = &store_table[s * static_cast<std::size_t>(packs)];
    carry_rows.resize(static_cast<std::size_t>(p.scans.count * max_components));
    for (std::size_t s = 0; s < carry_rows.size(); ++s) carry_rows[s] = &carries[s * wide];
    lent.assign(streams, {});
    filled.assign(streams, false);
    contents.assign(streams, {});
    window_in_scratch = -1;
  }
  /// Has the scratch hold so many steps from `low` on.
  void need_scratch(std::int64_t low, std::int64_t steps) {
    scratch.grow(scratch_streams() * static_cast<std::size_t>(steps * pitch));
    scratch_low = low;
    scratch_steps = steps;
  }

  // Of a long range what the first sweep keeps for later ones does not fit into the cache. It keeps its
  // carries instead, at the start of each window, a tile's steps; a later sweep takes one window after the
  // other and computes the first sweep there once more.

  bool has_windows() const {
    const walk_stage& first = table.sweep[0];
    if (table.sweeps < 2 || first.keeps.count == 0 || first.stores.count > 0) return false;
    for (int i = 1; i < table.sweeps; ++i)
      if (table.sweep[i].keeps.count > 0) return false;
    if (scratch_is_lent()) return false;
    // What rotates begins with a window: of any number of packs alike.
    const std::int64_t steps = range_high - range_low,
                       lanes = any_rotates(table) ? strip_policy::adjacent_packs * width : pitch;
    return steps > tile_steps &&
           steps * lanes * static_cast<std::int64_t>(sizeof(C)) > strip_policy::kept_bytes;
  }
  void sweep_windows(int i) {
    const std::int64_t count = (range_high - range_low + tile_steps - 1) / tile_steps;
    const walk_stage &first = table.sweep[0], &stage = table.sweep[i];
    const bool replays = i > 0 && reads_scratch(stage);
    const std::size_t states = static_cast<std::size_t>(p.scans.count * max_components * pitch);
    if (i == 0) window_carries.grow(states * static_cast<std::size_t>(count + 1));
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t window = context.reversed(stage) ? count - 1 - n : n,
                         low = range_low + window * tile_steps, high = std::min(range_high, low + tile_steps);
      C* const before = &window_carries[states * static_cast<std::size_t>(window)];
      if (i == 0) copy_states(0, &carries[0], before);
      if (i == 0 || replays) need_scratch(low, tile_steps);
      if (replays && window != window_in_scratch) {
        copy_states(0, before, &carries[0]);
        walk(first, context.kernels->sweep[0], low, high);
        window_in_scratch = window;
      }
      walk(stage, context.kernels->sweep[i], low, high);
      if (i == 0) window_in_scratch = window;
    }
    // The last values of the first sweep are wanted behind later ones, too.
    C* const last = &window_carries[states * static_cast<std::size_t>(count)];
    if (i == 0) copy_states(0, &carries[0], last);
    if (replays) copy_states(0, last, &carries[0]);
  }
  static bool reads_scratch(const walk_stage& stage) {
    for (const stream_read& read : stage.reads)
      if (read.from == source::scratch) return true;
    return false;
  }
  bool scratch_is_lent() const {
    return std::any_of(lent.begin(), lent.end(), [](const lent_scratch& l) { return l.base != nullptr; });
  }
  std::size_t scratch_streams() const {
    if (scratch_is_lent()) return 0;
    std::size_t count = 0;
    for (int i = 0; i < table.sweeps; ++i)
      if (table.sweep[i].keeps.count > 0) count = static_cast<std::size_t>(table.streams);
    return count;
  }

  C* tile_of(std::size_t index) { return &tiles[index * static_cast<std::size_t>(tile_steps * pitch)]; }
  C* stream_tile(int stream) { return tile_of(static_cast<std::size_t>(stream)); }
  C* store_tile(int store) { return tile_of(static_cast<std::size_t>(table.streams + store)); }

  std::int64_t walk_stride(int tensor) const {
    return nest->walk.empty() ? 0 : nest->walk.back().stride[static_cast<std::size_t>(tensor)];
  }
  bool walks(int tensor) const {
    for (const dimension& d : nest->walk)
      if (d.stride[static_cast<std::size_t>(tensor)] != 0) return true;
    return false;
  }
  char* address(int tensor, int j, std::int64_t position, bool at_boundary) const {
    const bound_tensor& b = context.bound->tensors[static_cast<std::size_t>(tensor)];
    return static_cast<char*>(b.view.data) +
           offset(tensor, j, position, at_boundary) * static_cast<std::int64_t>(size_of(b.view.type));
  }
  /// Of the pack's first lane, in elements.
  std::int64_t offset(int tensor, int j, std::int64_t position, bool at_boundary) const {
    std::int64_t offset = places[static_cast<std::size_t>(j)].base[static_cast<std::size_t>(tensor)];
    if (!at_boundary) offset += loop_nest::offset(nest->walk, position, tensor);
    offset += loop_nest::offset(segment_dimensions, segment, tensor);
    return offset;
  }
  bool is_direct(int tensor, int j) const {
    const bound_tensor& b = context.bound->tensors[static_cast<std::size_t>(tensor)];
    const pack_place& place = places[static_cast<std::size_t>(j)];
    return b.view.type == dtype_of<C> && place.regular && place.valid == width &&
           inner_stride[static_cast<std::size_t>(tensor)] == 1;
  }
  pack_stream<C> stepping(C* lowest, std::int64_t step, std::int64_t steps, bool backwards) const {
    return backwards ? pack_stream<C>{lowest + (steps - 1) * step, -step} : pack_stream<C>{lowest, step};
  }

  /// Points every stream the stage reads at its packs for `steps` positions from `low` on.
  void point_reads(const walk_stage& stage, std::int64_t low, std::int64_t steps, bool backwards,
                   bool at_boundary) {
    for (const stream_read& read : stage.reads) {
      pack_stream<C>* row = stream_rows[static_cast<std::size_t>(read.stream)];
      if (read.from == source::kept || (read.from == source::memory && !is_bound(read.tensor))) {
        if (read.from == source::memory) std::fill_n(kept(read.stream), pitch, fallback(read.tensor));
        for (int j = 0; j < packs; ++j) row[j] = {kept(read.stream) + j * width, 0};
      } else if (read.from == source::scratch) {
        point_scratch(read.stream, row, low, steps, backwards, true);
      } else {
        point_memory(read, row, low, steps, backwards, at_boundary);
      }
    }
    for (const std::int16_t stream : stage.keeps) {
      pack_stream<C>* row = stream_rows[static_cast<std::size_t>(stream)];
      if (at_boundary)
        for (int j = 0; j < packs; ++j) row[j] = {kept(stream) + j * width, 0};
      else
        point_scratch(stream, row, low, steps, backwards, false);
    }
  }
  bool is_bound(int tensor) const { return context.bound->tensors[static_cast<std::size_t>(tensor)].bound; }

  void point_memory(const stream_read& read, pack_stream<C>* row, std::int64_t low, std::int64_t steps,
                    bool backwards, bool at_boundary) {
    const std::int64_t step = at_boundary ? 0 : walk_stride(read.tensor);
    const bool still = at_boundary || !walks(read.tensor);
    tile_contents& held = contents[static_cast<std::size_t>(read.stream)];
    const tile_contents wanted = still ? held : tile_contents{low, steps};
    for (int j = 0; j < packs; ++j) {
      if (is_direct(read.tensor, j)) {
        row[j] =
            stepping(reinterpret_cast<C*>(address(read.tensor, j, low, at_boundary)), step, steps, backwards);
      } else if (still) {  // the same at every step: staged once a range, beside the kept values
        if (at_boundary || !filled[static_cast<std::size_t>(read.stream)])
          stage_pack(kept(read.stream) + j * width, pitch, read.tensor, j, low, 0, 1, at_boundary);
        row[j] = {kept(read.stream) + j * width, 0};
      } else if (j > 0 && reads_as_before(read.tensor, j)) {
        row[j] = row[j - 1];
      } else {
        // One pack for all of them is all that a step takes.
        const std::int64_t wide = j == 0 && read_by_all(read.tensor) ? width : pitch;
        C* tile = stream_tile(read.stream) + j * width;
        if (held != wanted) stage_pack(tile, wide, read.tensor, j, low, step, steps, false);
        row[j] = stepping(tile, wide, steps, backwards);
      }
    }
    held = wanted;
    if (still && !at_boundary) filled[static_cast<std::size_t>(read.stream)] = true;
  }

  /// Whether a pack reads the same elements of a tensor as the pack before it, one for all of its lanes.
  bool reads_as_before(int tensor, int j) {
    const auto base_of = [&](int pack) {
      return places[static_cast<std::size_t>(pack)].base[static_cast<std::size_t>(tensor)];
    };
    return base_of(j) == base_of(j - 1) && lanes_of(j, tensor).apart_by(0) &&
           lanes_of(j - 1, tensor).apart_by(0);
  }
  /// Whether every pack reads the same elements as the first one.
  bool read_by_all(int tensor) {
    for (int j = 1; j < packs; ++j)
      if (!reads_as_before(tensor, j)) return false;
    return true;
  }
  /// Copies what a pack reads of a tensor at `steps` positions from `low` on into a tile, of which a step
  /// takes `wide` elements.
  void stage_pack(C* tile, std::int64_t wide, int tensor, int j, std::int64_t low, std::int64_t step,
                  std::int64_t steps, bool at_boundary) {
    const lane_map lanes = lanes_of(j, tensor);
    const dtype type = context.bound->tensors[static_cast<std::size_t>(tensor)].view.type;
    const auto offset_of = [&](std::int64_t t, int l) {
      return t * step + lanes.offset(l < lanes.valid ? l : 0);
    };
    if (p.tensors[tensor].role == tensor_role::positions) {
      const std::int64_t first = offset(tensor, j, low, at_boundary);
      fill_integers<C, width>(tile, wide, steps, lanes.apart_by(0),
                              [&](std::int64_t t, int l) { return first + offset_of(t, l); });
    } else if (p.tensors[tensor].kind == primitive::value_kind::integer) {
      const char* const data = address(tensor, j, low, at_boundary);
      fill_integers<C, width>(tile, wide, steps, lanes.apart_by(0), [&](std::int64_t t, int l) {
        return load_integer(data, type, offset_of(t, l));
      });
    } else {
      gather_pack<C, width>(tile, wide, address(tensor, j, low, at_boundary), type, lanes, step, steps);
    }
  }
  /// What an operand that is not bound is everywhere.
  C fallback(int tensor) const {
    const tensor_decl& declared = p.tensors[tensor];
    if (declared.kind != primitive::value_kind::integer) return static_cast<C>(declared.fallback);
    return bits_as_number<C>(static_cast<typename arithmetic<C>::integer>(declared.fallback));
  }

  /// Points every gather of the stage at its tensor.
  void point_gathers(const walk_stage& stage, std::int64_t low, std::int64_t steps, bool backwards,
                     bool at_boundary) {
    for (const stream_read& read : stage.gathers) {
      const bound_tensor& b = context.bound->tensors[static_cast<std::size_t>(read.tensor)];
      const tensor_decl& declared = p.tensors[read.tensor];
      const std::int64_t step = at_boundary ? 0 : walk_stride(read.tensor);
      for (int j = 0; j < packs; ++j) {
        gather_place<width>& place = gather_rows[static_cast<std::size_t>(read.stream)][j];
        place = {b.view.data, b.view.type, b.bound, {}, backwards ? -step : step, {}};
        const lane_map lanes = lanes_of(j, read.tensor);
        const std::int64_t first =
            offset(read.tensor, j, low, at_boundary) + (backwards ? (steps - 1) * step : 0);
        for (int l = 0; l < width; ++l) place.lane[l] = first + lanes.offset(l < lanes.valid ? l : 0);
        for (int i = 0, computed = 0; i < declared.axes.count; ++i)
          if (declared.place[i] == tensor_decl::computed) place.along[computed++] = &b.view.axis[i];
      }
    }
  }

  void point_scratch(int stream, pack_stream<C>* row, std::int64_t low, std::int64_t steps, bool backwards,
                     bool reading) {
    const lent_scratch& l = lent[static_cast<std::size_t>(stream)];
    for (int j = 0; j < packs; ++j) {
      if (l.base == nullptr) {
        C* own = &scratch[static_cast<std::size_t>((stream * scratch_steps + low - scratch_low) * pitch +
                                                   j * width)];
        row[j] = stepping(own, pitch, steps, backwards);
      } else {
        C* tile = stream_tile(stream) + j * width;
        if (reading)
          gather_pack<C, width>(tile, pitch, lent_address(l, j, low), dtype_of<C>, lent_lanes(l, j), l.step,
                                steps);
        row[j] = stepping(tile, pitch, steps, backwards);
      }
    }
  }
  C* lent_address(const lent_scratch& l, int j, std::int64_t low) const {
    return l.base + j * width * l.lane_stride + low * l.step;
  }
  lane_map lent_lanes(const lent_scratch& l, int j) const {
    return {l.lane_stride, nullptr, places[static_cast<std::size_t>(j)].valid};
  }

  void point_stores(const walk_stage& stage, std::int64_t low, std::int64_t steps, bool backwards,
                    bool at_boundary) {
    past_cache = false;
    for (const std::int16_t index : stage.stores) {
      const int tensor = p.stores[index].tensor;
      pack_stream<C>* row = store_rows[static_cast<std::size_t>(index)];
      for (int j = 0; j < packs; ++j) {
        if (is_bound(tensor) && is_direct(tensor, j)) {
          row[j] = stepping(reinterpret_cast<C*>(address(tensor, j, low, at_boundary)), walk_stride(tensor),
                            steps, backwards);
          row[j].past_cache = !at_boundary && context.goes_past_cache(tensor, row[j].data, row[j].step);
          past_cache = past_cache || row[j].past_cache;
        } else {
          row[j] = stepping(store_tile(index) + j * width, pitch, steps, backwards);
        }
      }
    }
  }
  /// Writes staged outputs and lent scratch to memory.
  void empty_tiles(const walk_stage& stage, std::int64_t low, std::int64_t steps, bool at_boundary) {
    for (const std::int16_t index : stage.stores) {
      const int tensor = p.stores[index].tensor;
      if (!is_bound(tensor)) continue;
      for (int j = 0; j < packs; ++j)
        if (!is_direct(tensor, j))
          scatter_pack<C, width>(store_tile(index) + j * width, pitch, address(tensor, j, low, at_boundary),
                                 context.bound->tensors[static_cast<std::size_t>(tensor)].view.type,
                                 lanes_of(j, tensor), at_boundary ? 0 : walk_stride(tensor), steps,
                                 context.streaming[static_cast<std::size_t>(tensor)]);
    }
    if (at_boundary) return;
    for (const std::int16_t stream : stage.keeps) {
      const lent_scratch& l = lent[static_cast<std::size_t>(stream)];
      if (l.base == nullptr) continue;
      for (int j = 0; j < packs; ++j)
        scatter_pack<C, width>(stream_tile(stream) + j * width, pitch, lent_address(l, j, low), dtype_of<C>,
                               lent_lanes(l, j), l.step, steps);
    }
  }

  void walk(const walk_stage& stage, kernel<C> run, std::int64_t low, std::int64_t high) {
    const bool backwards = context.reversed(stage);
    const std::int64_t longest = steps_at_once(stage, high - low);
    for (std::int64_t done = 0; done < high - low;) {
      std::int64_t steps = std::min(longest, high - low - done), at;
      if (backwards) {
        steps = std::min(steps, nest->run_to(high - done));
        at = high - done - steps;
      } else {
        at = low + done;
        steps = std::min(steps, nest->run_from(at));
      }
      point_reads(stage, at, steps, backwards, false);
      point_gathers(stage, at, steps, backwards, false);
      point_stores(stage, at, steps, backwards, false);
      call(run, steps);
      empty_tiles(stage, at, steps, false);
      done += steps;
    }
  }
  /// Steps between which no tile is filled or emptied: all, a tile's, or more where what is staged is one
  /// pack for all.
  std::int64_t steps_at_once(const walk_stage& stage, std::int64_t all) {
    if (scratch_is_lent()) return tile_steps;
    const auto is_in_place = [&](int tensor) {
      for (int j = 0; j < packs; ++j)
        if (!is_direct(tensor, j)) return false;
      return true;
    };
    for (const std::int16_t index : stage.stores) {
      const int tensor = p.stores[index].tensor;
      if (!is_bound(tensor) || !is_in_place(tensor)) return tile_steps;
    }
    bool fills = false;
    for (const stream_read& read : stage.reads) {
      if (read.from != source::memory || !is_bound(read.tensor) || !walks(read.tensor) ||
          is_in_place(read.tensor))
        continue;
      if (!read_by_all(read.tensor)) return tile_steps;
      fills = true;
    }
    return fills ? tile_steps * packs : all;
  }

  void call(kernel<C> run, std::int64_t steps) {
    kernel_frame<C> frame;
    frame.streams = stream_rows.data();
    frame.gathers = gather_rows.data();
    frame.stores = store_rows.data();
    frame.carries = carry_rows.data();
    frame.parameters = context.parameters.data();
    frame.packs = packs;
    frame.steps = steps;
    frame.ahead = (strip_policy::packs_ahead + packs - 1) / packs;
    run(frame);
    if (past_cache) scandsl::detail::fence_streaming();
  }
  /// The carries of a sweep's scans at its start, kept for every restart.
  void save(int sweep_index) {
    seeds.grow(static_cast<std::size_t>(p.scans.count * max_components * pitch));
    copy_states(sweep_index, &carries[0], &seeds[0]);
  }
  void restore(int sweep_index) { copy_states(sweep_index, &seeds[0], &carries[0]); }
  void copy_states(int sweep_index, const C* from, C* to) {
    for (int s = 0; s < p.scans.count; ++s)
      if (table.sweep_of_scan[s] == sweep_index)
        std::copy_n(from + s * max_components * pitch, p.scans[s].components * pitch,
                    to + s * max_components * pitch);
  }

  const strip_context<C>& context;
  const program& p;
  const walk_table& table;
  const loop_nest* nest = nullptr;
  std::array<std::int64_t, max_tensors> inner_stride{};
  int packs = 0;
  std::int64_t pitch = 0, segment = 0, range_low = 0, range_high = 0, tile_steps = 1;
  std::int64_t scratch_low = 0, scratch_steps = 0;  ///< of the walk, that the scratch holds
  std::int64_t window_in_scratch = -1;              ///< whose kept values it holds; -1: of none
  std::vector<dimension> segment_dimensions;
  std::vector<pack_place> places;
  raw_buffer<std::int64_t> tables;
  raw_buffer<C> carries, seeds, keeps, tiles, scratch, window_carries;
  raw_buffer<pack_stream<C>> stream_table, store_table;
  std::vector<pack_stream<C>*> stream_rows, store_rows;
  bool past_cache = false;  ///< some output of the stage at hand is written so
  std::vector<gather_place<width>> gather_table;
  std::vector<gather_place<width>*> gather_rows;
  std::vector<C*> carry_rows;
  std::vector<lent_scratch> lent;
  std::vector<bool> filled;
  std::vector<tile_contents> contents;
};

}  // namespace scandsl::cpu_detail
