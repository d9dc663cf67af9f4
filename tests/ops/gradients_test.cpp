#include <algorithm>

#include "ops/gradient_case.hpp"
#include "scandsl/ops/chunk_cumsum_decay.hpp"
#include "scandsl/ops/decayed_sum.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "support/catch.hpp"

// The ops' backward entries against textbook loops: the chain rule, walked back over a forward walk in
// float64.

using namespace op_test;

namespace {

/// Memory of a call: x, cotangents in, gradients out; and its options.
template <class Options, class Gradients> struct backward_call {
  std::mt19937 random;
  operand_memory x, dy, dx, initial, dinitial, dfinal;
  memory_of<std::int64_t> offsets;
  Options options;
  Gradients gradients;

  backward_call(const op_case& c, unsigned seed, double low, double high)
      : random(seed + 1000 * c.layout_seed),
        x(random, c, c.type, c.extents, false, random_values(random, count_of(c.extents), low, high)),
        dy(random, c, c.type, c.extents, false, random_values(random, count_of(c.extents), -1, 1)),
        dx(random, c, c.type, c.extents, true),
        initial(random, c, c.state_type, c.state_extents(), false,
                random_values(random, count_of(c.state_extents()), -1, 1)),
        dinitial(random, c, state_type(c), c.state_extents(), true),
        dfinal(random, c, state_type(c), c.state_extents(), false,
               random_values(random, count_of(c.state_extents()), -1, 1)),
        offsets(c.offsets.begin(), c.offsets.end()) {
    options.reverse = c.reverse;
    options.exclusive = c.exclusive;
    if (!c.offsets.empty()) options.cu_seqlens = array::of(offsets.data(), {c.sequences() + 1});
    if (c.seeded) options.initial_state = initial.view();
    if (seed % 11 != 0) gradients.y_cotangent = dy.view();
    if (c.wants_state) gradients.final_state_cotangent = dfinal.view();
    if (seed % 13 != 0) gradients.x_gradient = dx.view();
    if (c.seeded || seed % 2 == 0) gradients.initial_state_gradient = dinitial.view();
  }
  gradient_case<double> known(const op_case& c) const {
    gradient_case<double> result{c, x.block.read()};
    if (gradients.y_cotangent) result.g = dy.block.read();
    if (options.initial_state) result.initial = initial.block.read();
    if (gradients.final_state_cotangent) result.final_cotangent = dfinal.block.read();
    return result;
  }
  std::string compare(const op_case& c, const gradient_case<double>& expected, double tolerance) const {
    if (!dx.block.is_intact_around() || !dinitial.block.is_intact_around())
      return "memory beside the gradients was written";
    std::string wrong;
    if (gradients.x_gradient)
      wrong = gradient_mismatch("x_gradient", c.type, expected.dx, dx.block.read(), tolerance);
    if (wrong.empty() && gradients.initial_state_gradient)
      wrong = gradient_mismatch("initial_state_gradient", state_type(c), expected.dinitial,
                                dinitial.block.read(), tolerance);
    return wrong;
  }
};

}  // namespace

TEST_CASE("logcumsumexp's gradient over shapes, dimensions, types and options", "[ops][gradient]") {
  for_each_gradient_case([](const op_case& c, unsigned seed) {
    INFO(c << " seed " << seed);
    backward_call<ops::scan_options, ops::scan_gradients> call(c, seed, -4, 4);
    run_on_device([&](auto& device) {
      ops::logcumsumexp_backward(device, call.x.view(), c.dim, call.gradients, call.options);
    });
    gradient_case<double> expected = call.known(c);
    if (!c.seeded) expected.initial.assign(static_cast<std::size_t>(count_of(c.state_extents())), -INFINITY);
    expected.expect(log_add_exp_step, log_add_exp_back);
    if (!c.seeded) std::fill(expected.dinitial.begin(), expected.dinitial.end(), 0.0);  // of -inf, as of x
    CHECK(call.compare(c, expected, tolerance_of(c)) == "");
  });
}

TEST_CASE("decayed_sum's gradient over shapes, types, options and broadcasts of the decay",
          "[ops][gradient]") {
  for_each_gradient_case([](const op_case& c, unsigned seed) {
    const std::vector<extent_list> shapes = decay_shapes(c.extents);
    const extent_list& decay_extents = shapes[seed / 2 % shapes.size()];
    const bool log_decay = seed % 5 == 1, wants_decay = seed % 4 != 1;
    const dtype decay_type = seed % 2 == 0 ? c.type : dtype::float32;
    INFO(c << " seed " << seed << " decay of rank " << decay_extents.size());
    backward_call<ops::decayed_sum_options, ops::decayed_sum_gradients> call(c, seed, -2, 2);
    operand_memory decay(
        call.random, c, decay_type, decay_extents, false,
        random_values(call.random, count_of(decay_extents), log_decay ? -2 : 0, log_decay ? 0 : 1));
    operand_memory ddecay(call.random, c, decay_type, decay_extents, true);
    call.options.log_decay = log_decay;
    if (wants_decay) call.gradients.decay_gradient = ddecay.view();
    run_on_device([&](auto& device) {
      ops::decayed_sum_backward(device, call.x.view(), decay.view(), c.dim, call.gradients, call.options);
    });
    gradient_case<double> expected = call.known(c);
    const std::vector<double> held = decay.block.read();
    std::vector<std::size_t> places;
    for (std::int64_t at = 0; at < count_of(c.extents); ++at)
      places.push_back(place_in_broadcast(c, decay_extents, at));
    for (const std::size_t at : places) expected.a.push_back(log_decay ? std::exp(held[at]) : held[at]);
    expected.expect(decayed_step, decayed_back);
    CHECK(call.compare(c, expected, tolerance_of(c)) == "");
    if (!wants_decay) return;
    // A sum may cancel: its error goes with the size of what is added.
    std::vector<double> sums(held.size(), 0.0), added(held.size(), 0.0);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const double term = expected.da[i] * (log_decay ? expected.a[i] : 1.0);
      sums[places[i]] += term, added[places[i]] += std::fabs(term);
    }
    const double size = added.empty() ? 0.0 : *std::max_element(added.begin(), added.end());
    CHECK(ddecay.block.is_intact_around());
    CHECK(gradient_mismatch("decay_gradient", decay_type, sums, ddecay.block.read(), tolerance_of(c), size) ==
          "");
  });
}

TEST_CASE("chunk_cumsum_decay's gradient over shapes, types, chunks and options", "[ops][gradient]") {
  for_each_gradient_case([](op_case c, unsigned seed) {
    const std::int64_t chunks[] = {1, 3, 128, 300, 100000};
    c.chunk = chunks[seed % 5];
    const dtype cotangent_type = seed % 4 == 0 && c.type != dtype::float64 ? dtype::float32 : c.type;
    INFO(c << " seed " << seed);
    std::mt19937 random(seed);
    operand_memory dy(random, c, cotangent_type, c.extents, false,
                      random_values(random, count_of(c.extents), -1, 1));
    operand_memory dx(random, c, c.type, c.extents, true);
    const memory_of<std::int32_t> offsets(c.offsets.begin(), c.offsets.end());
    ops::chunk_cumsum_options options;
    options.dim = c.dim, options.chunk_size = c.chunk;
    options.reverse = c.reverse, options.exclusive = c.exclusive;
    if (!c.offsets.empty()) options.cu_seqlens = array::of(offsets.data(), {c.sequences() + 1});
    run_on_device(
        [&](auto& device) { ops::chunk_cumsum_decay_backward(device, dy.view(), dx.view(), options); });
    gradient_case<double> expected{c, dy.block.read(), {}, dy.block.read()};
    expected.expect(decayed_step, decayed_back);
    CHECK(dx.block.is_intact_around());
    CHECK(gradient_mismatch("log_decay_gradient", c.type, expected.dx, dx.block.read(), tolerance_of(c)) ==
          "");
  });
}

TEST_CASE("logcumsumexp's gradient at infinities and over the whole range", "[ops][gradient]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto gradient_of = [](memory_of<float> x) {
    memory_of<float> dy(x.size(), 1.0F), dx(x.size(), -7.0F);
    const auto count = static_cast<std::int64_t>(x.size());
    ops::scan_gradients gradients;
    gradients.y_cotangent = array::of(dy.data(), {count});
    gradients.x_gradient = array::of(dx.data(), {count});
    run_on_device([&](auto& device) {
      ops::logcumsumexp_backward(device, array::of(x.data(), {count}), 0, gradients);
    });
    return dx;
  };
  CHECK(gradient_of({-infinity, -infinity, -infinity}) == memory_of<float>{0, 0, 0});
  CHECK(gradient_of({-infinity, 0, -infinity, -1e4F}) == memory_of<float>{0, 3, 0, 0});
  CHECK(gradient_of({-1e4F, 1e4F, 0}) == memory_of<float>{1, 2, 0});
  CHECK(gradient_of({3e38F, -3e38F}) == memory_of<float>{2, 0});
  const memory_of<float> beyond = gradient_of({1, infinity, 2});
  CHECK(beyond[0] == 1);
  CHECK(std::isnan(beyond[1]));
}

namespace {

/// The gradients of a decayed sum of one sequence, in float32.
struct decayed_gradients {
  memory_of<float> dx, ddecay;

  decayed_gradients(memory_of<float> x, memory_of<float> decay, memory_of<float> dy, bool log_decay = false)
      : dx(x.size(), -7.0F), ddecay(decay.size(), -7.0F) {
    const auto count = static_cast<std::int64_t>(x.size()), decays = static_cast<std::int64_t>(decay.size());
    ops::decayed_sum_options options;
    options.log_decay = log_decay;
    ops::decayed_sum_gradients gradients;
    gradients.y_cotangent = array::of(dy.data(), {count});
    gradients.x_gradient = array::of(dx.data(), {count});
    gradients.decay_gradient = array::of(ddecay.data(), {decays});
    run_on_device([&](auto& device) {
      ops::decayed_sum_backward(device, array::of(x.data(), {count}), array::of(decay.data(), {decays}), 0,
                                gradients, options);
    });
  }
};

}  // namespace

TEST_CASE("decayed_sum's gradient at infinities and over the whole range", "[ops][gradient]") {
  const float infinity = std::numeric_limits<float>::infinity();
  // By x it does not depend on x; by the decay it is what was carried times what comes back.
  const decayed_gradients beyond({1, infinity, 2}, {0.5F, 0.5F, 0.5F}, {1, 1, 1});
  CHECK(beyond.dx == memory_of<float>{1.75F, 1.5F, 1});
  CHECK(beyond.ddecay == memory_of<float>{0, 1.5F, infinity});
  const decayed_gradients below({-infinity, 0, 0}, {1, 0, 1}, {1, 1, 1});
  CHECK(below.dx == memory_of<float>{1, 2, 1});
  CHECK(below.ddecay[0] == 0);
  CHECK(below.ddecay[1] == -infinity);
  CHECK(std::isnan(below.ddecay[2]));  // 0 times infinity was carried
  const decayed_gradients wide({3e38F, -3e38F, 3e38F}, {0.5F, 0.5F, 0.5F}, {0.25F, 0.25F, 0.25F});
  CHECK(wide.dx == memory_of<float>{0.4375F, 0.375F, 0.25F});
  CHECK(wide.ddecay == memory_of<float>{0, 3e38F * 0.375F, -1.5e38F * 0.25F});
  const decayed_gradients tiny({1, 0x1p-100F, 1}, {1, 0x1p-100F, 0x1p100F}, {1, 1, 1});
  CHECK(tiny.dx == memory_of<float>{2, 0x1p100F, 1});  // 1 + 2^-100 (1 + 2^100)
  CHECK(tiny.ddecay == memory_of<float>{0, 0x1p100F, 0x1p-99F});
  const decayed_gradients steep({1, 2, 3}, {1, 0.5F, 0}, {0, infinity, 1});
  CHECK(steep.dx == memory_of<float>{infinity, infinity, 1});
  CHECK(std::isnan(steep.ddecay[0]));  // nothing was carried, times infinity
  CHECK((steep.ddecay[1] == infinity && steep.ddecay[2] == 2.5F));
  // A logarithm of -inf is a decay of 0, which no logarithm near it changes.
  const decayed_gradients forgotten({1, 2, 3}, {0, -infinity, 0}, {1, 1, 1}, true);
  CHECK(forgotten.dx == memory_of<float>{1, 2, 1});
  CHECK(forgotten.ddecay == memory_of<float>{0, 0, 2});
  // Nothing is scanned: one decay for all has gradient 0.
  CHECK(decayed_gradients({}, {0.5F}, {}).ddecay == memory_of<float>{0});
  CHECK(decayed_gradients({}, {}, {}).dx.empty());
}

TEST_CASE("what the backward entries refuse", "[ops][gradient][errors]") {
  memory_of<float> values(12, 0.5F), other(12);
  memory_of<double> wide(12);
  const array x = array::of(values.data(), {3, 4});
  const auto refuses = [&](const ops::scan_gradients& gradients) {
    const cpu device{};
    ops::logcumsumexp_backward(device, x, 1, gradients);
  };
  ops::scan_gradients gradients;
  gradients.y_cotangent = array::of(other.data(), {4, 3});
  CHECK_THROWS_AS(refuses(gradients), shape_error);
  gradients.y_cotangent = array::of(wide.data(), {3, 4});
  CHECK_THROWS_AS(refuses(gradients), dtype_error);
  gradients.y_cotangent.reset();
  gradients.final_state_cotangent = array::of(other.data(), {4});
  CHECK_THROWS_AS(refuses(gradients), shape_error);
}
