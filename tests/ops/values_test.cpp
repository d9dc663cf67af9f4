#include "ops/op_case.hpp"
#include "scandsl/ops/chunk_cumsum_decay.hpp"
#include "scandsl/ops/decayed_sum.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "support/catch.hpp"

using namespace op_test;

namespace {

void check_logcumsumexp(const op_case& c, unsigned seed) {
  INFO(c);
  const auto call = [&](const array& x, const array& y, const ops::scan_options& options) {
    run_on_device([&](auto& device) { ops::logcumsumexp(device, x, c.dim, y, options); });
  };
  const auto scan = [](const std::vector<double>& x, std::int64_t, const reference::options& o) {
    return reference::log_cumulative_sum_exp(x, o);
  };
  CHECK(check_op<ops::scan_options>(c, seed, -4, 4, scan, call, tolerance_of(c)) == "");
}

/// The shapes of a decay that broadcasts against x.
std::vector<extent_list> decay_shapes(const extent_list& extents) {
  extent_list ones(extents.size(), 1), half = extents;
  for (std::size_t i = 0; i < half.size(); i += 2) half[i] = 1;
  return {extents, ones, half, {extents.back()}, {1}, {}};
}

/// The decay along one column of x.
std::vector<double> decay_of(const op_case& c, std::int64_t column, const std::vector<double>& decay,
                             const extent_list& extents) {
  const reference::columns columns = c.columns();
  std::vector<double> result;
  for (std::int64_t t = 0; t < c.length(); ++t)
    result.push_back(decay[place_in_broadcast(c, extents, static_cast<std::int64_t>(columns.at(column, t)))]);
  return result;
}

/// With a decay of the shape and in the type that the seed chooses.
void check_decayed_sum(const op_case& c, unsigned seed) {
  const std::vector<extent_list> shapes = decay_shapes(c.extents);
  const extent_list& decay_extents = shapes[seed % shapes.size()];
  const bool log_decay = seed % 3 == 1;
  const dtype decay_type = seed % 2 == 0 ? c.type : dtype::float32;
  std::mt19937 random(seed);
  const std::int64_t decays = count_of(decay_extents);
  operand_memory decay(random, c, decay_type, decay_extents, false,
                       log_decay ? random_values(random, decays, -2, 0)
                                 : random_values(random, decays, 0, 1));
  const std::vector<double> held = decay.block.read();
  INFO(c << " decay of rank " << decay_extents.size() << (log_decay ? " in logarithms" : ""));
  const auto call = [&](const array& x, const array& y, ops::decayed_sum_options options) {
    options.log_decay = log_decay;
    run_on_device([&](auto& device) { ops::decayed_sum(device, x, decay.view(), c.dim, y, options); });
  };
  const auto scan = [&](const std::vector<double>& x, std::int64_t column, const reference::options& o) {
    std::vector<double> a = decay_of(c, column, held, decay_extents);
    for (double& each : a) each = log_decay ? std::exp(each) : each;
    return reference::decayed_sum(a, x, o);
  };
  CHECK(check_op<ops::decayed_sum_options>(c, seed, -2, 2, scan, call, tolerance_of(c)) == "");
}

}  // namespace

TEST_CASE("logcumsumexp over shapes, dimensions, types and options", "[ops][logcumsumexp]") {
  for_each_case(check_logcumsumexp);
}

TEST_CASE("decayed_sum over shapes, types, options and broadcasts of the decay", "[ops][decayed_sum]") {
  for_each_case(check_decayed_sum);
}

TEST_CASE("packed sequences longer than tiles, of lanes that lie side by side", "[ops]") {
  // On the GPU a block's threads bring such tiles together where the lanes fill whole blocks (256), each its
  // own vectors where they do not (264), or elements where lanes begin anywhere (261). Sequences end within
  // tiles; one is empty.
  unsigned seed = 0;
  for (const std::int64_t lanes : {256, 264, 261})
    for (const dtype type : {dtype::float32, dtype::bfloat16})
      for (const bool reverse : {false, true})
        for (const bool exclusive : {false, true}) {
          op_case c{{1400, lanes}, 0};
          c.offsets = {0, 5, 5, 700, 1000, 1003, 1400};
          c.type = c.out_type = type;
          c.reverse = reverse;
          c.exclusive = exclusive;
          c.seeded = ++seed % 3 != 0;
          check_logcumsumexp(c, seed + (reverse ? 1 : 0));
          check_decayed_sum(c, 6 * seed);      // a decay for each element, in the type of x
          check_decayed_sum(c, 6 * seed + 1);  // one for all, in logarithms
        }
}

TEST_CASE("chunk_cumsum_decay over shapes, types, chunks and options", "[ops][chunk_cumsum_decay]") {
  for_each_case([](op_case c, unsigned seed) {
    const std::int64_t chunks[] = {1, 3, 128, 300, 100000};
    c.chunk = chunks[seed % 5];
    c.seeded = false;
    if (seed % 3 == 0) c.out_type = c.type == dtype::float64 ? dtype::float64 : dtype::float32;
    INFO(c);
    const auto call = [&](const array& x, const array& y, ops::chunk_cumsum_options options) {
      options.dim = c.dim;
      options.chunk_size = c.chunk;
      run_on_device([&](auto& device) { ops::chunk_cumsum_decay(device, x, y, options); });
    };
    const auto scan = [](const std::vector<double>& x, std::int64_t, const reference::options& o) {
      return reference::cumulative_sum(x, o);
    };
    CHECK(check_op<ops::chunk_cumsum_options>(c, seed, -2, 2, scan, call, tolerance_of(c)) == "");
  });
}

TEST_CASE("the defaults of chunk_cumsum_decay: dimension 1, chunks of 128", "[ops][chunk_cumsum_decay]") {
  memory_of<float> ones(300, 1), y(300);
  run_on_device([&](auto& device) {
    ops::chunk_cumsum_decay(device, array::of(ones.data(), {1, 300}), array::of(y.data(), {1, 300}));
  });
  CHECK(y[127] == 128);
  CHECK(y[128] == 1);
  CHECK(y[299] == 44);
  ops::chunk_cumsum_options backwards;
  backwards.reverse = true;
  run_on_device([&](auto& device) {
    ops::chunk_cumsum_decay(device, array::of(ones.data(), {1, 300}), array::of(y.data(), {1, 300}),
                            backwards);
  });
  CHECK(y[0] == 128);
  CHECK(y[127] == 1);
  CHECK(y[256] == 44);  // the last chunk is the short one, in both directions
  CHECK(y[299] == 1);
}

TEST_CASE("one token at a time, by states, is the whole sequence", "[ops]") {
  const std::int64_t batch = 5, length = 20;
  std::mt19937 random(8);
  memory_of<float> x, decay(static_cast<std::size_t>(batch), 0.75F), whole(100), step(100), state(5, 0.0F),
      last(5);
  for (const double each : random_values(random, batch * length, -3, 3))
    x.push_back(static_cast<float>(each));
  const auto row = [&](memory_of<float>& values, std::int64_t t) {
    return array::of(values.data() + t, {batch, 1}, {length, 1});
  };
  ops::decayed_sum_options options;
  options.final_state = array::of(last.data(), {batch});
  run_on_device([&](auto& device) {
    ops::decayed_sum(device, array::of(x.data(), {batch, length}), array::of(decay.data(), {batch, 1}), 1,
                     array::of(whole.data(), {batch, length}), options);
  });
  for (std::int64_t t = 0; t < length; ++t) {
    options.initial_state = options.final_state = array::of(state.data(), {batch});  // in place
    run_on_device([&](auto& device) {
      ops::decayed_sum(device, row(x, t), array::of(decay.data(), {batch, 1}), 1, row(step, t), options);
    });
  }
  if (on_gpu) {  // which adds in another order
    CHECK(mismatch("y", dtype::float32, {whole.begin(), whole.end()}, {step.begin(), step.end()}, 4e-6) ==
          "");
    CHECK(mismatch("state", dtype::float32, {last.begin(), last.end()}, {state.begin(), state.end()}, 4e-6) ==
          "");
  } else {
    CHECK(step == whole);
    CHECK(state == last);
  }
}

TEST_CASE("logcumsumexp is range-safe", "[ops][logcumsumexp]") {
  const float infinity = std::numeric_limits<float>::infinity();
  memory_of<float> x = {-infinity, -infinity, -1e4F, 1e4F, 0, infinity, -infinity, 1}, y(8), state(1);
  ops::scan_options options;
  options.final_state = array::of(state.data(), {});
  run_on_device([&](auto& device) {
    ops::logcumsumexp(device, array::of(x.data(), {8}), 0, array::of(y.data(), {8}), options);
  });
  CHECK(y == memory_of<float>{-infinity, -infinity, -1e4F, 1e4F, 1e4F, infinity, infinity, infinity});
  CHECK(state[0] == infinity);
  x[2] = std::numeric_limits<float>::quiet_NaN();
  run_on_device([&](auto& device) {
    ops::logcumsumexp(device, array::of(x.data(), {8}), 0, array::of(y.data(), {8}), options);
  });
  CHECK(y[1] == -infinity);
  for (std::size_t t = 2; t < 8; ++t) CHECK(std::isnan(y[t]));
  CHECK(std::isnan(state[0]));
}

TEST_CASE("logcumsumexp of numbers that lie far apart, of infinities and of NaN", "[ops][logcumsumexp]") {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto replaced = [](double by, std::size_t first, std::size_t distance) {
    return [=](std::vector<double>& x) {
      for (std::size_t i = first; i < x.size(); i += distance) x[i] = by;
    };
  };
  const std::function<void(std::vector<double>&)> changes[] = {
      [](auto&) {},
      replaced(-infinity, 0, 2),
      replaced(-infinity, 0, 1),
      replaced(infinity, 1709, 4001),
      replaced(std::numeric_limits<double>::quiet_NaN(), 1709, 4001),
      [&](std::vector<double>& x) {
        replaced(-infinity, 0, 3)(x);
        replaced(infinity, 2903, 4001)(x);
        replaced(std::numeric_limits<double>::quiet_NaN(), 3907, 4001)(x);
      }};
  unsigned seed = 0;
  for (const extent_list& extents : {extent_list{2, 600, 5}, {1, 5000}, {5000, 3}, {300, 40}})
    for (int dim = 0; dim < static_cast<int>(extents.size()); ++dim)
      for (const dtype type : {dtype::float32, dtype::float64, dtype::bfloat16, dtype::float16})
        for (const auto& change : changes) {
          op_case c{extents, dim};
          ++seed;
          c.type = c.out_type = type;
          c.reverse = seed % 5 == 0;
          c.exclusive = seed % 7 == 0;
          c.seeded = seed % 3 == 0;
          c.layout_seed = seed % 4 == 1 ? seed : 0;
          INFO(c << " change " << &change - changes);
          const auto call = [&](const array& x, const array& y, const ops::scan_options& options) {
            run_on_device([&](auto& device) { ops::logcumsumexp(device, x, c.dim, y, options); });
          };
          const auto scan = [](const std::vector<double>& x, std::int64_t, const reference::options& o) {
            return reference::log_cumulative_sum_exp(x, o);
          };
          CHECK(check_op<ops::scan_options>(c, seed, -1e4, 1e4, scan, call, tolerance_of(c), change) == "");
        }
}

TEST_CASE("the ops work in place", "[ops]") {
  memory_of<float> x = {1, 2, 3, 4}, decay = {1, 1, 1, 1};
  const array view = array::of(x.data(), {4});
  run_on_device([&](auto& device) { ops::decayed_sum(device, view, array::of(decay.data(), {4}), 0, view); });
  CHECK(x == memory_of<float>{1, 3, 6, 10});
  ops::chunk_cumsum_options chunks;
  chunks.dim = 0;
  chunks.chunk_size = 2;
  run_on_device([&](auto& device) { ops::chunk_cumsum_decay(device, view, view, chunks); });
  CHECK(x == memory_of<float>{1, 4, 6, 16});
}
