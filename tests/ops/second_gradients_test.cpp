#include <algorithm>

#include "ops/gradient_case.hpp"
#include "scandsl/ops/decayed_sum.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "support/catch.hpp"

// The ops' double-backward entries against textbook loops in dual numbers: along the cotangents of the
// gradients, how the outputs move is J v, and how the gradients move is the Hessian times v.

using namespace op_test;

namespace {

std::vector<dual> duals(const std::vector<double>& values, const std::vector<double>& tangents) {
  std::vector<dual> result(values.begin(), values.end());
  for (std::size_t i = 0; i < tangents.size(); ++i) result[i].tangent = tangents[i];
  return result;
}
std::vector<double> tangents_of(const std::vector<dual>& values) {
  std::vector<double> result;
  for (const dual& each : values) result.push_back(each.tangent);
  return result;
}

double largest(const std::vector<dual>& values) {
  double size = 0;
  for (const dual& each : values) size = std::max(size, std::fabs(each.value));
  return size;
}

/// Memory of a call: x, what goes in beside it, what comes out; and its options.
template <class Options, class Gradients> struct double_backward_call {
  const op_case& c;
  std::mt19937 random;
  operand_memory x, initial, dy, dfinal, ddx, ddinitial;  ///< read
  operand_memory y_tangent, final_tangent, dx, dinitial;  ///< written
  memory_of<std::int64_t> offsets;
  Options options;
  Gradients gradients;

  double_backward_call(const op_case& of, unsigned seed, double low, double high)
      : c(of), random(seed + 1000 * c.layout_seed), x(rows(low, high)), initial(states(c.state_type)),
        dy(rows(-1, 1)), dfinal(states(state_type(c))), ddx(rows(-1, 1)), ddinitial(states(state_type(c))),
        y_tangent(random, c, c.type, c.extents, true),
        final_tangent(random, c, state_type(c), c.state_extents(), true),
        dx(random, c, c.type, c.extents, true), dinitial(random, c, state_type(c), c.state_extents(), true),
        offsets(c.offsets.begin(), c.offsets.end()) {
    options.reverse = c.reverse;
    options.exclusive = c.exclusive;
    if (!c.offsets.empty()) options.cu_seqlens = array::of(offsets.data(), {c.sequences() + 1});
    if (c.seeded) options.initial_state = initial.view();
    if (seed % 11 != 0) gradients.y_cotangent = dy.view();
    if (c.wants_state) gradients.final_state_cotangent = dfinal.view();
    if (seed % 7 != 0) gradients.x_gradient_cotangent = ddx.view();
    if (c.seeded && seed % 4 != 0) gradients.initial_state_gradient_cotangent = ddinitial.view();
    if (seed % 13 != 0) gradients.y_tangent = y_tangent.view();
    if (seed % 3 != 0) gradients.final_state_tangent = final_tangent.view();
    if (seed % 5 != 0) gradients.x_gradient = dx.view();
    if (c.seeded && seed % 2 == 0) gradients.initial_state_gradient = dinitial.view();
  }
  gradient_case<dual> known() const {
    gradient_case<dual> result{c, duals(x.block.read(), read(gradients.x_gradient_cotangent, ddx))};
    result.g = duals(read(gradients.y_cotangent, dy), {});
    result.initial = duals(read(options.initial_state, initial),
                           read(gradients.initial_state_gradient_cotangent, ddinitial));
    result.final_cotangent = duals(read(gradients.final_state_cotangent, dfinal), {});
    return result;
  }
  std::string compare(const gradient_case<dual>& expected, double tolerance) const {
    const dtype state = state_type(c);
    // Along tangents of at most 1 a gradient moves by the sum of terms of its own size, which may cancel.
    const double size = std::max(largest(expected.dx), largest(expected.dinitial));
    for (const std::string& wrong :
         {mismatch_of("y_tangent", gradients.y_tangent, y_tangent, c.type, expected.y, tolerance),
          mismatch_of("final_state_tangent", gradients.final_state_tangent, final_tangent, state,
                      expected.final, tolerance),
          mismatch_of("x_gradient", gradients.x_gradient, dx, c.type, expected.dx, tolerance, size),
          mismatch_of("initial_state_gradient", gradients.initial_state_gradient, dinitial, state,
                      expected.dinitial, tolerance, size)})
      if (!wrong.empty()) return wrong;
    return "";
  }
  static std::string mismatch_of(const char* id, const std::optional<array>& wanted,
                                 const operand_memory& got, dtype type, const std::vector<dual>& expected,
                                 double tolerance, double size = 0) {
    if (!got.block.is_intact_around()) return message("memory beside ", id, " was written");
    if (!wanted) return "";
    return gradient_mismatch(id, type, tangents_of(expected), got.block.read(), tolerance, size);
  }

private:
  operand_memory rows(double low, double high) {
    return {random, c, c.type, c.extents, false, random_values(random, count_of(c.extents), low, high)};
  }
  operand_memory states(dtype type) {
    return {
        random, c, type, c.state_extents(), false, random_values(random, count_of(c.state_extents()), -1, 1)};
  }
  static std::vector<double> read(const std::optional<array>& given, const operand_memory& memory) {
    return given ? memory.block.read() : std::vector<double>{};
  }
};

}  // namespace

TEST_CASE("logcumsumexp's second gradient over shapes, dimensions, types and options", "[ops][gradient]") {
  for_each_gradient_case([](const op_case& c, unsigned seed) {
    INFO(c << " seed " << seed);
    double_backward_call<ops::scan_options, ops::scan_second_gradients> call(c, seed, -4, 4);
    run_on_device([&](auto& device) {
      ops::logcumsumexp_double_backward(device, call.x.view(), c.dim, call.gradients, call.options);
    });
    gradient_case<dual> expected = call.known();
    if (!c.seeded) expected.initial.assign(static_cast<std::size_t>(count_of(c.state_extents())), -INFINITY);
    expected.expect(log_add_exp_step, log_add_exp_back);
    CHECK(call.compare(expected, tolerance_of(c)) == "");
  });
}

TEST_CASE("decayed_sum's second gradient over shapes, types, options and broadcasts of the decay",
          "[ops][gradient]") {
  for_each_gradient_case([](const op_case& c, unsigned seed) {
    const std::vector<extent_list> shapes = decay_shapes(c.extents);
    const extent_list& decay_extents = shapes[seed / 2 % shapes.size()];
    const bool log_decay = seed % 5 == 1, moves_decay = seed % 6 != 1, wants_decay = seed % 4 != 1;
    const dtype decay_type = seed % 2 == 0 ? c.type : dtype::float32;
    INFO(c << " seed " << seed << " decay of rank " << decay_extents.size());
    double_backward_call<ops::decayed_sum_options, ops::decayed_sum_second_gradients> call(c, seed, -2, 2);
    const std::int64_t decays = count_of(decay_extents);
    operand_memory decay(call.random, c, decay_type, decay_extents, false,
                         random_values(call.random, decays, log_decay ? -2 : 0, log_decay ? 0 : 1));
    operand_memory along(call.random, c, decay_type, decay_extents, false,
                         random_values(call.random, decays, -1, 1));
    operand_memory ddecay(call.random, c, decay_type, c.extents, true);
    call.options.log_decay = log_decay;
    if (moves_decay) call.gradients.decay_gradient_cotangent = along.view();
    if (wants_decay) call.gradients.decay_gradient = ddecay.view();
    run_on_device([&](auto& device) {
      ops::decayed_sum_double_backward(device, call.x.view(), decay.view(), c.dim, call.gradients,
                                       call.options);
    });
    gradient_case<dual> expected = call.known();
    const std::vector<dual> held =
        duals(decay.block.read(), moves_decay ? along.block.read() : std::vector<double>{});
    for (std::int64_t at = 0; at < count_of(c.extents); ++at) {
      const dual each = held[place_in_broadcast(c, decay_extents, at)];
      expected.a.push_back(log_decay ? exp(each) : each);
    }
    expected.expect(decayed_step, decayed_back);
    CHECK(call.compare(expected, tolerance_of(c)) == "");
    std::vector<dual> by_decay = expected.da;
    for (std::size_t i = 0; log_decay && i < by_decay.size(); ++i) by_decay[i] = by_decay[i] * expected.a[i];
    CHECK(call.mismatch_of("decay_gradient", call.gradients.decay_gradient, ddecay, decay_type, by_decay,
                           tolerance_of(c)) == "");
  });
}

TEST_CASE("logcumsumexp's second gradient at infinities", "[ops][gradient]") {
  const float infinity = std::numeric_limits<float>::infinity();
  memory_of<float> x = {-infinity, 0, -infinity, 1e4F, -1e4F}, ones(5, 1.0F), y_tangent(5), dx(5);
  const auto view = [](memory_of<float>& of) { return array::of(of.data(), {5}); };
  ops::scan_second_gradients gradients;
  gradients.x_gradient_cotangent = view(ones);
  gradients.y_cotangent = view(ones);
  gradients.y_tangent = view(y_tangent);
  gradients.x_gradient = view(dx);
  run_on_device([&](auto& device) { ops::logcumsumexp_double_backward(device, view(x), 0, gradients); });
  // y moves as x does, where there is any; weights that are all 0 or 1 stay so.
  CHECK(y_tangent == memory_of<float>{0, 1, 1, 1, 1});
  CHECK(dx == memory_of<float>{0, 0, 0, 0, 0});
}

TEST_CASE("what the double-backward entries refuse", "[ops][gradient][errors]") {
  memory_of<float> values(12, 0.5F), other(12);
  memory_of<double> wide(12);
  const array x = array::of(values.data(), {3, 4}), turned = array::of(other.data(), {4, 3}),
              of_doubles = array::of(wide.data(), {3, 4});
  const cpu device{};
  using given = std::optional<array> ops::scan_second_gradients::*;
  for (const given member :
       {&ops::scan_second_gradients::x_gradient_cotangent, &ops::scan_second_gradients::y_cotangent,
        &ops::scan_second_gradients::y_tangent, &ops::scan_second_gradients::x_gradient}) {
    ops::scan_second_gradients gradients;
    gradients.*member = turned;
    CHECK_THROWS_AS(ops::logcumsumexp_double_backward(device, x, 1, gradients), shape_error);
    gradients.*member = of_doubles;
    CHECK_THROWS_AS(ops::logcumsumexp_double_backward(device, x, 1, gradients), dtype_error);
  }
  ops::decayed_sum_second_gradients gradients;
  gradients.decay_gradient_cotangent = turned;
  CHECK_THROWS_AS(ops::decayed_sum_double_backward(device, x, x, 1, gradients), shape_error);
  gradients.decay_gradient_cotangent.reset();
  gradients.decay_gradient = array::of(other.data(), {4});  // of x's shape, also where decay is smaller
  CHECK_THROWS_AS(ops::decayed_sum_double_backward(device, x, *gradients.decay_gradient, 1, gradients),
                  shape_error);
}
