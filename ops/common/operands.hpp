#pragma once
#include <string>

#include "scandsl/ops/scan_options.hpp"

/// Private to the ops: from arrays of any rank to the two axes (b, n) of their programs, b being the list of
/// all dimensions but the scanned one.
namespace scandsl::ops {

/// The dimension that `dim` names, negative ones counting from the end. Throws index_error. `operand` is what
/// the op calls x, here and below.
inline int normalised_dim(const array& x, int dim, const char* operand = "x") {
  const int positive = dim < 0 ? dim + x.rank : dim;
  if (positive < 0 || positive >= x.rank)
    throw index_error(message("dim in [", -x.rank, ", ", x.rank, ") for ", operand, " of rank ", x.rank),
                      message(dim), message("name a dimension of ", operand));
  return positive;
}

inline void require_floating(const char* operand, const array& given) {
  if (!is_floating(given.type))
    throw dtype_error(message("float32, float64, bfloat16 or float16 for ", operand), name_of(given.type),
                      "convert it first");
}

inline void require_dtype(const char* operand, const array& given, dtype one, dtype other) {
  if (given.type != one && given.type != other)
    throw dtype_error(one == other ? message(name_of(one), " for ", operand)
                                   : message(name_of(one), " or ", name_of(other), " for ", operand),
                      name_of(given.type), "convert it first");
}

inline std::string shape_text(const std::int64_t* extents, int rank) {
  std::string text = "[";
  for (int i = 0; i < rank; ++i) text += (i > 0 ? ", " : "") + std::to_string(extents[i]);
  return text + "]";
}

inline void require_shape(const char* operand, const array& given, const std::int64_t* extents, int rank,
                          const char* advice = "match the shape of x") {
  bool same = given.rank == rank;
  for (int i = 0; same && i < rank; ++i) same = given.extents[i] == extents[i];
  if (!same)
    throw shape_error(message("shape ", shape_text(extents, rank), " for ", operand),
                      shape_text(given.extents, given.rank), advice);
}

/// The dtype that states are written in: float32, float64 for float64.
inline dtype state_dtype(dtype x) { return x == dtype::float64 ? dtype::float64 : dtype::float32; }

/// x as (b, n).
inline erased_view rows_along(const array& x, int dim) {
  erased_view view{x.data, x.type, x.writable, 2, {}};
  for (int i = 0; i < x.rank; ++i) view.axis[i == dim ? 1 : 0].push_back({x.extents[i], x.strides[i]});
  return view;
}

/// A state as (segment, b); without packed sequences there is one segment.
inline erased_view state_view(const array& state, bool packed) {
  erased_view view{state.data, state.type, state.writable, 2, {}};
  for (int i = 0; i < state.rank; ++i)
    view.axis[packed && i == 0 ? 0 : 1].push_back({state.extents[i], state.strides[i]});
  if (!packed) view.axis[0].push_back({1, 0});
  return view;
}

/// The shape of the states of a scan along `dim` of x.
struct state_shape {
  std::int64_t extents[max_rank] = {};
  int rank = 0;

  state_shape(const array& x, int dim, const scan_options& options) {
    if (options.cu_seqlens) extents[rank++] = options.cu_seqlens->extents[0] - 1;
    for (int i = 0; i < x.rank; ++i)
      if (i != dim) extents[rank++] = x.extents[i];
  }
};

/// Checks x, y and the options of a scan along `dim` of x. Throws shape_error and dtype_error.
inline void check_scan(const array& x, const array& y, int dim, const scan_options& options,
                       const char* operand = "x") {
  require_floating(operand, x);
  require_shape("y", y, x.extents, x.rank);
  const int packed_rank = options.cu_seqlens ? 1 : 0;
  if (options.cu_seqlens && (options.cu_seqlens->rank != 1 || options.cu_seqlens->extents[0] < 1))
    throw shape_error("cu_seqlens of shape [S + 1]",
                      shape_text(options.cu_seqlens->extents, options.cu_seqlens->rank),
                      "give the S + 1 boundaries of S packed sequences");
  if (packed_rank + x.rank - 1 > max_rank)
    throw shape_error(
        message(operand, " of rank at most ", max_rank - packed_rank + 1, " with packed states"),
        message("rank ", x.rank), message("merge dimensions of ", operand));
  const state_shape state(x, dim, options);
  if (options.initial_state) {
    require_shape("initial_state", *options.initial_state, state.extents, state.rank);
    require_dtype("initial_state", *options.initial_state, dtype::float32, x.type);
  }
  if (options.final_state) {
    require_shape("final_state", *options.final_state, state.extents, state.rank);
    require_dtype("final_state", *options.final_state, state_dtype(x.type), state_dtype(x.type));
  }
}

/// Throws argument_error on a chunk size below 1.
inline void check_chunk_size(std::int64_t chunk_size) {
  if (chunk_size < 1)
    throw argument_error("chunk_size of at least 1", message(chunk_size), "give the positions in a chunk");
}

/// The options as views; a view that is not given stays unbound.
struct scan_bindings {
  std::optional<erased_view> initial, final, offsets;

  explicit scan_bindings(const scan_options& options) {
    const bool packed = options.cu_seqlens.has_value();
    if (options.initial_state) initial = state_view(*options.initial_state, packed);
    if (options.final_state) final = state_view(*options.final_state, packed);
    if (packed) {
      const array& seqlens = *options.cu_seqlens;
      offsets = erased_view{seqlens.data, seqlens.type, seqlens.writable, 1, {}};
      offsets->axis[0].push_back({seqlens.extents[0], seqlens.strides[0]});
    }
  }
};

}  // namespace scandsl::ops
