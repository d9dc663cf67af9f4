#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "cuda/rows_programs.hpp"
#include "scandsl/exec/cpu/run.hpp"
#include "support/catch.hpp"

// Rows longer than a block's tile: held by the blocks of a cluster, walked where there are none
// (SCANDSL_TEST_WALKS), and beyond a cluster looked back along; and few long lanes side by side, which are
// cut into pieces. Against the CPU in double.
namespace {

using namespace rows;

enum class data {
  plain,
  wide,
  masked,
  rising,
  stairs,
  growing,
  growing_slowly,
  growing_fast,
  growing_between
};

struct row_operands {
  std::int64_t rows, steps;
  std::vector<std::vector<float>> given;

  row_operands(std::int64_t r, std::int64_t s, data kind) : rows(r), steps(s) {
    std::mt19937 random(static_cast<unsigned>(r * s));
    std::normal_distribution<float> normal;
    const std::size_t count = static_cast<std::size_t>(r * s);
    std::vector<float> values(count), factors(count), cotangents(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto step = static_cast<std::int64_t>(i) % s;
      values[i] = normal(random) * (kind == data::wide ? 40.0F : 1.0F);
      factors[i] = std::abs(std::cos(normal(random)));
      if (kind == data::masked && (step < s / 2 || random() % 3 == 0)) values[i] = -INFINITY;
      if (kind == data::rising) values[i] += static_cast<float>(step) * 0.1F;
      if (kind == data::stairs) values[i] += static_cast<float>(step / 4096) * 30.0F;
      const float growth = kind == data::growing          ? 2.0F
                           : kind == data::growing_slowly ? 1.05F
                           : kind == data::growing_fast   ? 4.0F
                                                          : 0.0F;
      if (growth > 0) factors[i] = step < s / 2 ? growth : 0.5F;
      if (growth > 0 && step < s / 2) values[i] = 0;
      cotangents[i] = std::sin(static_cast<float>(i));
      // Neither what comes from below nor what comes from above is other than 0 where it would overflow.
      if (kind == data::growing_between) {
        factors[i] = step >= s / 4 && step < s / 2 ? 3.0F : 0.5F;
        if (step < s / 2) values[i] = 0;
        if (step >= s / 4) cotangents[i] = 0;
      }
    }
    given = {values, factors, cotangents};
  }
};

struct how {
  double backwards = 0, before = 0, chunk = 0;
  bool strided = false, float_decays = false, with_end = true, in_place = false, little_memory = false;
};

/// How far `mine` is off `right` in units of `size`, beyond what the rounding of what is stored (`unit`,
/// relative) and numbers below `least` account for; 1e30 where one of the two is NaN or infinite alone.
double error_in(double size, double mine, double right, double unit = 0, double least = 0) {
  if (mine == right || (std::isnan(mine) && std::isnan(right))) return 0;
  if (!std::isfinite(mine) || !std::isfinite(right)) return 1e30;
  const double error = std::max(0.0, std::fabs(mine - right) - unit * std::fabs(right) - least);
  return error == 0 ? 0 : std::isfinite(error / size) ? error / size : 1e30;
}

template <const program& P> constexpr bool is_gradient_program = P.find_tensor(make_name("dy")) >= 0;

/// Runs a gradient again with what makes every term its size: its terms are products of factors that are not
/// negative with one cotangent and, of a decayed sum, one x at most.
template <const program& P> void run_on_sizes(const problem& exact, std::vector<std::vector<double>>& wide) {
  if constexpr (&P == &softmax_gradient) {  // share (dy - sum of shares dy), with cotangents up to 1
    const auto at = [](const char* id) { return static_cast<std::size_t>(P.find_tensor(make_name(id))); };
    problem shares = unbound_problem(long_softmax);
    shares.tensors[static_cast<std::size_t>(long_softmax.find_tensor(x.id))] = exact.tensors[at("x")];
    shares.tensors[static_cast<std::size_t>(long_softmax.find_tensor(make_name("y")))] =
        exact.tensors[at("dx")];
    return run<long_softmax>(cpu{}, shares);
  }
  for (int t = 0; t < P.tensors.count; ++t)
    if (P.tensors[t].id == make_name("dy") || P.tensors[t].id == make_name("dend") ||
        (P.find_tensor(decay.id) >= 0 && (P.tensors[t].id == x.id || P.tensors[t].id == start.id)))
      for (double& each : wide[static_cast<std::size_t>(t)]) each = std::fabs(each);
  run<P>(cpu{}, exact);
}

/// The largest error of P's outputs on the GPU: of values in units of 1 + the value, of gradients in units of
/// the terms that an element adds up; 1e30 where one side is NaN or infinite alone.
template <const program& P, class T> double error_of(const row_operands& operands, const how& options) {
  const auto [backwards, exclusive, restart, strided, float_decays, with_end, in_place, little_memory] =
      options;
  const std::int64_t rows = operands.rows, steps = operands.steps;
  problem host = unbound_problem(P), exact = unbound_problem(P);
  std::vector<std::vector<T>> held(static_cast<std::size_t>(P.tensors.count));
  std::vector<float> decays_held;
  std::vector<std::vector<double>> wide(held.size());
  if (in_place)
    held[static_cast<std::size_t>(P.find_tensor(x.id))].resize(static_cast<std::size_t>(rows * steps));
  int inputs = 0;
  for (int t = 0; t < P.tensors.count; ++t) {
    if (P.tensors[t].optional && !with_end) continue;
    const auto at = static_cast<std::size_t>(t);
    const bool lanes = P.tensors[t].axes.count == 1;
    const std::size_t count = static_cast<std::size_t>(lanes ? rows : rows * steps);
    held[at].resize(count);
    wide[at].resize(count);
    if (P.tensors[t].role == tensor_role::input) {
      const bool decays = P.tensors[t].id == decay.id;
      const std::vector<float>& from = operands.given[decays ? 1 : P.tensors[t].id == x.id ? 0 : 2];
      for (std::size_t i = 0; i < count; ++i) {
        const auto lane = i % static_cast<std::size_t>(rows), step = i / static_cast<std::size_t>(rows);
        const std::size_t source = strided && !lanes ? lane * static_cast<std::size_t>(steps) + step : i;
        held[at][i] = T(from[source]);
        wide[at][i] = static_cast<double>(static_cast<float>(held[at][i]));
      }
      ++inputs;
    }
    const auto bind = [&](problem& to, void* memory, dtype type) {
      erased_view view{memory, type, true, lanes ? 1 : 2, {}};
      view.axis[0].push_back({rows, lanes || strided ? 1 : steps});
      if (!lanes) view.axis[1].push_back({steps, strided ? rows : 1});
      to.tensors[at] = {true, view};
    };
    if (float_decays && P.tensors[t].id == decay.id) {
      decays_held = operands.given[1];
      wide[at].assign(decays_held.begin(), decays_held.end());
      bind(host, decays_held.data(), dtype::float32);
    } else {
      const bool over_x = in_place && P.tensors[t].id == make_name("y");
      bind(host, held[over_x ? static_cast<std::size_t>(P.find_tensor(x.id)) : at].data(), dtype_of<T>);
    }
    bind(exact, wide[at].data(), dtype::float64);
  }
  REQUIRE(inputs > 0);
  const auto set = [&](const name& id, double value) {
    if (const int t = P.find_parameter(id); t >= 0)
      host.parameters[static_cast<std::size_t>(t)] = exact.parameters[static_cast<std::size_t>(t)] = value;
  };
  set(back.id, backwards);
  set(before.id, exclusive);
  set(chunk.id, restart);
  if (little_memory)
    CHECK(run_with_little_memory(host) == (std::getenv("SCANDSL_TEST_WALKS") == nullptr));
  else if (float_decays)
    run_mixed_on_gpu(host);
  else
    run_on_gpu<P, T>(host);
  if (in_place)
    held[static_cast<std::size_t>(P.find_tensor(make_name("y")))] =
        held[static_cast<std::size_t>(P.find_tensor(x.id))];
  run<P>(cpu{}, exact);
  const std::vector<std::vector<double>> expected = wide;
  if constexpr (is_gradient_program<P>) run_on_sizes<P>(exact, wide);
  const double unit = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-8;
  const double least = 0x1p-120 * static_cast<double>(steps);  // shares below float's range may be 0
  double worst = 0;
  for (int t = 0; t < P.tensors.count; ++t) {
    if (P.tensors[t].role != tensor_role::output) continue;
    const auto at = static_cast<std::size_t>(t);
    for (std::size_t i = 0; i < held[at].size(); ++i) {
      const double mine = static_cast<double>(static_cast<float>(held[at][i])), right = expected[at][i];
      worst = std::max(worst, is_gradient_program<P> ? error_in(wide[at][i], mine, right, unit, least)
                                                     : error_in(1 + std::fabs(right), mine, right));
    }
  }
  return worst;
}

template <const program& P, class T> double error_of(const row_operands& operands, double backwards) {
  return error_of<P, T>(operands, how{.backwards = backwards});
}

/// What the gradient of a log-sum may be off by. Exponentials err by their arguments' rounding, at most
/// 2^-17, sums of a hundred thousand terms by less. Beside 16-bit operands a frame is rounded to 2^-22 of its
/// size, the size of x, which is up to steps / 10 where x rises; it enters twice.
template <class T> double log_gradient_error(data kind, std::int64_t steps) {
  const double size = kind == data::rising ? 0.1 * static_cast<double>(steps) : 200;
  return 0x1p-14 + (sizeof(T) == 2 ? 0x1p-21 * size : 0.0);
}
/// Of a decayed sum's terms those of up to a hundred steps count, each step a rounding.
constexpr double decay_gradient_error = 0x1p-17;

/// Log-sums of every kind of data.
void check_log_sums(std::int64_t lanes, std::int64_t steps, const how& options) {
  for (const data kind : {data::plain, data::wide, data::masked, data::rising}) {
    CAPTURE(static_cast<int>(kind));
    CHECK(error_of<long_log, float>({lanes, steps, kind}, options) < 1e-5);
    CHECK(error_of<long_log, bfloat16>({lanes, steps, kind}, options) < 0x1p-8);
  }
}
/// ... and their gradients.
void check_log_gradients(std::int64_t lanes, std::int64_t steps, const how& options) {
  for (const data kind : {data::plain, data::wide, data::masked, data::rising}) {
    CAPTURE(static_cast<int>(kind));
    CHECK(error_of<log_gradient, float>({lanes, steps, kind}, options) <
          log_gradient_error<float>(kind, steps));
    CHECK(error_of<log_gradient, bfloat16>({lanes, steps, kind}, options) <
          log_gradient_error<bfloat16>(kind, steps));
  }
}

constexpr std::int64_t lengths[] = {8193, 16384, 20001, 65536, 131072, 140000};

}  // namespace

TEST_CASE("rows of several blocks: scans", "[cuda][rows]") {
  for (const std::int64_t steps : lengths)
    for (const double backwards : {0.0, 1.0}) {
      CAPTURE(steps, backwards);
      for (const data kind : {data::plain, data::wide, data::masked, data::rising}) {
        CAPTURE(static_cast<int>(kind));
        CHECK(error_of<long_log, float>({3, steps, kind}, backwards) < 1e-5);
        CHECK(error_of<long_log, bfloat16>({2, steps, kind}, backwards) < 0x1p-8);
      }
      CHECK(error_of<long_decay, float>({3, steps, data::plain}, backwards) < 1e-4);
      CHECK(error_of<long_decay, bfloat16>({2, steps, data::plain}, backwards) < 0x1p-7);
    }
}

TEST_CASE("rows that end within a tile, and within a vector", "[cuda][rows]") {
  // Several rows a warp, a warp or more each; vectors that are all there, that are missing, and in part.
  for (const std::int64_t steps : {1, 7, 8, 24, 40, 248, 264, 1000, 2000, 2001, 2040, 3000, 4096, 4104, 8184})
    for (const double backwards : {0.0, 1.0}) {
      CAPTURE(steps, backwards);
      const std::int64_t count = steps < 1000 ? 300 : 40;
      for (const data kind : {data::plain, data::wide, data::masked, data::rising}) {
        CAPTURE(static_cast<int>(kind));
        CHECK(error_of<long_log, float>({count, steps, kind}, backwards) < 1e-5);
        CHECK(error_of<long_log, bfloat16>({count + 1, steps, kind}, backwards) < 0x1p-8);
        for (const double before : {0.0, 1.0})
          for (const bool with_end : {false, true}) {
            CAPTURE(before, with_end);
            const how options{.backwards = backwards, .before = before, .with_end = with_end};
            CHECK(error_of<long_carried, float>({count, steps, kind}, options) < 1e-5);
            CHECK(error_of<long_carried, bfloat16>({count + 1, steps, kind}, options) < 0x1p-8);
          }
        CHECK(error_of<log_gradient, float>({count, steps, kind}, backwards) <
              log_gradient_error<float>(kind, steps));
        CHECK(error_of<log_gradient, bfloat16>({count + 1, steps, kind}, backwards) <
              log_gradient_error<bfloat16>(kind, steps));
      }
      CHECK(error_of<long_decay, float>({count, steps, data::plain}, backwards) < 1e-4);
      CHECK(error_of<long_decay, float>({count, steps, data::growing}, 0) < 1e-4);
      CHECK(error_of<decay_gradient, float>({count, steps, data::plain}, backwards) < decay_gradient_error);
    }
}

TEST_CASE("rows that are read twice, in shared memory", "[cuda][rows]") {
  // Of one warp and of several, of a block and of a cluster's, and longer; wherever a row begins and ends.
  for (const std::int64_t steps : {1025, 1032, 2047, 2048, 3001, 4096, 4103, 8191, 8192, 20001, 32768, 50257,
                                   131072, 140001, 400003, 700000}) {
    const std::int64_t count = steps < 10000 ? 11 : 3;
    for (const data kind : {data::plain, data::wide, data::masked, data::rising}) {
      CAPTURE(steps, static_cast<int>(kind));
      for (const bool in_place : {false, true}) {
        CAPTURE(in_place);
        const how options{.in_place = in_place};
        CHECK(error_of<long_softmax, float>({count, steps, kind}, options) < 1e-5);
        CHECK(error_of<long_softmax, bfloat16>({count, steps, kind}, options) < 0x1p-8);
      }
    }
  }
}

TEST_CASE("gradients of rows and strips of one tile and of several, for compute-sanitizer", "[.sanitize]") {
  struct lanes {
    std::int64_t count, steps;
    bool strided;
  };
  for (const auto [count, steps, strided] :
       {lanes{40, 264, false}, lanes{3, 1000, false}, lanes{3, 4099, false}, lanes{2, 20001, false},
        lanes{2, 40001, false}, lanes{72, 50, true}, lanes{72, 450, true}})
    for (const double backwards : {0.0, 1.0}) {
      CAPTURE(count, steps, strided, backwards);
      const how options{.backwards = backwards, .strided = strided};
      for (const data kind : {data::plain, data::wide}) {
        if (backwards == 0) CHECK(error_of<long_softmax, bfloat16>({count, steps, kind}, options) < 0x1p-8);
        CHECK(error_of<log_gradient, float>({count, steps, kind}, options) <
              log_gradient_error<float>(kind, steps));
        CHECK(error_of<log_gradient, bfloat16>({count, steps, kind}, options) <
              log_gradient_error<bfloat16>(kind, steps));
      }
      CHECK(error_of<decay_gradient, float>({count, steps, data::plain}, options) < decay_gradient_error);
    }
}

TEST_CASE("rows of which the last tile would be mostly empty", "[cuda][rows]") {
  // So many that each has fewer threads.
  for (const double backwards : {0.0, 1.0})
    for (const bool with_end : {false, true}) {
      CAPTURE(backwards, with_end);
      const how options{.backwards = backwards, .with_end = with_end};
      CHECK(error_of<long_carried, bfloat16>({4300, 8200, data::plain}, options) < 0x1p-8);
      CHECK(error_of<long_carried, bfloat16>({2200, 9000, data::masked}, options) < 0x1p-8);
      CHECK(error_of<long_decay, float>({2200, 4600, data::plain}, options) < 1e-4);
    }
}

TEST_CASE("stretches that overflow alone, or only together", "[cuda][rows]") {
  // Decays above 1 over sums that are 0: the product of a thread's, a warp's or a block's is infinite.
  struct lanes {
    std::int64_t count, steps;
    bool strided;
  };
  for (const auto [count, steps, strided] :
       {lanes{2, 16384, false}, lanes{2, 40000, false}, lanes{500, 8192, false}, lanes{4000, 700, false},
        lanes{2, 300000, false}, lanes{1, 3000000, false}, lanes{3, 1100000, false}, lanes{4096, 1100, true},
        lanes{64, 16384, true}, lanes{64, 40000, true}})
    for (const data kind : {data::growing, data::growing_slowly, data::growing_fast}) {
      CAPTURE(count, steps, strided, static_cast<int>(kind));
      CHECK(error_of<long_decay, float>({count, steps, kind}, how{.strided = strided}) < 1e-4);
      CHECK(error_of<long_decay, float>({count, steps, kind}, how{.strided = strided, .in_place = true}) <
            1e-4);
    }
}

TEST_CASE("few rows of hundreds of tiles", "[cuda][rows]") {
  // More than the scanner's warps look at in a round; rows that begin and end within one.
  for (const auto& [count, steps] : {std::pair{1, 3000001}, {3, 1100000}, {40, 100003}})
    for (const double backwards : {0.0, 1.0}) {
      CAPTURE(count, steps, backwards);
      for (const data kind : {data::plain, data::wide, data::masked}) {
        CAPTURE(static_cast<int>(kind));
        CHECK(error_of<long_log, float>({count, steps, kind}, backwards) < 1e-5);
        CHECK(error_of<long_log, bfloat16>({count, steps, kind}, backwards) < 0x1p-8);
        const how over_x{.backwards = backwards, .in_place = true};
        CHECK(error_of<long_log, float>({count, steps, kind}, over_x) < 1e-5);
        for (const bool with_end : {false, true}) {
          CAPTURE(with_end);
          const how options{.backwards = backwards, .before = 1, .with_end = with_end};
          CHECK(error_of<long_carried, float>({count, steps, kind}, options) < 1e-5);
        }
      }
      CHECK(error_of<long_decay, float>({count, steps, data::plain}, backwards) < 1e-4);
    }
}

TEST_CASE("tiles that hold a frame, and what precedes them another one", "[cuda][rows]") {
  // Of a look-back in float32: each tile of 4096 steps is folded in its own frame, and cannot be finished in
  // it.
  for (const auto& [count, steps] : {std::pair{1, 200 * 4096}, {3, 40 * 4096 + 7}})
    for (const double backwards : {0.0, 1.0})
      for (const bool in_place : {false, true}) {
        CAPTURE(count, steps, backwards, in_place);
        const how options{.backwards = backwards, .in_place = in_place};
        CHECK(error_of<long_log, float>({count, steps, data::stairs}, options) < 1e-5);
      }
}

TEST_CASE("gradients of rows in chunks, of whole vectors and not", "[cuda][rows]") {
  for (const std::int64_t steps : {2048, 2000, 4095, 16384})
    for (const double chunk : {96.0, 100.0, 1000.0, 1024.0})
      for (const double backwards : {0.0, 1.0}) {
        CAPTURE(steps, chunk, backwards);
        const how options{.backwards = backwards, .chunk = chunk};
        for (const data kind : {data::plain, data::wide})
          CHECK(error_of<log_chunks_gradient, bfloat16>({9, steps, kind}, options) <
                log_gradient_error<bfloat16>(kind, steps));
      }
}

TEST_CASE("rows that restart on the way, with what they end with", "[cuda][rows]") {
  for (const std::int64_t steps : {1025, 1600, 2047, 2048, 4096, 8192, 12288})
    for (const double chunk : {96.0, 700.0, 2048.0})
      for (const double backwards : {0.0, 1.0})
        for (const double before : {0.0, 1.0}) {
          CAPTURE(steps, chunk, backwards, before);
          const how options{.backwards = backwards, .before = before, .chunk = chunk};
          for (const data kind : {data::plain, data::masked}) {
            CAPTURE(static_cast<int>(kind));
            CHECK(error_of<long_carried, float>({9, steps, kind}, options) < 1e-5);
            CHECK(error_of<long_carried, bfloat16>({10, steps, kind}, options) < 0x1p-8);
          }
          CHECK(error_of<carried_gradient, float>({9, steps, data::plain}, options) <
                log_gradient_error<float>(data::plain, steps));
          CHECK(error_of<gradient_in_chunks, float>({9, steps, data::plain}, options) < decay_gradient_error);
        }
}

TEST_CASE("an overflow that factors of 0 follow leaves infinities, and no NaN", "[cuda][rows]") {
  // Tiles of 4096 steps, each of which is fit by itself: after the third factor of 4 the sum is infinite, and
  // then their products are 0.
  for (const std::int64_t tiles : {9, 40, 600})
    for (const std::int64_t begin : {0, 4096, 40 * 4096, 300 * 4096})
      for (const std::int64_t apart : {2048, 4096}) {
        const std::int64_t steps = tiles * 4096;
        if (begin + 5 * 4096 > steps) continue;
        CAPTURE(tiles, begin, apart);
        const auto count = static_cast<std::size_t>(steps);
        std::vector<float> values(count), factors(count, 1.0F), sums(count), in_order(count);
        values[static_cast<std::size_t>(begin)] = 1e37F;
        for (std::int64_t i = 0; i < 3; ++i)
          factors[static_cast<std::size_t>(begin + 4096 + 5 + i * apart)] = 4;
        for (std::int64_t s = begin + 4 * 4096; s < steps; ++s) factors[static_cast<std::size_t>(s)] = 0.5F;
        problem bound = unbound_problem(long_decay);
        const auto bind = [&](const name& id, std::vector<float>& memory) {
          erased_view view{memory.data(), dtype::float32, true, 2, {}};
          view.axis[0].push_back({1, steps});
          view.axis[1].push_back({steps, 1});
          bound.tensors[static_cast<std::size_t>(long_decay.find_tensor(id))] = {true, view};
        };
        bind(x.id, values);
        bind(decay.id, factors);
        bind(make_name("y"), sums);
        run_on_gpu<long_decay, float>(bound);
        float sum = 0;
        for (std::size_t s = 0; s < count; ++s) in_order[s] = sum = sum * factors[s] + values[s];
        CHECK(sums == in_order);
      }
}

TEST_CASE("an infinity and a NaN, tiles apart", "[cuda][rows]") {
  for (const std::int64_t steps : {9 * 4096 + 5, 300 * 4096})
    for (const double backwards : {0.0, 1.0}) {
      CAPTURE(steps, backwards);
      row_operands operands(1, steps, data::plain);
      operands.given[0][static_cast<std::size_t>(steps / 3)] = INFINITY;
      CHECK(error_of<long_log, float>(operands, backwards) < 1e-5);
      operands.given[0][static_cast<std::size_t>(steps / 2)] = NAN;
      CHECK(error_of<long_log, float>(operands, backwards) < 1e-5);
      CHECK(error_of<long_log, bfloat16>(operands, backwards) < 0x1p-8);
    }
  // Each of few lanes side by side has them elsewhere, and some have none: what is not finite in one lane of
  // a thread leaves its other lanes as they are.
  for (const std::int64_t steps : {1500, 40000})
    for (const double backwards : {0.0, 1.0})
      for (const bool over_x : {false, true}) {
        CAPTURE(steps, backwards, over_x);
        row_operands operands(64, steps, data::plain);
        for (std::int64_t lane = 0; lane < 64; lane += 3) {
          operands.given[0][static_cast<std::size_t>(lane * steps + steps * lane / 90)] = INFINITY;
          if (lane % 2 == 0) operands.given[0][static_cast<std::size_t>(lane * steps + steps / 2)] = NAN;
        }
        const how options{.backwards = backwards, .strided = true, .in_place = over_x};
        CHECK(error_of<long_log, float>(operands, options) < 1e-5);
        CHECK(error_of<long_log, bfloat16>(operands, options) < 0x1p-8);
      }
}

TEST_CASE("rows of several blocks: several sweeps", "[cuda][rows]") {
  for (const std::int64_t steps : lengths) {
    CAPTURE(steps);
    for (const data kind : {data::plain, data::wide, data::rising}) {
      CAPTURE(static_cast<int>(kind));
      CHECK(error_of<long_softmax, float>({3, steps, kind}, 0) < 1e-5);
      CHECK(error_of<long_softmax, bfloat16>({2, steps, kind}, 0) < 0x1p-8);
      // Where x rises the log-sum comes to 14000, of which a float32 number holds 2^-11.
      CHECK(error_of<long_shift, float>({3, steps, kind}, 0) < 0x1p-11);
      CHECK(error_of<log_gradient, float>({2, steps, kind}, 1) < log_gradient_error<float>(kind, steps));
      CHECK(error_of<log_gradient, bfloat16>({2, steps, kind}, 0) <
            log_gradient_error<bfloat16>(kind, steps));
    }
    CHECK(error_of<decay_gradient, float>({2, steps, data::plain}, 0) < decay_gradient_error);
    CHECK(error_of<decay_gradient, float>({2, steps, data::plain}, 1) < decay_gradient_error);
  }
}

TEST_CASE("rows that are read twice, once the scan has their last value", "[cuda][rows]") {
  // Of less than a warp, of one, of several, and of several blocks; whole vectors, some missing, and in part.
  for (const std::int64_t steps :
       {1, 8, 24, 264, 1000, 1024, 2000, 2001, 2040, 4104, 8184, 8192, 20000, 32768})
    for (const auto& [strided, in_place] : {std::pair{false, false}, {true, false}, {false, true}})
      for (const data kind : {data::plain, data::wide, data::masked, data::rising}) {
        CAPTURE(steps, strided, in_place, static_cast<int>(kind));
        const std::int64_t count = steps < 8000 ? 70 : 3;
        const how options{.strided = strided, .in_place = in_place};
        CHECK(error_of<long_softmax, float>({count, steps, kind}, options) < 1e-5);
        CHECK(error_of<long_softmax, bfloat16>({count + 1, steps, kind}, options) < 0x1p-8);
      }
}

TEST_CASE("decays in float32 beside bfloat16", "[cuda][rows]") {
  const auto error = [](std::int64_t rows, std::int64_t steps, bool strided) {
    return error_of<long_decay, bfloat16>({rows, steps, data::plain},
                                          {.backwards = 1, .strided = strided, .float_decays = true});
  };
  CHECK(error(500, 2000, false) < 0x1p-7);   // one tile
  CHECK(error(300, 40000, false) < 0x1p-7);  // a walk along each row
  CHECK(error(2, 200000, false) < 0x1p-7);   // few rows
  CHECK(error(4096, 700, true) < 0x1p-7);    // strips
  CHECK(error(64, 20000, true) < 0x1p-7);    // few strips
}

TEST_CASE("a program for one layout runs where operands lie otherwise", "[cuda][rows]") {
  for (const auto& [lanes, steps] : {std::pair{300, 40}, {64, 1025}, {3, 20011}, {2, 300000}, {1, 3000}})
    for (const bool strided : {false, true})
      for (const data kind : {data::plain, data::wide}) {
        CAPTURE(lanes, steps, strided, static_cast<int>(kind));
        const how options{.backwards = 1, .strided = strided};
        CHECK(error_of<carried_along_rows, bfloat16>({lanes, steps, kind}, options) < 0x1p-8);
        CHECK(error_of<carried_along_lanes, bfloat16>({lanes, steps, kind}, options) < 0x1p-8);
        CHECK(error_of<gradient_along_rows, float>({lanes, steps, kind}, options) <
              log_gradient_error<float>(kind, steps));
        CHECK(error_of<gradient_along_lanes, float>({lanes, steps, kind}, options) <
              log_gradient_error<float>(kind, steps));
      }
}

TEST_CASE("few lanes of several sweeps, in pieces", "[cuda][rows]") {
  // Rows longer than a cluster's, and lanes side by side: a part of a tile, and one more than whole pieces.
  struct few {
    std::int64_t lanes, steps;
    bool strided;
  };
  for (const auto [lanes, steps, strided] :
       {few{2, 300000, false}, few{5, 262145, false}, few{1, 1000003, false}, few{64, 20000, true},
        few{64, 1025, true}, few{100, 7001, true}, few{3, 30011, true}, few{8, 65536, true},
        few{1, 400001, true}}) {
    CAPTURE(lanes, steps, strided);
    for (const double backwards : {0.0, 1.0}) {
      CAPTURE(backwards);
      const how along{.backwards = backwards, .strided = strided};
      check_log_gradients(lanes, steps, along);
      for (const data kind : {data::plain, data::growing_between}) {
        CAPTURE(static_cast<int>(kind));
        if (kind == data::growing_between && backwards != 0) continue;
        CHECK(error_of<decay_gradient, float>({lanes, steps, kind}, along) < decay_gradient_error);
        CHECK(error_of<decay_gradient, bfloat16>({lanes, steps, kind}, along) < decay_gradient_error);
      }
      const row_operands decaying{lanes, steps, data::plain};
      CHECK(error_of<lane_decay_gradient, float>(decaying, along) < decay_gradient_error);
      CHECK(error_of<started_lane_decay_gradient, bfloat16>(decaying, along) < decay_gradient_error);
      CHECK(error_of<two_decays, float>(decaying, along) < 1e-4);
      CHECK(error_of<weighted_log_gradient, float>(decaying, along) <
            log_gradient_error<float>(data::plain, steps));
      const how in_chunks{.backwards = backwards, .chunk = 6000, .strided = strided};  // not cut
      CHECK(error_of<gradient_in_chunks, float>(decaying, in_chunks) < decay_gradient_error);
      for (const double before : {0.0, 1.0})
        for (const bool with_end : {false, true}) {
          CAPTURE(before, with_end);
          const how options{backwards, before, 0, strided, false, with_end};
          CHECK(error_of<carried_gradient, float>({lanes, steps, data::plain}, options) <
                log_gradient_error<float>(data::plain, steps));
        }
    }
    const how along{.strided = strided};
    for (const data kind : {data::plain, data::wide, data::rising}) {
      CAPTURE(static_cast<int>(kind));
      CHECK(error_of<long_softmax, float>({lanes, steps, kind}, along) < 1e-5);
      CHECK(error_of<long_softmax, bfloat16>({lanes, steps, kind}, along) < 0x1p-8);
      CHECK(error_of<long_shift, float>({lanes, steps, kind}, along) < 0x1p-11);
    }
    CHECK(error_of<softmax_gradient, float>({lanes, steps, data::plain}, along) < 0x1p-14);
  }
}

TEST_CASE("strips whose threads bring tiles together", "[cuda][rows]") {
  // Lanes that are whole blocks' (so many that strips are not narrow), and eight more, which each thread
  // brings for itself; of tiles of 64 or 128 steps, several with one step more, and several of which the last
  // lacks some.
  for (const std::int64_t lanes : {16448, 16456})
    for (const std::int64_t steps : {129, 300})
      for (const double backwards : {0.0, 1.0}) {
        CAPTURE(lanes, steps, backwards);
        const row_operands plain{lanes, steps, data::plain};
        const how along{.backwards = backwards, .strided = true};
        CHECK(error_of<long_log, bfloat16>({lanes, steps, data::rising}, along) < 0x1p-8);
        CHECK(error_of<long_log, float>({lanes, steps, data::masked}, along) < 1e-5);
        CHECK(error_of<long_decay, bfloat16>(plain, along) < 0x1p-7);
        const how over_x{.backwards = backwards, .strided = true, .in_place = true};
        CHECK(error_of<long_log, bfloat16>({lanes, steps, data::rising}, over_x) < 0x1p-8);
        // Rows of 128 bytes, and of 256 with a decay's.
        const how mixed{.backwards = backwards, .strided = true, .float_decays = true};
        CHECK(error_of<long_decay, bfloat16>(plain, mixed) < 0x1p-7);
        // Exclusive, with a state before and with and without one behind.
        for (const bool with_end : {false, true})
          CHECK(error_of<long_carried, bfloat16>(plain, {backwards, 1, 0, true, false, with_end}) < 0x1p-8);
        CHECK(error_of<log_gradient, bfloat16>(plain, along) <
              log_gradient_error<bfloat16>(data::plain, steps));
        CHECK(error_of<decay_gradient, bfloat16>(plain, along) < decay_gradient_error);
      }
  // Chunks that are lanes of their own, of several tiles, the last one shorter.
  for (const double backwards : {0.0, 1.0}) {
    CAPTURE(backwards);
    const how in_chunks{.backwards = backwards, .chunk = 400, .strided = true};
    CHECK(error_of<long_chunks, float>({8192, 1001, data::plain}, in_chunks) < 1e-4);
    CHECK(error_of<gradient_in_chunks, float>({8192, 1001, data::plain}, in_chunks) < decay_gradient_error);
  }
}

TEST_CASE("narrow strips", "[cuda][rows]") {
  // Of 16 bytes, of 32 and of 64, of one tile and of several; vectors of lanes that are full and that are
  // not.
  struct few {
    std::int64_t lanes, steps;
  };
  for (const auto [lanes, steps] : {few{1, 3001}, few{40, 500}, few{64, 4096}, few{1000, 1025},
                                    few{1021, 2048}, few{4096, 513}, few{8191, 300}})
    for (const double backwards : {0.0, 1.0}) {
      CAPTURE(lanes, steps, backwards);
      const how along{.backwards = backwards, .strided = true};
      check_log_sums(lanes, steps, along);
      check_log_gradients(lanes, steps, along);
      const row_operands plain{lanes, steps, data::plain};
      CHECK(error_of<long_decay, float>(plain, along) < 1e-4);
      CHECK(error_of<long_decay, bfloat16>(plain, along) < 0x1p-7);
      CHECK(error_of<decay_gradient, bfloat16>(plain, along) < decay_gradient_error);
      CHECK(error_of<lane_decay_gradient, float>(plain, along) < decay_gradient_error);
      CHECK(error_of<softmax_gradient, float>(plain, along) < 0x1p-14);
      for (const bool with_end : {false, true}) {
        CAPTURE(with_end);
        const how options{backwards, 1, 0, true, false, with_end};
        CHECK(error_of<long_carried, float>(plain, options) < 1e-5);
        CHECK(error_of<carried_gradient, float>(plain, options) <
              log_gradient_error<float>(data::plain, steps));
      }
    }
}

TEST_CASE("without memory for pieces few lanes of several sweeps are walked", "[cuda][rows]") {
  const how options{.strided = true, .little_memory = true};
  CHECK(error_of<decay_gradient, float>({64, 20000, data::plain}, options) < decay_gradient_error);
}

TEST_CASE("few lanes of several sweeps, for compute-sanitizer", "[.sanitize]") {
  for (const auto& [lanes, steps] : {std::pair{40, 1025}, {8, 12289}}) {  // narrow strips, and pieces
    CAPTURE(lanes, steps);
    CHECK(error_of<lane_decay_gradient, float>({lanes, steps, data::plain}, {.strided = true}) <
          decay_gradient_error);
    CHECK(error_of<long_softmax, float>({lanes, steps, data::plain}, {.strided = true}) < 1e-5);
    CHECK(error_of<log_gradient, float>({lanes, steps, data::masked}, {.strided = true}) <
          log_gradient_error<float>(data::masked, steps));
    CHECK(error_of<decay_gradient, float>({lanes, steps, data::growing_between}, {.strided = true}) <
          decay_gradient_error);
  }
  CHECK(error_of<carried_gradient, float>({2, 140000, data::plain}, {.backwards = 1}) <
        log_gradient_error<float>(data::plain, 140000));
}

TEST_CASE("few lanes side by side, in pieces: scans", "[cuda][rows]") {
  // Vectors of lanes that are full and that are not; one piece more than whole tiles, and a part of one.
  struct few {
    std::int64_t lanes, steps;
  };
  for (const auto [lanes, steps] :
       {few{64, 20000}, few{64, 1025}, few{100, 7001}, few{3, 30011}, few{8, 65536}})
    for (const double backwards : {0.0, 1.0}) {
      CAPTURE(lanes, steps, backwards);
      const how along{.backwards = backwards, .strided = true};
      check_log_sums(lanes, steps, along);
      CHECK(error_of<long_decay, float>({lanes, steps, data::plain}, along) < 1e-4);
      CHECK(error_of<long_decay, bfloat16>({lanes, steps, data::plain}, along) < 0x1p-7);
      const how over_x{.backwards = backwards, .strided = true, .in_place = true};
      CHECK(error_of<long_log, bfloat16>({lanes, steps, data::rising}, over_x) < 0x1p-8);
      CHECK(error_of<long_log, float>({lanes, steps, data::wide}, over_x) < 1e-5);
      CHECK(error_of<long_decay, float>({lanes, steps, data::plain}, over_x) < 1e-4);
      // Sums near 0 of numbers whose magnitudes add up to 0.8 a step: half a unit in the last place of that.
      CHECK(error_of<long_total, float>({lanes, steps, data::plain}, along) <
            0x1p-24 * static_cast<double>(steps));
      CHECK(error_of<long_total, bfloat16>({lanes, steps, data::plain}, along) < 0x1p-7);
      // Chunks of which the last is shorter, and has pieces that are empty.
      const how in_chunks{.backwards = backwards, .chunk = 6000, .strided = true};
      CHECK(error_of<long_chunks, float>({lanes, steps, data::plain}, in_chunks) < 1e-4);
      for (const double before : {0.0, 1.0})
        for (const double chunk : {0.0, 5000.0})
          for (const bool with_end : {false, true}) {
            CAPTURE(before, chunk, with_end);
            const how options{backwards, before, chunk, true, false, with_end};
            CHECK(error_of<long_carried, float>({lanes, steps, data::plain}, options) < 1e-5);
            CHECK(error_of<long_carried, bfloat16>({lanes, steps, data::masked}, options) < 0x1p-8);
          }
    }
}
