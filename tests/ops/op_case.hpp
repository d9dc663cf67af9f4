#pragma once
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>

#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/exec/cuda_executor.hpp"
#include "scandsl/ops/scan_options.hpp"
#include "support/memory.hpp"
#include "support/reference.hpp"

/// One call of a scan op on tensors of any rank, and what the textbook expects of it.
namespace op_test {

using namespace scandsl;
using namespace support;
using extent_list = std::vector<std::int64_t>;

/// Runs op(device) on the CPU, on so many threads (0: as many as there are); with SCANDSL_TEST_MANAGED on the
/// GPU, waiting for it. There long lanes look back, or (SCANDSL_TEST_WALKS) are walked for want of a
/// workspace, unless the op cannot do without.
#ifdef SCANDSL_TEST_MANAGED
inline constexpr bool on_gpu = true;
template <class Op> void run_on_device(Op op, int = 0) {
  memory_of<std::byte> workspace;
  const auto run_sized = [&] {
    cuda_sizing size;
    op(size);
    workspace.assign(static_cast<std::size_t>(size.bytes), std::byte{0x5a});
    const cuda device{nullptr, {workspace.data(), size.bytes}};
    op(device);
  };
  if (std::getenv("SCANDSL_TEST_WALKS") == nullptr) {
    run_sized();
  } else {
    try {
      const cuda bare{nullptr};
      op(bare);
    } catch (const argument_error&) {
      run_sized();
    }
  }
  if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess)
    throw std::runtime_error(cudaGetErrorString(status));
}
#else
inline constexpr bool on_gpu = false;
template <class Op> void run_on_device(Op op, int threads = 0) {
  const cpu device{threads};
  op(device);
}
#endif

inline std::int64_t count_of(const extent_list& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

struct op_case {
  extent_list extents;
  int dim = 0;
  bool reverse = false, exclusive = false, seeded = false, wants_state = true;
  std::vector<std::int64_t> offsets = {};  ///< empty: not packed
  std::int64_t chunk = 0;
  dtype type = dtype::float32, state_type = dtype::float32, out_type = dtype::float32;
  unsigned layout_seed = 0;  ///< 0: contiguous

  std::int64_t length() const { return extents[static_cast<std::size_t>(positive_dim())]; }
  int positive_dim() const { return dim < 0 ? dim + static_cast<int>(extents.size()) : dim; }
  std::int64_t sequences() const {
    return offsets.empty() ? 1 : static_cast<std::int64_t>(offsets.size()) - 1;
  }
  extent_list state_extents() const {
    extent_list result = extents;
    result.erase(result.begin() + positive_dim());
    if (!offsets.empty()) result.insert(result.begin(), sequences());
    return result;
  }
  reference::columns columns() const {
    const auto d = static_cast<std::size_t>(positive_dim());
    return {count_of({extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(d)}), extents[d],
            count_of({extents.begin() + static_cast<std::ptrdiff_t>(d) + 1, extents.end()})};
  }
};

inline std::ostream& operator<<(std::ostream& out, const op_case& c) {
  out << name_of(c.type) << " [";
  for (const std::int64_t extent : c.extents) out << ' ' << extent;
  out << " ] along " << c.dim << (c.reverse ? " reverse" : "") << (c.exclusive ? " exclusive" : "")
      << (c.seeded ? " initial" : "") << " chunk " << c.chunk << " layout " << c.layout_seed;
  for (const std::int64_t each : c.offsets) out << (&each == &c.offsets[0] ? " packed " : ", ") << each;
  return out;
}

/// Where in an operand of shape `extents`, which broadcasts against x, the element of x at row-major position
/// `at` finds its own.
inline std::size_t place_in_broadcast(const op_case& c, const extent_list& extents, std::int64_t at) {
  std::int64_t rest = at, offset = 0, stride = 1;
  for (std::size_t i = c.extents.size(), j = extents.size(); i-- > 0;) {
    const std::int64_t index = rest % c.extents[i];
    rest /= c.extents[i];
    if (j == 0) continue;
    --j;
    if (extents[j] != 1) offset += index * stride;
    stride *= extents[j];
  }
  return static_cast<std::size_t>(offset);
}

inline std::vector<double> random_values(std::mt19937& random, std::int64_t count, double low, double high) {
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(draw(random));
  return values;
}

/// Memory of one operand: filled, or untouched where there are no values.
class operand_memory {
public:
  operand_memory(std::mt19937& random, const op_case& c, dtype type, const extent_list& extents,
                 bool is_output, const std::vector<double>& values = {})
      : block(type, extents, place(random, c, extents, !is_output)), is_output_(is_output) {
    if (!is_output) block.write(values);
  }
  array view() { return block.as_array(is_output_); }

  memory_block block;

private:
  static layout place(std::mt19937& random, const op_case& c, const extent_list& extents, bool is_input) {
    std::vector<extent_list> whole;
    for (const std::int64_t extent : extents) whole.push_back({extent});
    return c.layout_seed == 0 ? layout{} : random_layout(random, extents, whole, is_input);
  }
  bool is_output_;
};

/// The value of the scan on one column: x along the scanned dimension and what else the op reads there.
using column_scan = std::function<reference::result(const std::vector<double>& x, std::int64_t column,
                                                    const reference::options&)>;

struct expectation {
  std::vector<double> y, state;
};

/// Every column of x, the initial states (S, columns) being those of `initial`.
inline expectation expect(const op_case& c, const std::vector<double>& x, const std::vector<double>& initial,
                          const column_scan& scan) {
  const reference::columns columns = c.columns();
  expectation result{std::vector<double>(x.size()),
                     std::vector<double>(static_cast<std::size_t>(c.sequences() * columns.count()))};
  for (std::int64_t column = 0; column < columns.count(); ++column) {
    reference::options o{c.reverse, c.exclusive, c.chunk, c.offsets, {}};
    for (std::int64_t s = 0; s < c.sequences() && !initial.empty(); ++s)
      o.initial.push_back({initial[static_cast<std::size_t>(s * columns.count() + column)]});
    const reference::result scanned = scan(columns.read(x, column), column, o);
    columns.write(result.y, column, scanned.values);
    for (std::int64_t s = 0; s < c.sequences(); ++s)
      result.state[static_cast<std::size_t>(s * columns.count() + column)] =
          scanned.last[static_cast<std::size_t>(s)][0];
  }
  return result;
}

/// The first element that is off by more than `tolerance` (relative to the greater of its value and 1) and
/// its storage type's rounding; empty where there is none.
inline std::string mismatch(const char* id, dtype type, const std::vector<double>& expected,
                            const std::vector<double>& got, double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double exact = expected[i], value = got[i];
    if (value == rounded(type, exact) || (std::isnan(value) && std::isnan(exact))) continue;
    const double error = std::fabs(value - exact) - unit_roundoff(type) * std::fabs(exact);
    if (!(error <= tolerance * std::max(1.0, std::fabs(exact))))
      return message(id, "[", i, "]: expected ", exact, ", got ", value);
  }
  return "";
}

/// As mismatch, relative to the greatest element of the tensor, a gradient's own size; or to `size`.
inline std::string gradient_mismatch(const char* id, dtype type, const std::vector<double>& expected,
                                     const std::vector<double>& got, double tolerance, double size = 0) {
  for (const double each : expected) size = std::max(size, std::fabs(each));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (got[i] == rounded(type, expected[i])) continue;  // infinite, where the type ends before it
    const double error = std::fabs(got[i] - expected[i]) - unit_roundoff(type) * std::fabs(expected[i]);
    if (!(error <= tolerance * size + (type == dtype::float16 ? 0x1p-25 : 0.0)))
      return message(id, "[", i, "]: expected ", expected[i], ", got ", got[i], " of a size of ", size);
  }
  return "";
}

/// Runs an op on a case and compares. `call(x, y, options)` is the op on its views; `scan` what it means;
/// `change` what is done to the random values of x.
template <class Options, class Call>
std::string check_op(
    const op_case& c, unsigned seed, double low, double high, const column_scan& scan, Call call,
    double tolerance, const std::function<void(std::vector<double>&)>& change = [](auto&) {}) {
  std::mt19937 random(seed + 1000 * c.layout_seed);
  std::vector<double> values = random_values(random, count_of(c.extents), low, high);
  change(values);
  operand_memory x(random, c, c.type, c.extents, false, values);
  operand_memory y(random, c, c.out_type, c.extents, true);
  const std::int64_t states = count_of(c.state_extents());
  operand_memory initial(random, c, c.state_type, c.state_extents(), false,
                         random_values(random, states, -1, 1));
  operand_memory final_state(random, c, c.type == dtype::float64 ? dtype::float64 : dtype::float32,
                             c.state_extents(), true);
  Options options;
  options.reverse = c.reverse;
  options.exclusive = c.exclusive;
  const memory_of<std::int64_t> offsets(c.offsets.begin(), c.offsets.end());
  const memory_of<std::int32_t> short_offsets(c.offsets.begin(), c.offsets.end());
  if (!c.offsets.empty() && seed % 2 == 0)
    options.cu_seqlens = array::of(offsets.data(), {c.sequences() + 1});
  else if (!c.offsets.empty())
    options.cu_seqlens = array::of(short_offsets.data(), {c.sequences() + 1});
  if constexpr (requires { options.initial_state; }) {
    if (c.seeded) options.initial_state = initial.view();
    if (c.wants_state) options.final_state = final_state.view();
  }
  call(x.view(), y.view(), options);
  const expectation expected =
      expect(c, x.block.read(), c.seeded ? initial.block.read() : std::vector<double>{}, scan);
  if (!y.block.is_intact_around() || !final_state.block.is_intact_around())
    return "memory beside the outputs was written";
  const std::string wrong = mismatch("y", c.out_type, expected.y, y.block.read(), tolerance);
  if (!wrong.empty()) return wrong;
  if constexpr (requires { options.final_state; })
    if (c.wants_state)
      return mismatch("final_state", c.type == dtype::float64 ? dtype::float64 : dtype::float32,
                      expected.state, final_state.block.read(), tolerance);
  return "";
}

/// Calls f with cases of every rank, dimension, option and element type.
template <class F> void for_each_case(F f) {
  std::vector<extent_list> shapes = {{7},       {1},          {3, 5},          {5, 1},
                                     {2, 9, 3}, {2, 3, 4, 2}, {2, 2, 3, 2, 3}, {1, 300, 2},
                                     {3, 0, 2}, {0, 4},       {4500},          {2, 1, 17}};
  // Many tiles of each lane, in a row and in a strip, and lanes that fill no vector.
  if (on_gpu) shapes.insert(shapes.end(), {{50001}, {2, 1500, 24}, {1100, 9}});
  unsigned seed = 0;
  for (const extent_list& extents : shapes)
    for (int dim = -static_cast<int>(extents.size()); dim < static_cast<int>(extents.size()); ++dim)
      for (const dtype type : {dtype::float32, dtype::float64, dtype::bfloat16, dtype::float16}) {
        op_case c{extents, dim};
        ++seed;
        c.reverse = seed % 2 == 0;
        c.exclusive = seed % 3 == 0;
        c.seeded = seed % 5 < 3;
        c.wants_state = seed % 7 != 0;
        c.type = c.out_type = type;
        c.state_type = seed % 2 == 0 ? type : dtype::float32;
        c.layout_seed = seed % 4;
        const std::int64_t length = c.length();
        if (seed % 4 == 1) c.offsets = {0, 0, length / 3, length / 3, length};
        f(c, seed);
      }
}

/// In float64 the reference errs as much: sums of n numbers in [-2, 2] stay below some 4 sqrt(n), and of n
/// roundings sqrt(n) add up.
inline double tolerance_of(const op_case& c) {
  if (c.type == dtype::float64)
    return std::max(1e-13, 4 * static_cast<double>(c.length()) * unit_roundoff(c.type));
  return c.length() > 1000 ? 1e-4 : 4e-6;
}

}  // namespace op_test
