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

/// While it lives, a call of OpenBLAS works on the thread that calls it. Threads of its own would be in the
/// way of the executor's, which wait for work as they do; its OpenMP build has none of them, but would take
/// as many of OpenMP's as there are. The number of its own is the whole process's: of two calls at the same
/// time the first to end gives the other its threads back, which is slower and no less right.
class one_thread_a_call {
public:
  one_thread_a_call() {
    if (of_openblas > 1) openblas_set_num_threads(1);
#ifdef _OPENMP
    omp_set_num_threads(1);  // of this thread's loops that do not say how many
#endif
  }
  one_thread_a_call(const one_thread_a_call&) = delete;
  ~one_thread_a_call() {
    if (of_openblas > 1) openblas_set_num_threads(of_openblas);
#ifdef _OPENMP
    omp_set_num_threads(of_openmp);
#endif
  }

private:
#ifdef _OPENMP
  int of_openmp = omp_get_max_threads();
  int of_openblas = openblas_get_parallel() == OPENBLAS_THREAD ? openblas_get_num_threads() : 1;
#else
  int of_openblas = openblas_get_parallel() != OPENBLAS_SEQUENTIAL ? openblas_get_num_threads() : 1;
#endif
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

/// What a block of a result is made of: multiplications that pay for one more thread, and the edge that
/// blocks are multiples of, which is one of OpenBLAS's own blocks of registers or several.
struct block_policy {
  static constexpr std::int64_t least_work = 1 << 18, edge = 32;
  static constexpr int most_threads = 64;  ///< that call OpenBLAS, built for as many and its own
};

/// A result in blocks of equal size, for as many threads at most: near to squares, for a thread then reads
/// least of the factors.
struct block_grid {
  std::int64_t height, width;  // of a block
  std::int64_t down, across;   // blocks

  block_grid(const matrix& result, std::int64_t depth, int threads)
      : height(result.rows), width(result.columns) {
    const double work = static_cast<double>(height) * static_cast<double>(width) * static_cast<double>(depth);
    const auto count = static_cast<std::int64_t>(
        std::clamp(work / double(block_policy::least_work), 1.0,
                   static_cast<double>(std::min(threads, block_policy::most_threads))));
    for (std::int64_t rows = 1; rows <= count; ++rows) {
      const std::int64_t h = part_of(result.rows, rows), w = part_of(result.columns, count / rows);
      if (count % rows == 0 && (rows == 1 || h + w < height + width)) height = h, width = w;
    }
    down = quotient(result.rows, height);
    across = quotient(result.columns, width);
  }

private:
  static std::int64_t quotient(std::int64_t size, std::int64_t by) { return (size + by - 1) / by; }
  static std::int64_t part_of(std::int64_t size, std::int64_t parts) {
    return std::min(size, quotient(quotient(size, parts), block_policy::edge) * block_policy::edge);
  }
};

/// Matrices of C that are row-major, or whose transpose is; the result row-major. earlier: what is multiplied
/// with the result that is there.
template <class C> void multiply_direct(int threads, const product& p, C factor, C earlier) {
  const auto side = [](const matrix& m) { return m.is_row_major() ? CblasNoTrans : CblasTrans; };
  const auto stride = [](const matrix& m) { return m.is_row_major() ? m.row_stride : m.column_stride; };
  const blasint depth = as_blas(p.left.columns), of_left = as_blas(stride(p.left)),
                of_right = as_blas(stride(p.right)), of_result = as_blas(p.result.row_stride);
  as_blas(p.result.rows);
  as_blas(p.result.columns);
  const block_grid blocks(p.result, p.left.columns, threads);
  cpu_detail::parallel_for(blocks.down * blocks.across, threads, [&](std::int64_t k, int) {
    const std::int64_t i = k / blocks.across * blocks.height, j = k % blocks.across * blocks.width;
    const std::int64_t height = std::min(blocks.height, p.result.rows - i);
    const std::int64_t width = std::min(blocks.width, p.result.columns - j);
    const matrix left = p.left.rows_from(i, height), right = p.right.block(0, p.right.rows, j, width);
    call_blas(side(p.left), side(p.right), static_cast<blasint>(height), static_cast<blasint>(width), depth,
              factor, static_cast<const C*>(left.data), of_left, static_cast<const C*>(right.data), of_right,
              earlier, static_cast<C*>(p.result.block(i, height, j, width).data), of_result);
  });
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
      multiply_direct<C>(device.threads, {l, r, total}, C(1), C(k > 0 ? 1 : 0));
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
    multiply_direct<C>(device.threads, p, factor, earlier);
  else
    multiply_direct<C>(device.threads, {p.right.transposed(), p.left.transposed(), p.result.transposed()},
                       factor, earlier);
}

}  // namespace

std::int64_t panel_bytes(dtype type) {
  constexpr std::int64_t elements = panel_policy::rows * panel_policy::depth +
                                    panel_policy::depth * panel_policy::columns +
                                    panel_policy::rows * panel_policy::columns;
  return elements * static_cast<std::int64_t>(type == dtype::float64 ? sizeof(double) : sizeof(float));
}

void multiply(const cpu& given, const product& what) {
  if (what.result.rows == 0 || what.result.columns == 0) return;
  const cpu device{cpu_detail::threads_of(given)};
  const one_thread_a_call alone;
  if (what.left.type == dtype::float64)
    multiply_as<double>(device, what);
  else
    multiply_as<float>(device, what);
}

}  // namespace scandsl::ops
