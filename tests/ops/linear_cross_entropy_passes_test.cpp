#include <algorithm>

#include "ops/linear_cross_entropy_case.hpp"
#include "support/catch.hpp"

// The gradients in two passes: that of the logits with the loss, the others from it.

using namespace lce_test;

TEST_CASE("the gradients in two passes, with every combination of options") {
  for_each_option([](lce_case c, unsigned seed) {
    if (!c.is_reduced()) return;
    c.chunk = c.count();  // for the tolerance
    lce_operands o(c, seed);
    o.run_with_logits_gradient();
    INFO(c);
    CHECK(wrong(o, o.expected_with_unit_cotangents(), true, false) == "");
    CHECK(o.x_gradient.is_untouched());
    CHECK(o.is_intact_beside_logits_gradient());
    o.kept.write(o.kept.read());
    for (const double upstream : {1.0, -0.37, 1024.0, 0.0}) {
      o.run_products(upstream, o.gradients());
      INFO(upstream);
      CHECK(wrong(o, o.expected_with_cotangents(upstream), false, true) == "");
      CHECK(o.kept.is_untouched());
    }
  });
}

namespace {

/// Calls f with tensors of every type and of any rank, in any layout.
template <class F> void for_each_layout(F f) {
  unsigned seed = 0;
  for (const extent_list& tokens : {extent_list{}, {1}, {9}, {2, 3}, {3, 1, 4}})
    for (const std::int64_t classes : {1, 11, 70})
      for (const dtype type : {dtype::float32, dtype::float64, dtype::bfloat16, dtype::float16})
        for (unsigned layout_seed = 0; layout_seed < 6; ++layout_seed) {
          lce_case c;
          c.tokens = tokens;
          c.classes = classes;
          c.type = type;
          c.has_bias = true;
          c.layout_seed = layout_seed;
          f(c, seed++);
        }
}

}  // namespace

TEST_CASE("the gradients in two passes of tensors of any rank, in any layout") {
  for_each_layout([](lce_case c, unsigned seed) {
    c.ignores = seed % 2 == 0;
    c.reduction = seed % 3 == 0 ? ops::loss_reduction::sum : ops::loss_reduction::mean;
    c.chunk = c.count();
    c.smoothing = 0.1;
    lce_operands o(c, seed + 1);
    o.run_with_logits_gradient();
    o.run_products(3, o.gradients());
    INFO(c);
    const results expected = o.expected_with_cotangents(3);
    CHECK(wrong(o, expected, false, c.classes > 1) == "");
    if (c.classes == 1) {  // what is left of 1 - 1, in float32 at least
      const double left = 3 * 6e-7 * (norm(o.x.read()) + norm(o.weight.read()));
      CHECK(norm(o.x_gradient.read()) <= left);
      CHECK(norm(o.weight_gradient.read()) <= left);
    }
  });
}

TEST_CASE("the gradients in two passes of several chunks, with every combination of options") {
  for_each_option([](lce_case c, unsigned seed) {
    if (!c.is_reduced()) return;
    c.chunk = 2 + seed % 3;  // the last chunk is smaller, or not
    lce_operands o(c, seed);
    o.keeps_last_chunk = true;
    for (const double upstream : {1.0, -0.37, 1024.0, 0.0}) {
      o.run_with_logits_gradient();
      INFO(c << " upstream " << upstream);
      CHECK(wrong(o, o.expected_with_unit_cotangents(), true, false) == "");
      CHECK(o.is_intact_beside_logits_gradient());
      o.kept.write(o.kept.read());
      o.run_products(upstream, o.gradients());
      CHECK(wrong(o, o.expected_with_cotangents(upstream), false, true) == "");
      CHECK(o.kept.is_untouched());
    }
  });
}

TEST_CASE("the gradients in two passes of several chunks of tensors in any layout") {
  for_each_layout([](lce_case c, unsigned seed) {
    if (c.count() == 1 || c.classes == 1) return;
    c.chunk = 1 + seed % (c.count() - 1);
    lce_operands o(c, seed + 1);
    o.keeps_last_chunk = true;
    o.run_with_logits_gradient();
    o.run_products(3, o.gradients());
    INFO(c);
    CHECK(wrong(o, o.expected_with_cotangents(3), false, true) == "");
  });
}

TEST_CASE("of several chunks each gradient can be had alone") {
  lce_case c;
  c.has_bias = true;
  lce_operands o(c, 5);
  o.keeps_last_chunk = true;
  o.run_with_logits_gradient();
  o.run_products(0.7, o.gradients());
  const numbers of_x = o.x_gradient.read(), of_weight = o.weight_gradient.read(),
                of_bias = o.bias_gradient.read();
  const auto gradients = o.gradients();
  for (const int which : {0, 1, 2}) {
    ops::linear_cross_entropy_gradients only;
    if (which == 0) only.x_gradient = gradients.x_gradient;
    if (which == 1) only.weight_gradient = gradients.weight_gradient;
    if (which == 2) only.bias_gradient = gradients.bias_gradient;
    for (memory_block* each : {&o.x_gradient, &o.weight_gradient, &o.bias_gradient})
      each->write(numbers(each->read().size(), std::nan("")));
    run_on_device([&](auto& device) {
      ops::linear_cross_entropy_with_logits_gradient(
          device, o.x.as_array(false), o.weight.as_array(false), o.target.as_array(false),
          o.loss.as_array(true), o.logits_gradient(true), o.pending.as_array(true), o.options(), only);
    });
    o.run_products(0.7, only);
    CHECK((which == 0 ? o.x_gradient.read() == of_x : o.x_gradient.is_untouched()));
    CHECK((which == 1 ? o.weight_gradient.read() == of_weight : o.weight_gradient.is_untouched()));
    CHECK((which == 2 ? o.bias_gradient.read() == of_bias : o.bias_gradient.is_untouched()));
  }
}

TEST_CASE("two passes of several chunks sum in the weight's type") {
  lce_case c;
  c.type = dtype::bfloat16;
  c.accumulate = dtype::float32;
  lce_operands o(c, 5);
  o.keeps_last_chunk = true;
  CHECK_THROWS_WITH(o.run_with_logits_gradient(), Catch::Matchers::ContainsSubstring("for accumulate"));
  o.c.chunk = c.count();
  o.run_with_logits_gradient();
}

TEST_CASE("of the gradients in two passes each can be had alone, and again") {
  lce_case c;
  c.type = dtype::bfloat16;
  c.has_bias = true;
  for (const unsigned layout_seed : {0U, 3U}) {
    c.layout_seed = layout_seed;
    lce_operands o(c, 5);
    o.run_with_logits_gradient();
    o.run_products(0.7, o.gradients());
    const auto gradients = {
        std::pair{&lce_operands::x_gradient, &ops::linear_cross_entropy_gradients::x_gradient},
        {&lce_operands::weight_gradient, &ops::linear_cross_entropy_gradients::weight_gradient},
        {&lce_operands::bias_gradient, &ops::linear_cross_entropy_gradients::bias_gradient}};
    for (const auto& [kept, wanted] : gradients) {
      const numbers before = (o.*kept).read();
      for (const auto& [each, unused] : gradients)
        (o.*each).write(numbers((o.*each).read().size(), std::nan("")));
      ops::linear_cross_entropy_gradients only;
      only.*wanted = (o.*kept).as_array(true);
      o.run_products(0.7, only);
      CHECK((o.*kept).read() == before);
      for (const auto& [each, unused] : gradients)
        if (each != kept) CHECK((o.*each).is_untouched());
      o.run_products(0.7, o.gradients());
    }
  }
}

TEST_CASE("no token that counts, in two passes: the gradients are 0") {
  for_each_without_tokens({ops::loss_reduction::mean, ops::loss_reduction::sum}, [](lce_operands& o) {
    o.run_with_logits_gradient();
    o.run_products(3, o.gradients());
    INFO(o.c);
    CHECK(std::isnan(o.loss.read()[0]) == (o.c.reduction == ops::loss_reduction::mean));
    for (const memory_block* each : {&o.x_gradient, &o.weight_gradient, &o.bias_gradient})
      CHECK(norm(each->read()) == 0);
  });
}

TEST_CASE("float16 in two passes under a loss scale of 65536") {
  lce_case c;
  c.type = dtype::float16;
  c.tokens = {30000};
  c.features = 4;
  c.classes = 50;
  c.chunk = 20000;
  for (const bool in_chunks : {false, true}) {
    lce_operands o(c, 5);
    o.keeps_last_chunk = in_chunks;
    o.run_with_logits_gradient();
    o.run_products(65536, o.gradients());
    const results expected = o.expected_with_cotangents(65536);
    CHECK(error_of(o.x_gradient.read(), expected.x_gradient) < 2 * unit_roundoff(c.type));
    CHECK(error_of(o.weight_gradient.read(), expected.weight_gradient) < 2 * unit_roundoff(c.type));
  }
}

namespace {

/// The products of the exact gradient of the logits in float64, with the roundings that memory asks for: that
/// gradient once, and each result once.
results expect_rounded_once(const lce_operands& o, double upstream) {
  const auto N = static_cast<std::size_t>(o.c.count()), D = static_cast<std::size_t>(o.c.features),
             V = static_cast<std::size_t>(o.c.classes);
  const numbers x = o.x.read(), weight = o.weight.read(), target = o.target.read();
  results all{{}, {}, numbers(N * D), numbers(V * D), {}};
  for (std::size_t n = 0; n < N; ++n) {
    numbers z(V);
    double sum = 0;
    for (std::size_t v = 0; v < V; ++v) {
      for (std::size_t d = 0; d < D; ++d) z[v] += x[n * D + d] * weight[v * D + d];
      sum += std::exp(z[v]);
    }
    for (std::size_t v = 0; v < V; ++v) {
      const bool at_target = v == static_cast<std::size_t>(target[n]);
      const double dz = rounded(o.c.type, std::exp(z[v]) / sum - (at_target ? 1 : 0));
      for (std::size_t d = 0; d < D; ++d) {
        all.x_gradient[n * D + d] += dz * weight[v * D + d];
        all.weight_gradient[v * D + d] += dz * x[n * D + d];
      }
    }
  }
  for (numbers* each : {&all.x_gradient, &all.weight_gradient})
    for (double& value : *each) value = rounded(o.c.type, value * upstream / static_cast<double>(N));
  return all;
}

}  // namespace

TEST_CASE("gradients in two passes are as exact as one rounding of each stored number lets them be") {
  for (const dtype type : {dtype::bfloat16, dtype::float16})
    for (const std::int64_t classes : {64, 1000}) {
      lce_case c;
      c.type = type;
      c.tokens = {128};
      c.features = 48;
      c.classes = classes;
      c.logit_scale = 0.3;
      lce_operands o(c, 11);
      const double upstream = 0.37 * 65536;
      o.run_with_logits_gradient();
      o.run_products(upstream, o.gradients());
      const results truth = o.expected_with_cotangents(upstream), once = expect_rounded_once(o, upstream);
      INFO(c);
      CHECK(error_of(o.x_gradient.read(), truth.x_gradient) <=
            1.2 * error_of(once.x_gradient, truth.x_gradient));
      CHECK(error_of(o.weight_gradient.read(), truth.weight_gradient) <=
            1.2 * error_of(once.weight_gradient, truth.weight_gradient));
    }
}

TEST_CASE("the logits' gradient of the last chunk of a reduced loss is kept") {
  memory_of<bfloat16> none;
  const auto shaped = [&](const extent_list& extents) { return array::of(none.data(), std::span(extents)); };
  const auto plan = [&](std::int64_t tokens, std::int64_t classes, bool with_gradients = true,
                        const ops::linear_cross_entropy_options& options = {}) {
    const array x = shaped({tokens, 64}), weight = shaped({classes, 64});
    ops::linear_cross_entropy_gradients gradients;
    if (with_gradients) gradients.weight_gradient = weight;
    return ops::plan_linear_cross_entropy(cpu{}, x, weight, gradients, options);
  };
  CHECK(plan(1000, 1001).keeps_logits_gradient);
  CHECK(plan(1000, 1001).logits_row == 1024);
  CHECK(explain(plan(1000, 1001)).find("two passes") != std::string::npos);
  CHECK(plan(0, 10).keeps_logits_gradient);
  CHECK_FALSE(plan(1000, 1001, false).keeps_logits_gradient);
  CHECK(plan(100000, 1001).keeps_logits_gradient);
  CHECK(explain(plan(100000, 1001)).find("gradient of the last chunk, ") != std::string::npos);
  ops::linear_cross_entropy_options options;
  options.tokens_a_chunk = 999;
  CHECK(plan(1000, 1001, true, options).keeps_logits_gradient);
  options.accumulate = dtype::float32;
  CHECK_FALSE(plan(1000, 1001, true, options).keeps_logits_gradient);
  options = {};
  options.reduction = ops::loss_reduction::none;
  CHECK_FALSE(plan(1000, 1001, true, options).keeps_logits_gradient);
}

namespace {
auto says(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
}  // namespace

TEST_CASE("errors of the two passes name the argument") {
  lce_case c;
  c.has_bias = true;
  lce_operands o(c, 1);
  array logits = o.logits_gradient(true), pending = o.pending.as_array(true);
  ops::linear_cross_entropy_options options = o.options();
  const auto first = [&] {
    run_on_device([&](auto& device) {
      ops::linear_cross_entropy_with_logits_gradient(device, o.x.as_array(false), o.weight.as_array(false),
                                                     o.target.as_array(false), o.loss.as_array(true), logits,
                                                     pending, options);
    });
  };
  ops::linear_cross_entropy_gradients gradients = o.gradients();
  array x = o.x.as_array(false), factor = o.factor.as_array(false);
  const auto second = [&] {
    run_on_device([&](auto& device) {
      ops::linear_cross_entropy_products(device, x, o.weight.as_array(false), logits, gradients, factor,
                                         pending);
    });
  };
  SECTION("the logits' gradient") {
    const array right = logits;
    const auto both_say = [&]<class Error>(std::type_identity<Error>, const char* text) {
      CHECK_THROWS_AS(first(), Error);
      CHECK_THROWS_WITH(first(), says(text));
      CHECK_THROWS_AS(second(), Error);
      CHECK_THROWS_WITH(second(), says(text));
      logits = right;
    };
    logits.extents[1] = 10;
    both_say(std::type_identity<shape_error>{}, "shape [7, 11] for logits_gradient");
    logits.type = dtype::float64;
    both_say(std::type_identity<dtype_error>{}, "float32 for logits_gradient");
    logits.strides[0] = 5;
    both_say(std::type_identity<argument_error>{}, "contiguous rows of logits_gradient");
    std::swap(logits.strides[0], logits.strides[1]);
    both_say(std::type_identity<argument_error>{}, "contiguous rows of logits_gradient");
    logits.data = nullptr;
    both_say(std::type_identity<argument_error>{}, "memory for logits_gradient");
    logits.writable = false;
    CHECK_THROWS_WITH(first(), says("writable memory for logits_gradient"));
  }
  SECTION("the first pass") {
    options.reduction = ops::loss_reduction::none;
    CHECK_THROWS_AS(first(), shape_error);
    options = o.options();
    options.memory_limit = 100;
    CHECK_THROWS_WITH(first(), says("memory for all tokens"));
    options = o.options();
    pending = o.loss.as_array(true);
    CHECK_THROWS_AS(first(), overlap_error);
    pending = o.pending.as_array(true);
    logits.extents[0] = 8;
    CHECK_THROWS_WITH(first(), says("shape [7, 11] for logits_gradient"));
    logits.extents[0] = 0;
    CHECK_THROWS_WITH(first(), says("shape [1, 11] for logits_gradient"));
    logits.extents[0] = 6;
    CHECK_THROWS_WITH(first(), says("two passes of several chunks"));
  }
  SECTION("the second pass") {
    factor.rank = 1;
    factor.extents[0] = 1;
    CHECK_THROWS_WITH(second(), says("for factor"));
    factor = o.factor.as_array(false);
    factor.type = dtype::float64;
    CHECK_THROWS_WITH(second(), says("float32 for factor"));
    factor = o.factor.as_array(false);
    x.extents[0] = 6;
    CHECK_THROWS_AS(second(), shape_error);
    x = o.x.as_array(false);
    gradients.weight_gradient->extents[0] = 12;
    CHECK_THROWS_WITH(second(), says("for weight_gradient"));
    gradients = o.gradients();
    gradients.x_gradient = x;
    CHECK_THROWS_WITH(second(), says("writable memory for x_gradient"));
  }
  for (const memory_block* each :
       {&o.loss, &o.lse, &o.x_gradient, &o.weight_gradient, &o.bias_gradient, &o.pending, &o.kept})
    CHECK(each->is_untouched());
}

#ifdef SCANDSL_TEST_MANAGED
// ---- what only a GPU has

namespace {

void require(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

}  // namespace

TEST_CASE("after a first call both passes can be captured in a graph", "[gpu]") {
  lce_case c;
  c.type = dtype::bfloat16;
  c.tokens = {100};
  c.features = 32;
  c.classes = 1000;
  c.chunk = c.count();
  c.has_bias = c.has_class_weight = c.ignores = true;
  lce_operands o(c, 3);
  const ops::linear_cross_entropy_options options = o.options();
  const auto first = [&](auto& device) {
    ops::linear_cross_entropy_with_logits_gradient(
        device, o.x.as_array(false), o.weight.as_array(false), o.target.as_array(false),
        o.loss.as_array(true), o.logits_gradient(true), o.pending.as_array(true), options);
  };
  const auto second = [&](auto& device) {
    ops::linear_cross_entropy_products(device, o.x.as_array(false), o.weight.as_array(false),
                                       o.logits_gradient(false), o.gradients(), o.factor.as_array(false),
                                       o.pending.as_array(false));
  };
  cuda_sizing of_first, of_second;
  first(of_first);
  second(of_second);
  memory_of<std::byte> workspace(static_cast<std::size_t>(std::max(of_first.bytes, of_second.bytes)));
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  require(cudaStreamCreate(&stream));
  const auto run = [&] {
    const cuda one{stream, {workspace.data(), of_first.bytes}},
        other{stream, {workspace.data(), of_second.bytes}};
    first(one);
    second(other);
  };
  o.factor.write({1});
  run();
  require(cudaStreamSynchronize(stream));
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  run();
  require(cudaStreamEndCapture(stream, &graph));
  require(cudaGraphInstantiate(&executable, graph, 0));
  for (const double upstream : {3.0, -0.7, 1024.0}) {
    o.x.write(random_values(o.random, c.count() * c.features, -1, 1));
    o.factor.write({upstream});
    for (memory_block* each : {&o.loss, &o.lse, &o.x_gradient, &o.weight_gradient, &o.bias_gradient})
      each->write(numbers(each->read().size(), std::nan("")));
    require(cudaGraphLaunch(executable, stream));
    require(cudaStreamSynchronize(stream));
    CHECK(wrong(o, o.expected_with_unit_cotangents(), true, false) == "");
    CHECK(wrong(o, o.expected_with_cotangents(upstream), false, true) == "");
  }
  require(cudaGraphExecDestroy(executable));
  require(cudaGraphDestroy(graph));
  require(cudaStreamDestroy(stream));
  const cuda too_small{nullptr, {workspace.data(), 1 << 20}}, none{nullptr};
  for (const cuda* each : {&too_small, &none}) {
    CHECK_THROWS_AS(first(*each), argument_error);
    CHECK_THROWS_AS(second(*each), argument_error);
  }
}
#endif
