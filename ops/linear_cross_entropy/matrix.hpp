#pragma once
#include <optional>

#include "scandsl/core/view.hpp"

/// Private to the op: the matrices that it multiplies.
namespace scandsl::ops {

/// A matrix in memory; strides are counted in elements.
struct matrix {
  void* data = nullptr;
  dtype type = dtype::float32;
  std::int64_t rows = 0, columns = 0;
  std::int64_t row_stride = 0, column_stride = 1;

  matrix transposed() const { return {data, type, columns, rows, column_stride, row_stride}; }
  matrix block(std::int64_t row, std::int64_t row_count, std::int64_t column,
               std::int64_t column_count) const {
    const std::int64_t offset = row * row_stride + column * column_stride;
    return {data == nullptr ? nullptr
                            : static_cast<char*>(data) + offset * static_cast<std::int64_t>(size_of(type)),
            type,
            row_count,
            column_count,
            row_stride,
            column_stride};
  }
  matrix rows_from(std::int64_t first, std::int64_t count) const { return block(first, count, 0, columns); }

  /// Whether a row is contiguous, and rows lie apart: what a BLAS calls row-major.
  bool is_row_major() const { return column_stride == 1 && row_stride >= (columns > 1 ? columns : 1); }
};

/// As (rows, columns) of a program.
inline erased_view view_of(const matrix& m) {
  erased_view view{m.data, m.type, true, 2, {}};
  view.axis[0].push_back({m.rows, m.row_stride});
  view.axis[1].push_back({m.columns, m.column_stride});
  return view;
}

/// A matrix of one column as a vector of a program.
inline erased_view vector_of(const matrix& m) {
  erased_view view{m.data, m.type, true, 1, {}};
  view.axis[0].push_back({m.rows, m.row_stride});
  return view;
}

/// A matrix of one number as a tensor without axes.
inline erased_view number_of(const matrix& m) { return {m.data, m.type, true, 0, {}}; }

/// All dimensions of an array but the last `columns` ones (0 or 1) as the rows of a matrix, for programs: any
/// strides.
inline erased_view rows_of(const array& a, int columns) {
  erased_view view{a.data, a.type, a.writable, 2, {}};
  for (int i = 0; i < a.rank; ++i)
    view.axis[i < a.rank - columns ? 0 : 1].push_back({a.extents[i], a.strides[i]});
  return view;
}

/// Any array as a vector of a program.
inline erased_view all_of(const array& a) {
  erased_view view{a.data, a.type, a.writable, 1, {}};
  for (int i = 0; i < a.rank; ++i) view.axis[0].push_back({a.extents[i], a.strides[i]});
  return view;
}

/// Any array as one column.
inline erased_view column_of(const array& a) {
  erased_view view = rows_of(a, 0);
  view.axis[1] = dims{{1, 1}};
  return view;
}

/// All dimensions but the last as rows, where one stride serves them all.
inline std::optional<matrix> merged(const array& a) {
  matrix m{a.data, a.type, 1, a.extents[a.rank - 1], 0, a.strides[a.rank - 1]};
  for (int i = a.rank - 2; i >= 0; --i) {
    if (a.extents[i] == 1) continue;
    if (m.rows == 1)
      m.row_stride = a.strides[i];
    else if (a.strides[i] != m.rows * m.row_stride && a.count() > 0)
      return std::nullopt;
    m.rows *= a.extents[i];
  }
  // What a single row or column is apart from the next does not matter; these strides make it row-major.
  if (m.columns == 1) m.column_stride = 1;
  if (m.rows == 1) m.row_stride = m.column_stride == 1 ? m.columns : 1;
  return m;
}

}  // namespace scandsl::ops
