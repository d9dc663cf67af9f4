#include <cstring>

#include "ops/op_case.hpp"
#include "scandsl/ops/decayed_sum.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "scandsl/ops/lrpe_cosine.hpp"
#include "scandsl/ops/md_lrpe_cosine.hpp"
#include "support/catch.hpp"

// Gradients have the same bits in every run, on any number of threads: sums for parameters, too.

using namespace op_test;

namespace {

template <class T> memory_of<T> drawn(std::mt19937& random, std::int64_t count, double low, double high) {
  memory_of<T> result;
  for (const double each : random_values(random, count, low, high))
    result.push_back(static_cast<T>(static_cast<float>(each)));
  return result;
}

/// Whether run(threads) leaves the same bytes in every one of the results, which are spoilt before each run.
template <class Run, class... T> void check_reruns(Run run, memory_of<T>&... results) {
  std::vector<std::vector<std::byte>> first;
  for (const int threads : {1, 2, 1, 2, 3}) {
    (std::memset(static_cast<void*>(results.data()), 0x7b, results.size() * sizeof(T)), ...);
    run(threads);
    std::vector<std::vector<std::byte>> now;
    const auto keep = [&](const void* data, std::size_t bytes) {
      const auto* const begin = static_cast<const std::byte*>(data);
      now.emplace_back(begin, begin + bytes);
    };
    (keep(results.data(), results.size() * sizeof(T)), ...);
    if (first.empty()) first = now;
    INFO(threads << " threads");
    CHECK(now == first);
  }
}

const std::vector<extent_list> shapes = {{3, 5000},   {70, 333},    {1, 30000},
                                         {1, 300000}, {2, 700, 24}, {1, 1500, 8}};

template <class T> void check_log_sums() {
  std::mt19937 random(41);
  for (const extent_list& extents : shapes) {
    CAPTURE(extents);
    memory_of<T> x = drawn<T>(random, count_of(extents), -4, 4),
                 dy = drawn<T>(random, count_of(extents), -1, 1), dx(x.size());
    ops::scan_gradients gradients;
    gradients.y_cotangent = array::of(dy.data(), extents);
    gradients.x_gradient = array::of(dx.data(), extents);
    check_reruns(
        [&](int threads) {
          run_on_device(
              [&](auto& device) {
                ops::logcumsumexp_backward(device, array::of(x.data(), extents), 1, gradients);
              },
              threads);
        },
        dx);
  }
}

/// A decay for each element; for each step or lane; and one for all, whose gradient is a sum over everything.
template <class T> void check_decayed_sums() {
  std::mt19937 random(42);
  for (const extent_list& extents : shapes) {
    extent_list steps(extents.size(), 1), lanes = extents;
    steps[1] = extents[1], lanes[1] = 1;
    for (const extent_list& of_decay : {extents, steps, lanes, extent_list{1}}) {
      CAPTURE(extents, of_decay);
      memory_of<T> x = drawn<T>(random, count_of(extents), -2, 2),
                   decay = drawn<T>(random, count_of(of_decay), 0.5, 1),
                   dy = drawn<T>(random, count_of(extents), -1, 1), dx(x.size()), ddecay(decay.size());
      ops::decayed_sum_gradients gradients;
      gradients.y_cotangent = array::of(dy.data(), extents);
      gradients.x_gradient = array::of(dx.data(), extents);
      gradients.decay_gradient = array::of(ddecay.data(), of_decay);
      check_reruns(
          [&](int threads) {
            run_on_device(
                [&](auto& device) {
                  ops::decayed_sum_backward(device, array::of(x.data(), extents),
                                            array::of(decay.data(), of_decay), 1, gradients);
                },
                threads);
          },
          dx, ddecay);
    }
  }
}

template <class T> void check_angles() {
  std::mt19937 random(43);
  for (const auto& [extents, of_theta] : {std::pair{extent_list{3, 200, 4, 32}, extent_list{4, 32}},
                                          {{2, 1000, 3, 17}, {1, 17}},
                                          {{1, 400, 5, 64}, {5, 1}}})
    for (const auto& [act, act_dim] : {std::pair{ops::lrpe_activation::none, -1},
                                       {ops::lrpe_activation::softmax, -1},
                                       {ops::lrpe_activation::softmax, 1}}) {
      CAPTURE(extents, of_theta, act_dim);
      extent_list encoded = extents;
      encoded[3] *= 2;
      memory_of<T> x = drawn<T>(random, count_of(extents), -2, 2),
                   dy = drawn<T>(random, count_of(encoded), -1, 1), dx(x.size());
      memory_of<float> theta = drawn<float>(random, count_of(of_theta), 0, 1), dtheta(theta.size());
      ops::lrpe_options options;
      options.act = act;
      options.act_dim = act_dim;
      ops::lrpe_gradients gradients;
      gradients.y_cotangent = array::of(dy.data(), encoded);
      gradients.x_gradient = array::of(dx.data(), extents);
      gradients.theta_gradient = array::of(dtheta.data(), of_theta);
      check_reruns(
          [&](int threads) {
            run_on_device(
                [&](auto& device) {
                  ops::lrpe_cosine_backward(device, array::of(x.data(), extents),
                                            array::of(theta.data(), of_theta), gradients, options);
                },
                threads);
          },
          dx, dtheta);
    }
}

template <class T> void check_grids() {
  std::mt19937 random(44);
  for (const auto& [tokens, features] :
       {std::pair{extent_list{300}, 32}, {extent_list{20, 15}, 17}, {extent_list{5, 7, 9}, 64}})
    for (const std::int64_t extra : {0, 10}) {
      CAPTURE(tokens, features, extra);
      const auto axes = static_cast<std::int64_t>(tokens.size());
      const extent_list extents{3, 4, extra + count_of(tokens), features},
          of_theta{4, (features + axes - 1) / axes};
      extent_list encoded = extents;
      encoded[3] *= 2;
      memory_of<T> x = drawn<T>(random, count_of(extents), -2, 2),
                   dy = drawn<T>(random, count_of(encoded), -1, 1), dx(x.size());
      memory_of<float> theta = drawn<float>(random, count_of(of_theta), 0, 1), dtheta(theta.size());
      ops::lrpe_gradients gradients;
      gradients.y_cotangent = array::of(dy.data(), encoded);
      gradients.x_gradient = array::of(dx.data(), extents);
      gradients.theta_gradient = array::of(dtheta.data(), of_theta);
      ops::md_lrpe_options options;
      options.extra_tokens = extra;
      check_reruns(
          [&](int threads) {
            run_on_device(
                [&](auto& device) {
                  ops::md_lrpe_cosine_backward(device, array::of(x.data(), extents),
                                               array::of(theta.data(), of_theta), tokens, gradients, options);
                },
                threads);
          },
          dx, dtheta);
    }
}

}  // namespace

TEST_CASE("logcumsumexp's gradient has the same bits in every run", "[ops][gradient][reruns]") {
  check_log_sums<float>();
  check_log_sums<bfloat16>();
}

TEST_CASE("decayed_sum's gradients have the same bits in every run", "[ops][gradient][reruns]") {
  check_decayed_sums<float>();
  check_decayed_sums<bfloat16>();
}

TEST_CASE("lrpe_cosine's gradients have the same bits in every run", "[ops][gradient][reruns]") {
  check_angles<float>();
  check_angles<bfloat16>();
}

TEST_CASE("md_lrpe_cosine's gradients have the same bits in every run", "[ops][gradient][reruns]") {
  check_grids<float>();
  check_grids<bfloat16>();
}
