#include <cmath>

#include "exec/sweep_programs.hpp"
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"

using namespace exec_test;

namespace {

void check_same_bits(const compiled& program_, const scan_case& c) {
  const operands given = make_operands(program_, c, 3);
  const tensors once = run_on_cpu(program_, given, cpu{1}).outputs;
  for (const int threads : {1, 2, 3, 7, 0}) {
    INFO(program_.p->id.view() << " " << c << " threads " << threads);
    CHECK(same_bits(once, run_on_cpu(program_, given, cpu{threads}).outputs));
  }
}

constexpr axis<"r"> r;
constexpr axis<"t"> t;
constexpr axis<"k"> k;
constexpr tensor<"x"> turned_x;
constexpr tensor<"theta"> theta;
constexpr tensor<"y"> turned_y;
inline constexpr auto turned =
    op<"turned">(out<"y">(r, t, k) = turned_x(r, t, k) * cos_of_product(index(t), theta(k)));

inline constexpr auto dturned = gradient(turned);
constexpr tensor<"dy"> dturned_y;
constexpr tensor<"dx"> dturned_x;
constexpr tensor<"dtheta"> dtheta;

template <class T>
std::vector<T> turn(std::int64_t rows, std::int64_t steps, std::int64_t lanes, int threads) {
  const auto count = static_cast<std::size_t>(rows * steps * lanes);
  std::vector<T> given(count), angles(static_cast<std::size_t>(lanes)), result(count);
  for (std::size_t i = 0; i < count; ++i) given[i] = static_cast<T>(std::sin(static_cast<double>(i)));
  for (std::size_t i = 0; i < angles.size(); ++i)
    angles[i] = static_cast<T>(1 / (1.0 + static_cast<double>(i)));
  run<turned>(cpu{threads}, turned_x = view(given.data(), rows, steps, lanes),
              theta = view(angles.data(), lanes), turned_y = view(result.data(), rows, steps, lanes));
  // ... and its gradients, theta's a sum along what turns.
  std::vector<T> dx(count), summed(angles.size());
  run<dturned>(cpu{threads}, turned_x = view(given.data(), rows, steps, lanes),
               theta = view(angles.data(), lanes), dturned_y = view(result.data(), rows, steps, lanes),
               dturned_x = view(dx.data(), rows, steps, lanes), dtheta = view(summed.data(), lanes));
  result.insert(result.end(), dx.begin(), dx.end());
  result.insert(result.end(), summed.begin(), summed.end());
  return result;
}

}  // namespace

TEST_CASE("what turns from step to step gives the same bits on any number of threads", "[exec][threads]") {
  // Packs that leave tiles of 85 or 102 steps, and of 73; rows that are longer than what threads share, and
  // so long that few threads share them in longer parts.
  struct sizes {
    std::int64_t rows, steps, lanes;
  };
  for (const auto [rows, steps, lanes] :
       {sizes{1, 512, 96}, sizes{1, 1024, 128}, sizes{3, 129, 72}, sizes{2, 1000, 44}, sizes{1, 1, 50},
        sizes{4, 9, 1}, sizes{2, 9001, 17}, sizes{2, 8200, 32}})
    for (const int threads : {2, 3, 8, 9, 16}) {
      CAPTURE(rows, steps, lanes, threads);
      // (In brackets: nobody reads half a million numbers.)
      CHECK((turn<float>(rows, steps, lanes, 1) == turn<float>(rows, steps, lanes, threads)));
      CHECK((turn<double>(rows, steps, lanes, 1) == turn<double>(rows, steps, lanes, threads)));
    }
}

TEST_CASE("threads share long walks in parts, longer ones where nothing lies between steps",
          "[exec][threads]") {
  const auto part = [](int threads, std::int64_t steps, std::int64_t lanes, bool rows_between = false) {
    constexpr std::int64_t rows = 2;
    float* const none = nullptr;
    const auto whole = rows_between ? view(none, dim{rows, lanes}, dim{steps, rows * lanes}, dim{lanes, 1})
                                    : view(none, dim{rows, steps * lanes}, dim{steps, lanes}, dim{lanes, 1});
    const cpu_plan planned = plan<turned>(cpu_device{threads, 16}, turned_x = whole,
                                          theta = shape<float>(lanes), turned_y = whole);
    return planned.kernels[0].plan.nests.front().steps();
  };
  CHECK(part(2, 8192, 32) == 1024);
  CHECK(part(16, 8192, 32) == 128);  // else too few for each
  CHECK(part(1, 9001, 32) == 512);   // else a tenth is left over
  CHECK(part(2, 8192, 17) == 128);   // packs of other lanes then
  CHECK(part(2, 8192, 1) == 128);
  CHECK(part(2, 8192, 32, true) == 128);
  CHECK(part(2, 100, 32) == 100);
}

TEST_CASE("every run gives the same bits, on any number of threads", "[exec][threads]") {
  for (const compiled* each :
       {&simple_scans, &statistics_scans, &decayed_scans, &dependent_scans, &softmax_scans}) {
    check_same_bits(*each, {37, 50});
    check_same_bits(*each, {5, 300, 128});
    check_same_bits(*each, {1, 40001, 0, 3, true, false, true, true, {0, 36000, 36000, 40001}});
  }
  check_same_bits(mixed_axes, {3, 40, 0, 20});
  check_same_bits(mixed_axes, {1, 40000, 0, 2});
  check_same_bits(dependent_scans, {1, 130000});  // several batches of blocks for each number of threads
}
