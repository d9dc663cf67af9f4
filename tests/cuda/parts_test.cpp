#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

#include "cuda/parts_programs.hpp"
#include "scandsl/exec/cpu/run.hpp"
#include "support/catch.hpp"

// Reductions of lanes that lie side by side, in parts (exec/cuda/parts.cuh), against the CPU in double.
namespace {

using namespace parts;

int runs_of_unlike_parts = 0;

struct lane_case {
  std::int64_t b, n, d;
  bool padded = false;  ///< rows begin where the last one ended and 8 elements further
};

/// The largest error, as a share of what is allowed: a rounding of the result and of the exponentials, and
/// `rounded`, absolute, of what is added up. What has no float32 number is infinite, or 0. As planned for the
/// GPU at hand (0), or for so few multiprocessors that blocks have many parts each, which become shorter.
template <const program& P, class T>
double error_of(const lane_case& of, float scale, float factor, double rounded,
                std::initializer_list<int> multiprocessors = {0}) {
  const std::int64_t row = of.d + (of.padded ? 8 : 0);
  problem host = unbound_problem(P), exact = unbound_problem(P);
  std::vector<std::vector<T>> held(static_cast<std::size_t>(P.tensors.count));
  std::vector<std::vector<double>> wide(held.size());
  std::mt19937 random(static_cast<unsigned>(of.b * of.n * of.d));
  std::normal_distribution<float> normal;
  for (int t = 0; t < P.tensors.count; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const int rank = P.tensors[t].axes.count;
    const std::int64_t steps = rank == 3 ? of.n : 1, sequences = rank > 1 ? of.b : 1;
    held[at].resize(static_cast<std::size_t>(sequences * steps * row));
    if (P.tensors[t].role == tensor_role::input)
      for (T& each : held[at]) each = T(P.tensors[t].id == x.id ? scale * normal(random) : factor);
    if (P.tensors[t].id == decay.id)  // it grows, and is 0 somewhere
      for (std::size_t i = held[at].size() / 2; i < held[at].size(); ++i)
        held[at][i] = T(i % 97 == 0 ? 0.0F : 0.5F);
    wide[at].assign(held[at].size(), 0.0);
    for (std::size_t i = 0; i < held[at].size(); ++i)
      wide[at][i] = static_cast<double>(static_cast<float>(held[at][i]));
    const auto bind = [&](problem& to, void* memory, dtype type) {
      erased_view view{memory, type, true, rank, {}};
      if (rank > 1) view.axis[0].push_back({of.b, steps * row});
      if (rank > 2) view.axis[1].push_back({of.n, row});
      view.axis[rank - 1].push_back({of.d, 1});
      to.tensors[at] = {true, view};
    };
    bind(host, held[at].data(), dtype_of<T>);
    bind(exact, wide[at].data(), dtype::float64);
  }
  run<P>(cpu{}, exact);
  double worst = 0;
  const auto compare = [&](int t) {
    const auto at = static_cast<std::size_t>(t);
    const bool total = P.tensors[t].axes.count < 3;
    for (std::size_t i = 0; i < held[at].size(); ++i) {
      if (of.padded && static_cast<std::int64_t>(i) % row >= of.d) continue;
      const double mine = static_cast<double>(static_cast<float>(held[at][i]));
      double right = wide[at][i];
      if (std::fabs(right) > static_cast<double>(std::numeric_limits<float>::max()))
        right = std::copysign(HUGE_VAL, right);
      if (mine == right || (std::isnan(mine) && std::isnan(right))) continue;
      const double relative = 2e-5 + (sizeof(T) == 2 ? 0x1p-8 : 0.0),
                   allowed = relative * std::fabs(right) + (total ? rounded : 0.0) + 0x1p-126,
                   error = std::fabs(mine - right) / allowed;
      worst = std::isfinite(error) ? std::max(worst, error) : 1e30;
    }
  };
  const auto for_each_output = [&](auto&& f) {
    for (int t = 0; t < P.tensors.count; ++t)
      if (P.tensors[t].role == tensor_role::output) f(t);
  };
  for (const int each : multiprocessors) {
    for_each_output([&](int t) {
      std::vector<T>& output = held[static_cast<std::size_t>(t)];
      std::fill(output.begin(), output.end(), T(0.0F));
    });
    if (run_on_gpu<P, T>(host, each) > 1) ++runs_of_unlike_parts;
    for_each_output(compare);
  }
  return worst;
}

constexpr lane_case cases[] = {{12, 1000, 256}, {3, 2049, 100}, {2, 5000, 24},       {7, 640, 136},
                               {1, 9001, 1000}, {5, 2000, 17},  {3, 1500, 60, true}, {40, 300, 2048}};

template <const program& P> void compare(float scale, float factor, double rounded_a_step = 0) {
  runs_of_unlike_parts = 0;
  for (const lane_case& of : cases) {
    CAPTURE(of.b, of.n, of.d, scale, factor);
    const double rounded = 1e-5 + rounded_a_step * static_cast<double>(of.n);
    CHECK(error_of<P, float>(of, scale, factor, rounded, {0, 1, 3}) <= 1);
    CHECK(error_of<P, bfloat16>(of, scale, factor, rounded, {0, 1, 3}) <= 1);
  }
  CHECK(runs_of_unlike_parts > 4);
}

using four_extents = std::array<std::int64_t, 4>;

/// The largest error of P's sums of an x of these extents, of which y has the one at `kept`, in units of
/// 2^-20 of what the magnitudes add up to. There may be a w, and a z, along the first one.
template <const program& P>
double error_of_sums(const four_extents& extents, std::size_t kept, int multiprocessors) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  four_extents strides = {0, 0, 0, 1};
  for (std::size_t i = 3; i-- > 0;) strides[i] = strides[i + 1] * extents[i + 1];
  std::vector<float> x_values(static_cast<std::size_t>(strides[0] * extents[0])),
      y_values(static_cast<std::size_t>(extents[kept]));
  std::vector<double> right(y_values.size()), size(y_values.size());
  for (std::size_t i = 0; i < x_values.size(); ++i) {
    const auto each = static_cast<double>(x_values[i] = normal(random));
    const auto to = static_cast<std::size_t>(static_cast<std::int64_t>(i) / strides[kept] % extents[kept]);
    right[to] += each;
    size[to] += std::fabs(each);
  }
  problem host = unbound_problem(P);
  erased_view view{x_values.data(), dtype::float32, true, 4, {}};
  for (std::size_t i = 0; i < 4; ++i) view.axis[i].push_back({extents[i], strides[i]});
  host.tensors[static_cast<std::size_t>(P.find_tensor(x.id))] = {true, view};
  host.tensors[static_cast<std::size_t>(P.find_tensor(make_name("y")))] = {
      true, {y_values.data(), dtype::float32, true, 1, {dims{{extents[kept], 1}}}}};
  std::vector<float> beside(static_cast<std::size_t>(2 * extents[0]), 1.0F);
  for (const auto& [id, at] : {std::pair{"w", std::size_t{0}}, {"z", beside.size() / 2}})
    if (const int t = P.find_tensor(make_name(id)); t >= 0)
      host.tensors[static_cast<std::size_t>(t)] = {
          true, {beside.data() + at, dtype::float32, true, 1, {dims{{extents[0], 1}}}}};
  run_on_gpu<P, float>(host, multiprocessors);
  double worst = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const double error = std::fabs(static_cast<double>(y_values[i]) - right[i]) / (0x1p-20 * size[i]);
    if (!(error <= worst)) worst = std::isnan(error) ? 1e30 : error;
  }
  return worst;
}

}  // namespace

TEST_CASE("log-sums in parts, in frames and beyond", "[cuda][parts]") {
  for (const float scale : {1.0F, 50.0F}) compare<log_total>(scale, 0);
}
TEST_CASE("reductions in order, in parts that may overflow", "[cuda][parts]") {
  for (const float factor : {0.9F, 3.0F}) compare<faded>(1, factor);
}
TEST_CASE("a sum in parts, beside what is written at every step", "[cuda][parts]") {
  compare<squares>(1, 0, 0x1p-24);
}
TEST_CASE("a sum in parts, which another kernel adds up", "[cuda][parts]") {
  compare<of_all>(1, 0, 12 * 0x1p-24);
  for (const lane_case& of : cases) {
    CAPTURE(of.b, of.n, of.d);
    CHECK(error_of<of_all, double>(of, 1, 0, 1e-11, {0, 1}) <= 1);
  }
}
TEST_CASE("sums of sums of sums, two of them by one kernel where an axis is one long", "[cuda][parts]") {
  // Along rows and along strips, in parts and not.
  for (const int multiprocessors : {0, 1, 132}) {
    CAPTURE(multiprocessors);
    for (const auto& [b, n, m, d] : {four_extents{1, 300, 7, 5},
                                     {2, 300, 7, 5},
                                     {1, 40, 700, 1},
                                     {3, 9, 2, 1},
                                     {1, 2, 5000, 64},
                                     {1, 3, 20000, 24},
                                     {1, 3000, 100, 24},
                                     {2, 3000, 100, 24},
                                     {1, 90000, 3, 2}}) {
      CAPTURE(b, n, m, d);
      CHECK(error_of_sums<of_three>({b, n, m, d}, 3, multiprocessors) <= 1);
      CHECK(error_of_sums<of_parts>({n, b, m, d}, 3, multiprocessors) <= 1);
      CHECK(error_of_sums<of_inner>({d, n, b, m}, 0, multiprocessors) <= 1);
    }
  }
}
TEST_CASE("a softmax along a strided axis whose reduction is a kernel of its own", "[cuda][parts]") {
  for (const float scale : {1.0F, 50.0F}) compare<shares>(scale, 0);
}
TEST_CASE("parts, for compute-sanitizer", "[.sanitize]") {
  CHECK(error_of<log_total, bfloat16>({2, 600, 40}, 50, 0, 1e-5) <= 1);
  CHECK(error_of<faded, float>({2, 600, 40}, 1, 3, 1e-5) <= 1);
  CHECK(error_of<of_all, bfloat16>({2, 600, 40}, 1, 0, 1e-3) <= 1);
  CHECK(error_of<log_total, bfloat16>({12, 1000, 256}, 1, 0, 1e-5, {1}) <= 1);
  CHECK(error_of<of_all, bfloat16>({12, 1000, 256}, 1, 0, 1e-3, {1}) <= 1);
}
