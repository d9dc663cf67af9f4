#include "workloads.hpp"

#include <cmath>
#include <memory>

#include "baseline.hpp"
#include "reference.hpp"
#include "text.hpp"
#include "timing.hpp"
#include "workload.hpp"

namespace demo {
namespace {

using namespace workload;
using baseline::order;

/// One line of the table.
struct table_line {
  const char *op, *shape, *along, *type;
  extents sizes;
  std::int64_t chunk;
  bool reverse;
  double accuracy;  ///< what the error may be
};

template <class T> class measurement {
public:
  explicit measurement(const table_line& described)
      : what(described), line(name_of(described)), memory_x(std::make_unique_for_overwrite<T[]>(count())),
        memory_y(std::make_unique_for_overwrite<T[]>(count())) {
    line.step("making the input");
    baseline::fill(memory_x.get(), what.sizes.count());
    baseline::fill(memory_y.get(), what.sizes.count());  // so that its pages exist
  }

  /// Measures and prints. `State` is the reference, `loop(order, from, to)` the loop to compare with.
  template <const program& P, class State, class Loop, class... Scalars>
  bool run_and_print(Loop loop, Scalars... scalars) {
    const auto own = [&] {
      run<P>(cpu{}, x = as_two_axes(memory_x.get(), what.sizes), y = as_two_axes(memory_y.get(), what.sizes),
             scalars...);
    };
    own();
    line.step("checking against float64");
    const double error =
        largest_error<State>(what.sizes, what.chunk, what.reverse, memory_x.get(), memory_y.get());
    // In turns, so that what else the machine does touches all of them alike; the slow loops fewer times.
    for (int round = 1; round <= 5; ++round) {
      line.step(("round " + std::to_string(round) + " of 5").c_str());
      copy.measure([&] { baseline::copy(memory_x.get(), memory_y.get(), count() * sizeof(T)); });
      ours.measure(own);
      if (columns.total() < 1.0)
        columns.measure([&] { loop(order::columns, memory_x.get(), memory_y.get()); });
      if (is_strided() && lanes.total() < 1.0)
        lanes.measure([&] { loop(order::lanes, memory_x.get(), memory_y.get()); });
    }
    line.clear();
    print(error);
    return error <= what.accuracy;
  }

private:
  void print(double error) const {
    const double own = ours.median();
    std::printf("%-13s %-19s %-10s %-8s %7.1f %7.1f %5.2f %8.1f %5.1fx", what.op, what.shape, what.along,
                what.type, 1e3 * own, 1e3 * copy.median(), copy.median() / own, 1e3 * columns.median(),
                columns.median() / own);
    if (is_strided())
      std::printf(" %7.1f %5.1fx", 1e3 * lanes.median(), lanes.median() / own);
    else
      std::printf(" %7s %6s", "", "");
    std::printf("  %.1e\n", error);
  }
  std::size_t count() const { return static_cast<std::size_t>(what.sizes.count()); }
  bool is_strided() const { return what.sizes.inner > 1; }
  static std::string name_of(const table_line& w) {
    return std::string(w.op) + " " + w.shape + " along " + w.along + ", " + w.type;
  }

  table_line what;
  progress line;
  std::unique_ptr<T[]> memory_x, memory_y;
  timings ours, copy, columns, lanes;
};

template <class T> bool measure_logcumsumexp(const char* along, extents sizes) {
  measurement<T> m(
      {"logcumsumexp", "[12, 2048, 2048]", along, type_name<T>, sizes, sizes.length, false, allowed<T>});
  return m.template run_and_print<logcumsumexp, sum_of_exponentials>(
      [&](order walk, const T* from, T* to) { baseline::logcumsumexp(sizes, walk, from, to); });
}

template <class T> bool measure_chunk_cumsum(bool backward, extents sizes) {
  measurement<T> m({"chunk cumsum", "[4, 8192, 16, 128]", backward ? "1, reverse" : "1", type_name<T>, sizes,
                    chunk_size, backward, allowed<T>});
  return m.template run_and_print<chunk_cumsum, sum_of_values>(
      [&](order walk, const T* from, T* to) {
        baseline::chunk_cumsum(sizes, walk, chunk_size, backward, from, to);
      },
      chunk = chunk_size, reverse = backward);
}

/// Bytes read plus written a second by a copy.
double copy_bandwidth() {
  const std::size_t bytes = std::size_t{256} << 20;
  const auto from = std::make_unique<std::byte[]>(bytes), to = std::make_unique<std::byte[]>(bytes);
  return 2.0 * static_cast<double>(bytes) /
         median_seconds(5, [&] { baseline::copy(from.get(), to.get(), bytes); });
}

template <const program& P, class... Scalars>
void print_plan(const char* title, extents sizes, double bandwidth, Scalars... scalars) {
  std::printf("%s\n\n", title);
  const auto memory = as_two_axes(static_cast<float*>(nullptr), sizes);
  print_block(explain(plan<P>(cpu{}, x = memory, y = memory, scalars...), bandwidth));
}

}  // namespace

bool run_workloads() {
  heading("2. logcumsumexp and the chunk cumsum, on the shapes of published workloads");
  std::puts("n is the scanned dimension, b stands for all others, wherever they lie in memory:\n");
  print_block(describe(logcumsumexp));
  print_block(describe(chunk_cumsum));
  const double bandwidth = copy_bandwidth();
  std::printf("A copy on all cores moves %.1f GB/s here, read plus written.\n\n", 1e-9 * bandwidth);
  print_plan<logcumsumexp>("logcumsumexp of [12, 2048, 2048] along the last dimension, float32:", rows,
                           bandwidth);
  print_plan<logcumsumexp>("logcumsumexp of [12, 2048, 2048] along dimension 1, float32:", columns,
                           bandwidth);
  print_plan<chunk_cumsum>("chunk cumsum of [4, 8192, 16, 128] along dimension 1, chunks of 128, float32:",
                           chunks, bandwidth, chunk = chunk_size, reverse = false);

  std::puts("Times in milliseconds on all cores. The copy moves the same bytes; `of copy` is its time over "
            "ours. The loop\n"
            "is plain C++ at -O3 that scans one row or column after the other; `lanes inside` walks the "
            "scanned dimension\n"
            "outside and contiguous memory inside. Errors are against float64, relative where the value is "
            "above 1;\n"
            "rounding to bfloat16 alone costs up to 3.9e-03.\n");
  std::printf("%-13s %-19s %-10s %-8s %7s %7s %5s %8s %6s %7s %6s\n", "", "", "", "", "ours", "copy", "of",
              "loop", "times", "lanes", "times");
  std::printf("%-13s %-19s %-10s %-8s %7s %7s %5s %8s %6s %7s %6s  %s\n", "op", "shape", "along", "type",
              "ms", "ms", "copy", "ms", "faster", "inside", "faster", "error");
  bool good = measure_logcumsumexp<float>("2", rows);
  good &= measure_logcumsumexp<bfloat16>("2", rows);
  good &= measure_logcumsumexp<float>("1", columns);
  good &= measure_logcumsumexp<bfloat16>("1", columns);
  for (const bool backward : {false, true}) {
    good &= measure_chunk_cumsum<float>(backward, chunks);
    good &= measure_chunk_cumsum<bfloat16>(backward, chunks);
  }
  return good;
}

}  // namespace demo
