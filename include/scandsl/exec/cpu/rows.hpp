#pragma once
#include <algorithm>
#include <vector>

#include "scandsl/exec/cpu/strip.hpp"

namespace scandsl::cpu_detail {

/// Rows of one nest, some at a time, run by one thread: points a row kernel's streams at memory, or where
/// elements are of another type, apart from each other or no whole number of packs at tiles of padded rows
/// that staging fills and empties.
template <class C, class Instructions = xsimd::default_arch> class row_walk {
public:
  static constexpr int width = pack_width<C>;

  row_walk(const strip_context<C>& shared, const loop_nest& where)
      : context(shared), p(shared.p()), table(shared.table()), nest(where), outer(where.lanes) {
    // Angles turn along one axis only: without it, rows stand alone.
    const auto turns = [&](const dimension& each) { return each.axis == shared.kernels->row_axis; };
    const auto found = std::find_if(outer.rbegin(), outer.rend(), turns);
    if (const auto at = shared.kernels->row_axis < 0 ? outer.rbegin() : found; at != outer.rend()) {
      rows = *at;
      inner.assign(at.base(), outer.end());
      outer.erase(at.base() - 1, outer.end());
    }
    elements = nest.steps();
    padded = (elements + width - 1) / width * width;
    values_of_row = shared.kernels->value_rows * padded;
    if (loop_nest::count(inner) * values_of_row > row_policy::most_values) {
      outer.insert(outer.end(), inner.begin(), inner.end());
      inner.clear();
    }
    along_row = nest.walk.empty() ? std::array<std::int64_t, max_tensors>{} : nest.walk.back().stride;
    unit_rows = row_policy::rows_of_unit(elements);
    for (int t = 0; t < p.tensors.count; ++t) {
      const auto i = static_cast<std::size_t>(t);
      walked[i] = (p.tensors[t].mask() & axis_bit(table.axis)) != 0;
      real[i] =
          p.tensors[t].role != tensor_role::positions && p.tensors[t].kind != primitive::value_kind::integer;
      direct[i] = real[i] && operand(t).bound && operand(t).view.type == dtype_of<C> &&
                  (!walked[i] || (element_stride(t) == 1 && padded == elements));
    }
    streams.resize(static_cast<std::size_t>(table.streams));
    gathers.resize(streams.size());
    stores.resize(static_cast<std::size_t>(p.stores.count));
    staged.resize(streams.size());
    values.grow(static_cast<std::size_t>(std::max<std::int64_t>(1, loop_nest::count(inner) * values_of_row)));
  }

  std::int64_t units() const { return loop_nest::count(outer) * units_outside(); }

  void run(std::int64_t unit) {
    const std::int64_t first = unit % units_outside() * unit_rows,
                       all = std::min(unit_rows, rows.extent - first), lanes_inside = loop_nest::count(inner);
    // Not all rows of a lane inside: what lies side by side in memory is taken together.
    const std::int64_t at_once = needs_tiles()      ? row_policy::rows_of_tile(padded)
                                 : lanes_inside > 1 ? row_policy::rows_in_turns
                                                    : all;
    tile_rows = std::min(at_once, all);
    tiles.grow((streams.size() + stores.size()) * static_cast<std::size_t>(tile_rows * padded));
    for (std::int64_t row = 0; row < all; row += at_once)
      for (std::int64_t lane = 0; lane < lanes_inside; ++lane) {
        for (int t = 0; t < p.tensors.count; ++t)
          base[static_cast<std::size_t>(t)] =
              nest.origin[static_cast<std::size_t>(t)] + loop_nest::offset(outer, unit / units_outside(), t) +
              loop_nest::offset(inner, lane, t) + first * rows.stride[static_cast<std::size_t>(t)];
        run_rows(row, std::min(at_once, all - row), &values[static_cast<std::size_t>(lane * values_of_row)]);
      }
  }

private:
  /// Rows of one lane; `kept`: what the kernel keeps of them.
  void run_rows(std::int64_t row, std::int64_t count, C* kept) {
    std::fill(staged.begin(), staged.end(), false);
    past_cache = false;
    for_stages([&](const walk_stage& stage) {
      point_reads(stage, row, count);
      point_gathers(stage, row);
      point_stores(stage, row);
    });
    row_frame<C> frame;
    frame.streams = streams.data();
    frame.gathers = gathers.data();
    frame.stores = stores.data();
    frame.parameters = context.parameters.data();
    frame.values = kept;
    frame.rows = count;
    frame.elements = elements;
    frame.begins = row == 0;
    context.kernels->rows(frame);
    if (past_cache) scandsl::detail::fence_streaming();
    for_stages([&](const walk_stage& stage) { empty_tiles(stage, row, count); });
  }
  std::int64_t units_outside() const { return (rows.extent + unit_rows - 1) / unit_rows; }
  template <class F> void for_stages(F&& f) const {
    for (int i = 0; i <= table.sweeps; ++i) {
      f(table.boundary[i]);
      if (i < table.sweeps) f(table.sweep[i]);
    }
  }
  const bound_tensor& operand(int tensor) const {
    return context.bound->tensors[static_cast<std::size_t>(tensor)];
  }
  /// Whether the tensor varies along the row.
  bool walks(int tensor) const { return walked[static_cast<std::size_t>(tensor)]; }
  bool is_real(int tensor) const { return real[static_cast<std::size_t>(tensor)]; }
  bool is_direct(int tensor) const { return direct[static_cast<std::size_t>(tensor)]; }
  std::int64_t row_stride(int tensor) const { return rows.stride[static_cast<std::size_t>(tensor)]; }
  std::int64_t element_stride(int tensor) const { return along_row[static_cast<std::size_t>(tensor)]; }
  char* address(int tensor, std::int64_t row) const {
    const erased_view& view = operand(tensor).view;
    const std::int64_t offset = base[static_cast<std::size_t>(tensor)] + row * row_stride(tensor);
    return static_cast<char*>(view.data) + offset * static_cast<std::int64_t>(size_of(view.type));
  }
  bool needs_tiles() const {
    bool any = false;
    for_stages([&](const walk_stage& stage) {
      for (const stream_read& read : stage.reads)
        any = any || (read.from == source::memory && walks(read.tensor) && !is_direct(read.tensor) &&
                      row_stride(read.tensor) != 0);
      for (const std::int16_t store : stage.stores) any = any || !is_direct(p.stores[store].tensor);
    });
    return any;
  }
  C* tile(std::size_t index) { return &tiles[index * static_cast<std::size_t>(tile_rows * padded)]; }

  void point_reads(const walk_stage& stage, std::int64_t row, std::int64_t count) {
    for (const stream_read& read : stage.reads) {
      if (read.from != source::memory) continue;
      const auto s = static_cast<std::size_t>(read.stream);
      const int t = read.tensor;
      if (is_direct(t)) {
        streams[s] = {reinterpret_cast<C*>(address(t, row)), row_stride(t)};
        continue;
      }
      const bool repeats = !operand(t).bound || row_stride(t) == 0;  // one row serves all
      const std::int64_t apart = walks(t) ? padded : 1;
      streams[s] = {tile(s), repeats ? 0 : apart};
      if (staged[s]) continue;
      staged[s] = true;
      if (p.tensors[t].role == tensor_role::positions && !walks(t) && operand(t).bound) {
        const std::int64_t first = base[static_cast<std::size_t>(t)] + row * row_stride(t);
        for (std::int64_t i = 0; i < (repeats ? 1 : count); ++i)
          tile(s)[i] = as_element(first + i * row_stride(t));
      } else {
        for (std::int64_t i = 0; i < (repeats ? 1 : count); ++i) fill(tile(s) + i * apart, t, row + i);
      }
    }
  }
  static C as_element(std::int64_t integer) {
    return bits_as_number<C>(saturated<typename arithmetic<C>::integer>(integer));
  }
  /// What a row reads of a tensor, padded by elements that are like one of it.
  void fill(C* to, int t, std::int64_t row) const {
    const std::int64_t count = walks(t) ? elements : 1, step = walks(t) ? element_stride(t) : 0;
    const auto fill_with = [&](auto element) {
      for (std::int64_t i = 0; i < (walks(t) ? padded : 1); ++i)
        to[i] = as_element(element(std::min(i, count - 1) * step));
    };
    if (!operand(t).bound) {
      if (is_real(t))
        std::fill_n(to, walks(t) ? padded : 1, static_cast<C>(p.tensors[t].fallback));
      else
        fill_with([&](std::int64_t) { return static_cast<std::int64_t>(p.tensors[t].fallback); });
    } else if (p.tensors[t].role == tensor_role::positions) {
      const std::int64_t first = base[static_cast<std::size_t>(t)] + row * row_stride(t);
      fill_with([&](std::int64_t offset) { return first + offset; });
    } else if (!is_real(t)) {
      const char* const data = address(t, row);
      fill_with([&](std::int64_t offset) { return load_integer(data, operand(t).view.type, offset); });
    } else if (!walks(t)) {
      // A pack of it; what follows is written later.
      gather_pack<C, width>(to, width, address(t, row), operand(t).view.type, {0, nullptr, 1}, 0, 1);
    } else {
      for_parts(t, row, [&](std::int64_t from, char* data, const lane_map& lanes, std::int64_t packs) {
        gather_pack<C, width>(to + from, width, data, operand(t).view.type, lanes, width * step, packs);
      });
    }
  }
  /// Calls f(first element, its address, lanes, packs) for a row's whole packs and what is left.
  template <class F> void for_parts(int t, std::int64_t row, F&& f) const {
    const std::int64_t whole = elements / width, step = element_stride(t);
    const int rest = static_cast<int>(elements % width);
    const auto size = static_cast<std::int64_t>(size_of(operand(t).view.type));
    if (whole > 0) f(0, address(t, row), lane_map{step, nullptr, width}, whole);
    if (rest > 0)
      f(whole * width, address(t, row) + whole * width * step * size, lane_map{step, nullptr, rest}, 1);
  }

  void point_gathers(const walk_stage& stage, std::int64_t row) {
    for (const stream_read& read : stage.gathers) {
      const bound_tensor& b = operand(read.tensor);
      const tensor_decl& declared = p.tensors[read.tensor];
      row_gather<width>& to = gathers[static_cast<std::size_t>(read.stream)];
      to.place = {b.view.data, b.view.type, b.bound, {}, 0, {}};
      to.place.lane[0] = base[static_cast<std::size_t>(read.tensor)] + row * row_stride(read.tensor);
      to.row = row_stride(read.tensor);
      to.element = element_stride(read.tensor);
      for (int i = 0, computed = 0; i < declared.axes.count; ++i)
        if (declared.place[i] == tensor_decl::computed) to.place.along[computed++] = &b.view.axis[i];
    }
  }

  void point_stores(const walk_stage& stage, std::int64_t row) {
    for (const std::int16_t store : stage.stores) {
      const int t = p.stores[store].tensor;
      row_stream<C>& to = stores[static_cast<std::size_t>(store)];
      if (is_direct(t)) {
        to = {reinterpret_cast<C*>(address(t, row)), row_stride(t)};
        to.past_cache = walks(t) && context.goes_past_cache(t, to.data, to.row);
        past_cache = past_cache || to.past_cache;
      } else {
        to = {tile(streams.size() + static_cast<std::size_t>(store)), padded};
      }
    }
  }
  /// Writes staged outputs to memory.
  void empty_tiles(const walk_stage& stage, std::int64_t row, std::int64_t count) {
    for (const std::int16_t store : stage.stores) {
      const int t = p.stores[store].tensor;
      if (is_direct(t) || !operand(t).bound) continue;
      for (std::int64_t i = 0; i < count; ++i) {
        const C* const from = tile(streams.size() + static_cast<std::size_t>(store)) + i * padded;
        if (!walks(t))
          scatter_pack<C, width>(from, width, address(t, row + i), operand(t).view.type, {0, nullptr, 1}, 0,
                                 1);
        else
          for_parts(t, row + i,
                    [&](std::int64_t first, char* data, const lane_map& lanes, std::int64_t packs) {
                      scatter_pack<C, width>(from + first, width, data, operand(t).view.type, lanes,
                                             width * element_stride(t), packs);
                    });
      }
    }
  }

  const strip_context<C>& context;
  const program& p;
  const walk_table& table;
  const loop_nest& nest;
  std::vector<dimension> outer, inner;  ///< the lanes' dimensions but the rows', and those within it
  dimension rows;
  std::int64_t elements = 0, padded = 0, values_of_row = 0, unit_rows = 1, tile_rows = 1;
  std::array<std::int64_t, max_tensors> along_row{}, base{};
  /// By tensor: whether it varies along the row; has real numbers; and is read or written where it lies.
  std::array<bool, max_tensors> walked{}, real{}, direct{};
  std::vector<row_stream<C>> streams, stores;
  bool past_cache = false;  ///< some output is written so
  std::vector<row_gather<width>> gathers;
  std::vector<bool> staged;  ///< streams that a stage before has filled
  raw_buffer<C> tiles, values;
};

}  // namespace scandsl::cpu_detail
