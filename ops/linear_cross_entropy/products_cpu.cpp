#include <cblas.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "../common/devices.hpp"
#include "products.hpp"
#include "program.hpp"

namespace scandsl::ops {
namespace {

using namespace linear_cross_entropy_program;

/// Panels of a product, in float32: four megabytes each. The conversion of an element pays for as many
/// multiplications as the other side of its panel is long.
struct panel_policy {
  static constexpr std::int64_t rows = 1024, columns = 1024, depth = 1024;
};

blasint as_blas(std::int64_t size) {
  if (size > std::numeric_limits<blasint>::max())
    throw shape_error("matrices with fewer than 2^31 rows and columns", message(size), "call it on parts");
  return static_cast<blasint>(size);
}

void call_blas(CBLAS_TRANSPOSE l, CBLAS_TRANSPOSE r, blasint m, blasint n_, blasint k, float alpha,
               const float* a, blasint lda, const float* b, blasint ldb, float beta, float* c, blasint ldc) {
  cblas_sgemm(CblasRowMajor, l, r, m, n_, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void call_blas(CBLAS_TRANSPOSE l, CBLAS_TRANSPOSE r, blasint m, blasint n_, blasint k, double alpha,
               const double* a, blasint lda, const double* b, blasint ldb, double beta, double* c,
               blasint ldc) {
  cblas_dgemm(CblasRowMajor, l, r, m, n_, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/// Matrices of C that are row-major, or whose transpose is; the result row-major. earlier: what is multiplied
/// with the result that is there.
template <class C> void multiply_direct(const product& p, C factor, C earlier) {
  const auto side = [](const matrix& m) { return m.is_row_major() ? CblasNoTrans : CblasTrans; };
  const auto stride = [](const matrix& m) {
    return as_blas(m.is_row_major() ? m.row_stride : m.column_stride);
  };
  call_blas(side(p.left), side(p.right), as_blas(p.result.rows), as_blas(p.result.columns),
            as_blas(p.left.columns), factor, static_cast<const C*>(p.left.data), stride(p.left),
            static_cast<const C*>(p.right.data), stride(p.right), earlier, static_cast<C*>(p.result.data),
            stride(p.result));
}

/// A panel in memory of its own.
template <class C> class panel {
public:
  explicit panel(std::int64_t rows, std::int64_t columns)
      : values(static_cast<std::size_t>(rows * columns)) {}
  matrix of(std::int64_t rows, std::int64_t columns) {
    return {values.data(), dtype_of<C>, rows, columns, columns, 1};
  }

private:
  std::vector<C> values;
};

/// Any strides and types: blocks of the result, each from panels of the factors.
template <class C> class panel_product {
public:
  panel_product(const cpu& on, const product& what, C by, C earlier)
      : device(on), p(what), factor_(by), earlier_(earlier),
        rows(std::min(panel_policy::rows, p.result.rows)),
        columns(std::min(panel_policy::columns, p.result.columns)),
        depth(std::min(panel_policy::depth, p.left.columns)), left(rows, depth), right(depth, columns),
        sum(rows, columns) {}

  void operator()() {
    for (std::int64_t i = 0; i < p.result.rows; i += rows)
      for (std::int64_t j = 0; j < p.result.columns; j += columns)
        compute(i, std::min(rows, p.result.rows - i), j, std::min(columns, p.result.columns - j));
  }

private:
  const cpu& device;
  const product& p;
  C factor_, earlier_;
  std::int64_t rows, columns, depth;
  panel<C> left, right, sum;

  void compute(std::int64_t i, std::int64_t height, std::int64_t j, std::int64_t width) {
    const matrix total = sum.of(height, width);
    for (std::int64_t k = 0; k < p.left.columns; k += depth) {
      const std::int64_t deep = std::min(depth, p.left.columns - k);
      const matrix l = left.of(height, deep), r = right.of(deep, width);
      run<scaled>(device, x = view_of(p.left.block(i, height, k, deep)), y = view_of(l));
      run<scaled>(device, x = view_of(p.right.block(k, deep, j, width)), y = view_of(r));
      multiply_direct<C>({l, r, total}, C(1), C(k > 0 ? 1 : 0));
    }
    const std::optional<erased_view> result = view_of(p.result.block(i, height, j, width));
    if (p.accumulates && earlier_ != C(1)) {
      run<scaled>(device, x = view_of(total), y = view_of(total), factor = view(&factor_));
      run<scaled>(device, x = result, y = result, factor = view(&earlier_), before = view_of(total));
    } else {
      run<scaled>(device, x = view_of(total), y = result, factor = view(&factor_),
                  before = p.accumulates ? result : std::nullopt);
    }
  }
};

template <class C> void multiply_as(const cpu& device, const product& p) {
  const auto or_one = [](const void* number) {
    return number == nullptr ? C(1) : *static_cast<const C*>(number);
  };
  const C factor = or_one(p.factor), earlier = p.accumulates ? or_one(p.earlier_factor) : C(0);
  const auto fits = [](const matrix& m) { return m.type == dtype_of<C> && has_unit_stride(m); };
  if (!fits(p.left) || !fits(p.right) || !fits(p.result))
    panel_product<C>(device, p, factor, earlier)();
  else if (p.result.is_row_major())
    multiply_direct<C>(p, factor, earlier);
  else
    multiply_direct<C>({p.right.transposed(), p.left.transposed(), p.result.transposed()}, factor, earlier);
}

}  // namespace

std::int64_t panel_bytes(dtype type) {
  constexpr std::int64_t elements = panel_policy::rows * panel_policy::depth +
                                    panel_policy::depth * panel_policy::columns +
                                    panel_policy::rows * panel_policy::columns;
  return elements * static_cast<std::int64_t>(type == dtype::float64 ? sizeof(double) : sizeof(float));
}

void multiply(const cpu& device, const product& what) {
  if (what.result.rows == 0 || what.result.columns == 0) return;
  if (what.left.type == dtype::float64)
    multiply_as<double>(device, what);
  else
    multiply_as<float>(device, what);
}

}  // namespace scandsl::ops
