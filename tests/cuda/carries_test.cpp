#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device_memory.hpp"
#include "scandsl/ops/decayed_sum.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "support/catch.hpp"
#include "support/memory.hpp"

// Gradients that begin their tiles with the carries that the scan left, compared with loops in float64.
namespace {

using namespace scandsl;
using ops::decayed_sum_gradients, ops::decayed_sum_options, ops::scan_gradients, ops::scan_options;

using support::memory_of, support::must;

enum class data { near, wide, with_empty };  ///< wide: no one frame holds it; with_empty: some are -inf

/// [outer, n, inner], scanned along n.
struct scan_case {
  std::int64_t outer, n, inner;
  bool reverse = false, exclusive = false;
  data kind = data::near;
  bool seeded = false;
  std::int64_t lanes_apart = 1;  ///< of those that are compared with a reference

  std::int64_t count() const { return outer * n * inner; }
  std::int64_t lanes() const { return outer * inner; }
  /// Of step t, in scan order.
  std::size_t at(std::int64_t lane, std::int64_t t) const {
    return static_cast<std::size_t>((lane / inner * n + (reverse ? n - 1 - t : t)) * inner + lane % inner);
  }
  std::string name() const {
    return std::to_string(outer) + " x " + std::to_string(n) + " x " + std::to_string(inner) +
           (reverse ? ", reverse" : "") + (exclusive ? ", exclusive" : "") + (seeded ? ", seeded" : "") +
           ", data " + std::to_string(static_cast<int>(kind));
  }
};

/// Operands and results of type T, with carries between bytes that must not change.
template <class T> struct operands {
  static constexpr std::size_t guard = 256;
  scan_case what;
  memory_of<T> x, decay, dy, y, dx, ddecay, seed, dseed;
  memory_of<std::byte> workspace, carries;
  std::int64_t carry_bytes = 0;

  explicit operands(const scan_case& given) : what(given) {
    const auto count = static_cast<std::size_t>(what.count()), lanes = static_cast<std::size_t>(what.lanes()),
               shared = static_cast<std::size_t>(what.outer + what.inner + 1);  // where x is empty
    std::mt19937 random(static_cast<unsigned>(what.count()));
    std::uniform_real_distribution<float> unit(0, 1);
    const float scale = what.kind == data::wide ? 90.0F : 2.0F;
    for (memory_of<T>* each : {&x, &dy}) each->resize(count);
    decay.assign(count + shared, T(0.9F));
    for (std::size_t i = 0; i < count; ++i) {
      x[i] = T(scale * (2 * unit(random) - 1));
      decay[i] = T(0.8F + 0.2F * unit(random));
      dy[i] = T(2 * unit(random) - 1);
      if (what.kind == data::with_empty && unit(random) < 0.3F)
        x[i] = T(-std::numeric_limits<float>::infinity());
    }
    if (what.kind == data::with_empty)  // whole tiles, too
      for (std::int64_t lane = 0; lane < what.lanes(); ++lane)
        for (std::int64_t t = 0; t < std::min<std::int64_t>(what.n, 200); ++t)
          x[what.at(lane, t)] = T(-std::numeric_limits<float>::infinity());
    for (std::size_t i = 0; i < lanes; ++i) seed.push_back(T(2 * unit(random) - 1));
    for (memory_of<T>* each : {&y, &dx, &ddecay}) each->assign(count + shared, T(1e4F));
    dseed.assign(lanes, T(1e4F));
  }
  array view(memory_of<T>& memory) const {
    return array::of(memory.data(), {what.outer, what.n, what.inner});
  }
  array view_of_lanes(memory_of<T>& memory) const {
    return array::of(memory.data(), {what.outer, what.inner});
  }
};

template <class Options, class T> Options options_of(operands<T>& o) {
  Options options;
  options.reverse = o.what.reverse;
  options.exclusive = o.what.exclusive;
  if (o.what.seeded) options.initial_state = o.view_of_lanes(o.seed);
  return options;
}
/// Sets what gradients of both operations have.
template <class T> void set_gradients(scan_gradients& gradients, operands<T>& o) {
  gradients.y_cotangent = o.view(o.dy);
  gradients.x_gradient = o.view(o.dx);
  if (o.what.seeded) gradients.initial_state_gradient = o.view_of_lanes(o.dseed);
}

struct log_sums {
  template <class T, class Device> static void forward(Device& device, operands<T>& o) {
    ops::logcumsumexp(device, o.view(o.x), 1, o.view(o.y), options_of<scan_options>(o));
  }
  template <class T, class Device> static void backward(Device& device, operands<T>& o) {
    scan_gradients gradients;
    set_gradients(gradients, o);
    ops::logcumsumexp_backward(device, o.view(o.x), 1, gradients, options_of<scan_options>(o));
  }
};
struct decayed_sums {
  template <class T, class Device> static void forward(Device& device, operands<T>& o) {
    ops::decayed_sum(device, o.view(o.x), o.view(o.decay), 1, o.view(o.y),
                     options_of<decayed_sum_options>(o));
  }
  template <class T, class Device> static void backward(Device& device, operands<T>& o) {
    decayed_sum_gradients gradients;
    set_gradients(gradients, o);
    gradients.decay_gradient = o.view(o.ddecay);
    ops::decayed_sum_backward(device, o.view(o.x), o.view(o.decay), 1, gradients,
                              options_of<decayed_sum_options>(o));
  }
};

/// One decay for all of a dimension's lanes and steps: its gradient is a sum over them.
enum class shared_by { all, inner, outer };
template <shared_by Lanes> struct shared_decays {
  static std::int64_t count(const scan_case& what) {
    return Lanes == shared_by::all ? 1 : Lanes == shared_by::inner ? what.outer : what.inner;
  }
  /// Which decay a lane has.
  static std::size_t number_of(const scan_case& what, std::int64_t lane) {
    return static_cast<std::size_t>(Lanes == shared_by::all     ? 0
                                    : Lanes == shared_by::inner ? lane / what.inner
                                                                : lane % what.inner);
  }
  template <class T> static array view(const scan_case& what, memory_of<T>& memory) {
    if (Lanes == shared_by::all) return array::of(memory.data(), {});
    if (Lanes == shared_by::inner) return array::of(memory.data(), {what.outer, 1, 1});
    return array::of(memory.data(), {what.inner});
  }
  template <class T, class Device> static void forward(Device& device, operands<T>& o) {
    ops::decayed_sum(device, o.view(o.x), view(o.what, o.decay), 1, o.view(o.y),
                     options_of<decayed_sum_options>(o));
  }
  template <class T, class Device> static void backward(Device& device, operands<T>& o) {
    decayed_sum_gradients gradients;
    set_gradients(gradients, o);
    gradients.decay_gradient = view(o.what, o.ddecay);
    ops::decayed_sum_backward(device, o.view(o.x), view(o.what, o.decay), 1, gradients,
                              options_of<decayed_sum_options>(o));
  }
};

/// Runs the scan and its gradient; says whether carries went from one to the other.
template <class Op, class T> bool run(operands<T>& o, bool with_carries) {
  cuda_sizing of_scan{.with_carries = with_carries}, of_gradient{.with_carries = with_carries};
  Op::forward(of_scan, o);
  Op::backward(of_gradient, o);
  o.workspace.assign(static_cast<std::size_t>(std::max(of_scan.bytes, of_gradient.bytes)), std::byte{0xa5});
  cuda device{nullptr, {o.workspace.data(), static_cast<std::int64_t>(o.workspace.size())}};
  const bool carried = of_gradient.carry_bytes > 0 && of_scan.carry_bytes == of_gradient.carry_bytes;
  constexpr std::size_t guard = operands<T>::guard;
  if (carried) {
    o.carry_bytes = of_scan.carry_bytes;
    o.carries.assign(static_cast<std::size_t>(o.carry_bytes) + 2 * guard, std::byte{0xff});
    device.carries = {o.carries.data() + guard, o.carry_bytes};
  }
  Op::forward(device, o);
  Op::backward(device, o);
  must(cudaDeviceSynchronize());
  if (carried)
    for (std::size_t i = 0; i < guard; ++i)
      if (o.carries[i] != std::byte{0xff} || o.carries[o.carries.size() - 1 - i] != std::byte{0xff})
        throw std::logic_error("memory beside the carries was written");
  return carried;
}

double number(float value) { return value; }
double number(double value) { return value; }
double number(bfloat16 value) { return static_cast<float>(value); }
double number(float16 value) { return static_cast<float>(value); }

/// Of numbers that are compared with float64, in which their own roundings would add up to as much as what is
/// compared.
using exact = long double;
exact log_of_sum(exact x, exact y) {
  const exact most = std::max(x, y);
  return std::isinf(most) ? most : most + std::log1p(std::exp(std::min(x, y) - most));
}

/// What one value may be off by: its type's rounding, and `terms` roundings of the arithmetic relative to the
/// greatest value of its lane.
template <class T> double allowed(double value, double greatest, double terms) {
  const double storage = sizeof(T) == 8                ? 0x1p-52
                         : sizeof(T) == 4              ? 0x1p-23
                         : std::is_same_v<T, bfloat16> ? 0x1p-8
                                                       : 0x1p-10,
               arithmetic = sizeof(T) == 8 ? 0x1p-53 : 0x1p-24;
  return storage * std::fabs(value) + terms * arithmetic * greatest + (sizeof(T) == 2 ? 0x1p-24 : 0.0);
}

/// What is wrong with a result, given a lane's; empty: nothing.
template <class T> struct checker {
  const operands<T>& o;
  double terms;
  std::string wrong = {};
  void check(const char* name, const memory_of<T>& got, std::int64_t lane,
             const std::vector<double>& expected) {
    double greatest = 0;
    for (const double each : expected)
      if (std::isfinite(each)) greatest = std::max(greatest, std::fabs(each));
    for (std::int64_t t = 0; t < o.what.n; ++t) {
      const double is = number(got[o.what.at(lane, t)]), should = expected[static_cast<std::size_t>(t)];
      if (is == should) continue;
      if (!(std::fabs(is - should) <= allowed<T>(should, greatest, terms)) && wrong.empty())
        wrong = std::string(name) + " of lane " + std::to_string(lane) + ", step " + std::to_string(t) +
                ": expected " + std::to_string(should) + ", got " + std::to_string(is);
    }
  }
  void check_seed(const memory_of<T>& got, std::int64_t lane, double should, double greatest) {
    const double is = number(got[static_cast<std::size_t>(lane)]);
    if (o.what.seeded && !(std::fabs(is - should) <= allowed<T>(should, greatest, terms)) && wrong.empty())
      wrong = "seed's gradient of lane " + std::to_string(lane) + ": expected " + std::to_string(should) +
              ", got " + std::to_string(is);
  }
};

// With states s_0 (the seed), s_1 .. s_n and r_t the derivative by s_{t+1}.
template <class T> std::string mismatch(log_sums, const operands<T>& o) {
  // exp and log in frames err by a few units of 2^-22 of their results, and by |m| 2^-24.
  checker<T> checks{o, 2000};
  const auto n = static_cast<std::size_t>(o.what.n);
  for (std::int64_t lane = 0; lane < o.what.lanes(); lane += o.what.lanes_apart) {
    std::vector<exact> x(n), g(n), s(n + 1);
    std::vector<double> y(n), dx(n);
    s[0] = o.what.seeded ? exact(number(o.seed[static_cast<std::size_t>(lane)])) : -HUGE_VALL;
    for (std::size_t t = 0; t < n; ++t) {
      x[t] = number(o.x[o.what.at(lane, static_cast<std::int64_t>(t))]);
      g[t] = number(o.dy[o.what.at(lane, static_cast<std::int64_t>(t))]);
      s[t + 1] = log_of_sum(s[t], x[t]);
      y[t] = static_cast<double>(o.what.exclusive ? s[t] : s[t + 1]);
    }
    exact r = 0;
    double greatest = 0;
    const auto share = [](exact part, exact whole) {
      return part == -HUGE_VALL ? 0.0L : std::exp(part - whole);
    };
    for (std::size_t t = n; t-- > 0;) {
      const exact own = o.what.exclusive ? r : r + g[t];
      dx[t] = static_cast<double>(share(x[t], s[t + 1]) * own);
      r = share(s[t], s[t + 1]) * own + (o.what.exclusive ? g[t] : 0.0L);
      greatest = std::max({greatest, std::fabs(dx[t]), std::fabs(static_cast<double>(r))});
    }
    checks.check("y", o.y, lane, y);
    checks.check("dx", o.dx, lane, dx);
    checks.check_seed(o.dseed, lane, static_cast<double>(r), greatest);
  }
  return checks.wrong;
}
/// A lane of a decayed sum and its gradients, decay(at) being an element's; `first` is the derivative by the
/// seed.
struct decayed_lane {
  std::vector<double> y, dx, da;
  double first = 0, greatest = 0;
};
template <class T, class Decay> decayed_lane lane_of(const operands<T>& o, std::int64_t lane, Decay decay) {
  const auto n = static_cast<std::size_t>(o.what.n);
  decayed_lane result{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n)};
  std::vector<double> a(n), g(n), s(n + 1);
  s[0] = o.what.seeded ? number(o.seed[static_cast<std::size_t>(lane)]) : 0.0;
  for (std::size_t t = 0; t < n; ++t) {
    const std::size_t at = o.what.at(lane, static_cast<std::int64_t>(t));
    a[t] = decay(at);
    g[t] = number(o.dy[at]);
    s[t + 1] = a[t] * s[t] + number(o.x[at]);
    result.y[t] = o.what.exclusive ? s[t] : s[t + 1];
  }
  double& r = result.first;
  for (std::size_t t = n; t-- > 0;) {
    result.dx[t] = o.what.exclusive ? r : r + g[t];
    result.da[t] = result.dx[t] * s[t];
    r = a[t] * result.dx[t] + (o.what.exclusive ? g[t] : 0.0);
    result.greatest = std::max({result.greatest, std::fabs(result.dx[t]), std::fabs(r)});
  }
  return result;
}
/// What is checked whichever decays there are.
template <class T>
void check_lane(checker<T>& checks, const operands<T>& o, std::int64_t lane, const decayed_lane& expected) {
  checks.check("y", o.y, lane, expected.y);
  checks.check("dx", o.dx, lane, expected.dx);
  checks.check_seed(o.dseed, lane, expected.first, expected.greatest);
}
template <class T> std::string mismatch(decayed_sums, const operands<T>& o) {
  checker<T> checks{o, 64};
  for (std::int64_t lane = 0; lane < o.what.lanes(); lane += o.what.lanes_apart) {
    const decayed_lane expected = lane_of(o, lane, [&](std::size_t at) { return number(o.decay[at]); });
    check_lane(checks, o, lane, expected);
    checks.check("ddecay", o.ddecay, lane, expected.da);
  }
  return checks.wrong;
}
template <shared_by Lanes, class T> std::string mismatch(shared_decays<Lanes>, const operands<T>& o) {
  using op = shared_decays<Lanes>;
  checker<T> checks{o, 64};
  const auto decays = static_cast<std::size_t>(op::count(o.what));
  std::vector<double> sum(decays), size(decays);
  for (std::int64_t lane = 0; lane < o.what.lanes(); ++lane) {
    const std::size_t which = op::number_of(o.what, lane);
    const decayed_lane expected = lane_of(o, lane, [&](std::size_t) { return number(o.decay[which]); });
    check_lane(checks, o, lane, expected);
    for (const double term : expected.da) sum[which] += term, size[which] += std::fabs(term);
  }
  for (std::size_t i = 0; i < decays && checks.wrong.empty(); ++i)
    if (const double is = number(o.ddecay[i]);
        !(std::fabs(is - sum[i]) <= allowed<T>(sum[i], size[i], checks.terms)))
      checks.wrong = "gradient of decay " + std::to_string(i) + ": expected " + std::to_string(sum[i]) +
                     ", got " + std::to_string(is);
  return checks.wrong;
}

// Of few lanes a tile has up to a thousand steps.
const scan_case shapes[] = {{4, 65, 256},  {1, 129, 64},  {200, 200, 34}, {3, 450, 72},
                            {3, 1450, 72}, {2, 1333, 20}, {1, 1300, 7},   {2, 64, 128},
                            {64, 1157, 1}, {1, 2048, 1},  {0, 300, 8},    {3, 0, 8}};

/// Runs one case; says whether carries went from the scan to its gradient.
template <class Op, class T> bool check(const scan_case& what, bool with_carries) {
  operands<T> o(what);
  const bool used = run<Op>(o, with_carries);
  INFO(what.name() << (used ? ", with carries" : ""));
  CHECK(mismatch(Op(), o) == "");
  CHECK((with_carries || !used));
  return used;
}

/// Every shape, direction and kind of data, with carries and without.
template <class Op, class T> int check_all(std::vector<data> kinds) {
  int carried = 0;
  for (scan_case what : shapes)
    for (const bool reverse : {false, true})
      for (const bool exclusive : {false, true})
        for (const data kind : kinds)
          for (const bool with_carries : {true, false}) {
            what.reverse = reverse, what.exclusive = exclusive, what.kind = kind;
            what.seeded = (what.n + what.inner) % 2 == 0;
            carried += check<Op, T>(what, with_carries);
          }
  return carried;
}

/// Replays a scan and its gradient, on other data each time. Says what is wrong with which replay; empty:
/// nothing.
template <class Op> std::string replay(int replays) {
  operands<float> o({2, 1333, 20});
  REQUIRE(run<Op>(o, true));
  cudaStream_t on = nullptr;
  must(cudaStreamCreate(&on));
  cuda device{on, {o.workspace.data(), static_cast<std::int64_t>(o.workspace.size())}};
  device.carries = {o.carries.data() + operands<float>::guard, o.carry_bytes};
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runs = nullptr;
  must(cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal));
  Op::forward(device, o);
  Op::backward(device, o);
  must(cudaStreamEndCapture(on, &graph));
  must(cudaGraphInstantiate(&runs, graph, 0));
  std::mt19937 random(7);
  std::uniform_real_distribution<float> unit(-2, 2);
  std::string wrong;
  for (int i = 0; i < replays && wrong.empty(); ++i) {
    for (float& each : o.x) each = unit(random);
    for (memory_of<float>* each : {&o.y, &o.dx, &o.ddecay}) std::fill(each->begin(), each->end(), 1e4F);
    must(cudaGraphLaunch(runs, on));
    must(cudaStreamSynchronize(on));
    wrong = mismatch(Op(), o);
    if (!wrong.empty()) wrong += ", in replay " + std::to_string(i);
  }
  must(cudaGraphExecDestroy(runs));
  must(cudaGraphDestroy(graph));
  must(cudaStreamDestroy(on));
  return wrong;
}

}  // namespace

TEST_CASE("gradients begin with the carries that scans left", "[cuda][carries]") {
  const std::vector<data> kinds{data::near, data::wide, data::with_empty};
  CHECK(check_all<log_sums, bfloat16>(kinds) > 20);
  CHECK(check_all<log_sums, float>(kinds) > 20);
  CHECK(check_all<decayed_sums, bfloat16>({data::near}) > 10);
  CHECK(check_all<decayed_sums, float>({data::near}) > 10);
  // Types for which the library may have no kernels of their own (SCANDSL_CUDA_MORE_ELEMENTS).
  check_all<log_sums, float16>({data::near, data::with_empty});
  check_all<log_sums, double>(kinds);
  check_all<decayed_sums, double>({data::near});
}

TEST_CASE("gradients of rows of several tiles begin with the carries that scans left", "[cuda][carries]") {
  // Rows that are enough to be walked; of some the last tile is nearly empty, or ends within a vector.
  const auto check_rows = []<class Op, class T>(Op, T, std::int64_t tile, const std::vector<data>& kinds) {
    int carried = 0, number = 0;
    for (const auto& [rows, length] : {std::pair<std::int64_t, std::int64_t>{720, tile + 8},
                                       {724, tile + tile / 2 + 3},
                                       {723, 2 * tile},
                                       {268, 2 * tile + 1}})
      for (const data kind : kinds) {
        scan_case what{rows, length, 1, ++number % 2 == 0, length % 2 == 0, kind, rows % 3 == 0};
        what.lanes_apart = 71;
        carried += check<Op, T>(what, true);
      }
    return carried;
  };
  const std::vector<data> kinds{data::near, data::wide, data::with_empty};
  CHECK(check_rows(log_sums{}, bfloat16{}, 8192, kinds) == 12);
  CHECK(check_rows(log_sums{}, float{}, 4096, kinds) == 12);
  CHECK(check_rows(decayed_sums{}, bfloat16{}, 8192, {data::near}) == 4);
  CHECK(check_rows(decayed_sums{}, float{}, 4096, {data::near}) == 4);
  CHECK(check_rows(shared_decays<shared_by::all>{}, bfloat16{}, 16384, {data::near}) == 4);
}

TEST_CASE("gradients of shared decays are sums over all lanes and steps", "[cuda][carries][tallies]") {
  // Lanes are numbered as in the scan where what repeats comes last.
  CHECK(check_all<shared_decays<shared_by::all>, bfloat16>({data::near}) > 10);
  CHECK(check_all<shared_decays<shared_by::inner>, bfloat16>({data::near}) > 10);
  // Types for which the library may have no kernels of their own.
  check_all<shared_decays<shared_by::all>, float>({data::near});
  check_all<shared_decays<shared_by::inner>, float>({data::near});
  check_all<shared_decays<shared_by::outer>, bfloat16>({data::near});
  check_all<shared_decays<shared_by::outer>, float>({data::near});
  check_all<shared_decays<shared_by::all>, float16>({data::near});
  check_all<shared_decays<shared_by::inner>, double>({data::near});
}

TEST_CASE("gradients of shared decays of rows, whole and ragged, of one tile, several and a cluster's",
          "[cuda][carries][tallies]") {
  for (const auto& [rows, length] : {std::pair<std::int64_t, std::int64_t>{7, 8},
                                     {33, 40},
                                     {5, 264},
                                     {3, 301},
                                     {9, 1024},
                                     {4, 2047},
                                     {2, 2048},
                                     {3, 4096},
                                     {2, 8200},
                                     {2, 20000},
                                     {1, 70001},
                                     {1, 300000}})
    for (const bool reverse : {false, true}) {
      const scan_case what{rows, length, 1, reverse, rows % 2 == 0, data::near, rows % 3 == 0};
      check<shared_decays<shared_by::all>, bfloat16>(what, false);
      check<shared_decays<shared_by::inner>, bfloat16>(what, false);
      check<shared_decays<shared_by::all>, float>(what, false);
      check<shared_decays<shared_by::inner>, double>(what, false);
    }
}

TEST_CASE("gradients with carries and without, for compute-sanitizer", "[.sanitize]") {
  for (const scan_case& what : {scan_case{1, 1129, 64}, scan_case{2, 1333, 20, true, true, data::wide, true},
                                scan_case{3, 1450, 72, false, false, data::with_empty}, scan_case{3, 1157, 1},
                                scan_case{720, 8200, 1, true, false, data::wide, false, 71},
                                scan_case{720, 8200, 1, false, true, data::near, true, 71}})
    for (const bool with_carries : {true, false}) {
      const bool long_rows = what.n > 4096;
      if (long_rows && !with_carries) continue;  // clusters, which racecheck does not know
      check<log_sums, bfloat16>(what, with_carries);
      check<log_sums, float>(what, with_carries);
      if (what.kind != data::near) continue;
      check<decayed_sums, bfloat16>(what, with_carries);
      check<decayed_sums, float>(what, with_carries);
      if (long_rows) continue;  // of decays near 1 thousands of steps' roundings add up
      check<shared_decays<shared_by::all>, bfloat16>(what, with_carries);
      check<shared_decays<shared_by::inner>, float>(what, with_carries);
    }
}

TEST_CASE("carries take 1/32 of what is scanned, in 16 bits", "[cuda][carries]") {
  const auto somewhere = [](std::uintptr_t terabytes) {  // never looked at
    return array::of(reinterpret_cast<bfloat16*>(terabytes << 40), {12, 8192, 2048});
  };
  cuda_sizing of_scan{.with_carries = true}, of_gradient{.with_carries = true};
  ops::logcumsumexp(of_scan, somewhere(1), 1, somewhere(2));
  scan_gradients gradients;
  gradients.y_cotangent = somewhere(3);
  gradients.x_gradient = somewhere(4);
  ops::logcumsumexp_backward(of_gradient, somewhere(1), 1, gradients);
  CHECK(of_scan.carry_bytes == somewhere(1).count() * 2 / 32);
  CHECK(of_gradient.carry_bytes == of_scan.carry_bytes);
  CHECK(of_gradient.bytes == 0);
}

TEST_CASE("gradients that are other programs do not begin with carries", "[cuda][carries]") {
  operands<bfloat16> o({4, 65, 256});
  decayed_sum_options options;
  cuda_sizing size{.with_carries = true};
  ops::decayed_sum(size, o.view(o.x), o.view(o.decay), 1, o.view(o.y), options);
  CHECK(size.carry_bytes > 0);
  decayed_sum_gradients gradients;
  gradients.y_cotangent = o.view(o.dy);
  gradients.x_gradient = o.view(o.dx);
  // One sweep, back, which has carries of its own.
  ops::decayed_sum_backward(size, o.view(o.x), o.view(o.decay), 1, gradients, options);
  CHECK(size.carry_bytes == 0);
  // A decay for each lane: sums over the other lanes, which are numbered apart.
  const array decay = array::of(o.decay.data(), {256});
  gradients.decay_gradient = array::of(o.ddecay.data(), {256});
  size = {.with_carries = true};
  ops::decayed_sum_backward(size, o.view(o.x), decay, 1, gradients, options);
  CHECK(size.carry_bytes == 0);
}

TEST_CASE("memory for carries of another size is refused, and not used where there are none",
          "[cuda][carries]") {
  operands<float> o({3, 1450, 72});
  REQUIRE(run<log_sums>(o, true));
  cuda device{nullptr, {o.workspace.data(), static_cast<std::int64_t>(o.workspace.size())}};
  for (const std::int64_t bytes : {o.carry_bytes - 4, o.carry_bytes + 4}) {
    device.carries = {o.carries.data(), bytes};
    CHECK_THROWS_AS(log_sums::forward(device, o), argument_error);
    CHECK_THROWS_AS(log_sums::backward(device, o), argument_error);
  }
  for (std::byte* const address : {static_cast<std::byte*>(nullptr), o.carries.data() + 4}) {
    device.carries = {address, o.carry_bytes};
    CHECK_THROWS_AS(log_sums::backward(device, o), argument_error);
  }
  operands<float> rows({64, 1000, 1});
  cuda_sizing size{.with_carries = true};
  log_sums::forward(size, rows);
  CHECK(size.carry_bytes == 0);
  memory_of<std::byte> unused(64, std::byte{0x77});
  cuda with{nullptr};
  with.carries = {unused.data(), 64};
  log_sums::forward(with, rows);
  log_sums::backward(with, rows);
  must(cudaDeviceSynchronize());
  CHECK(std::all_of(unused.begin(), unused.end(), [](std::byte each) { return each == std::byte{0x77}; }));
  CHECK(mismatch(log_sums(), rows) == "");
}

TEST_CASE("a workspace that is too small is refused, and nothing is written", "[cuda][carries]") {
  operands<float> o({2, 1333, 20});
  cuda_sizing size;
  decayed_sums::backward(size, o);
  REQUIRE(size.bytes > 0);  // for the states with which sweeps come to tiles
  o.workspace.assign(static_cast<std::size_t>(size.bytes), std::byte{0});
  cuda less{nullptr, {o.workspace.data(), size.bytes - 1}}, none{nullptr};
  CHECK_THROWS_AS(decayed_sums::backward(less, o), argument_error);
  CHECK_THROWS_AS(decayed_sums::backward(none, o), argument_error);
  must(cudaDeviceSynchronize());
  for (const memory_of<float>* each : {&o.dx, &o.ddecay})
    CHECK(std::all_of(each->begin(), each->end(), [](float value) { return value == 1e4F; }));
}

TEST_CASE("a scan and its gradient in a graph, replayed on changing data", "[cuda][carries][replay]") {
  CHECK(replay<decayed_sums>(300) == "");
  CHECK(replay<log_sums>(100) == "");
}
