#include "ops/linear_cross_entropy_case.hpp"

#include <cstdio>
#include <fstream>

#include "linear_cross_entropy/chunks.hpp"
#include "support/catch.hpp"

using namespace lce_test;

TEST_CASE("linear cross entropy and its gradients, with every combination of options") {
  for_each_option([](const lce_case& c, unsigned seed) {
    lce_operands o(c, seed);
    o.run_with_gradients();
    INFO(c);
    CHECK(wrong(o, o.expected_with_unit_cotangents(), true, true) == "");
  });
}

TEST_CASE("the loss alone is the loss that comes with gradients") {
  for_each_option([](const lce_case& c, unsigned seed) {
    lce_operands alone(c, seed), both(c, seed);
    alone.run();
    both.run_with_gradients();
    INFO(c);
    // On a GPU the two programs may cut a row in other places.
    const double tolerance = on_gpu ? 1e-6 : 0;
    CHECK(error_of(alone.loss.read(), both.loss.read()) <= tolerance);
    CHECK(error_of(alone.lse.read(), both.lse.read()) <= tolerance);
    CHECK(alone.x_gradient.is_untouched());
  });
}

TEST_CASE("the backward of linear cross entropy, for cotangents of the loss and of lse") {
  for_each_option([](const lce_case& c, unsigned seed) {
    for (const int given : {1, 2, 3}) {
      lce_operands o(c, seed);
      const bool of_loss = (given & 1) != 0, of_lse = (given & 2) != 0;
      o.run_backward(of_loss, of_lse);
      const numbers zeros(static_cast<std::size_t>(c.count()) + 1);
      INFO(c << (of_loss ? " loss" : "") << (of_lse ? " lse" : ""));
      CHECK(wrong(o,
                  o.expected(of_loss ? o.loss_cotangent.read() : zeros,
                             of_lse ? o.lse_cotangent.read() : zeros),
                  false, true) == "");
    }
  });
}

TEST_CASE("linear cross entropy of tensors of any rank, in any layout") {
  unsigned seed = 0;
  for (const extent_list& tokens : {extent_list{}, {1}, {9}, {2, 3}, {3, 1, 4}, {2, 2, 2, 2}})
    for (const dtype type : {dtype::float32, dtype::float64, dtype::bfloat16, dtype::float16})
      for (unsigned layout_seed = 0; layout_seed < 12; ++layout_seed) {
        lce_case c;
        c.tokens = tokens;
        c.type = type;
        c.has_bias = c.has_class_weight = c.ignores = seed % 2 == 0;
        c.smoothing = 0.1;
        c.reduction = static_cast<ops::loss_reduction>(seed % 3);
        c.chunk = 1 + seed % 5;
        c.layout_seed = layout_seed;
        lce_operands o(c, ++seed);
        o.run_with_gradients();
        INFO(c);
        CHECK(wrong(o, o.expected_with_unit_cotangents(), true, true) == "");
      }
}

TEST_CASE("linear cross entropy of many and of few classes and features") {
  unsigned seed = 1;
  for (const dtype type : {dtype::float32, dtype::float64, dtype::bfloat16, dtype::float16})
    for (const auto& [classes, features] :
         {std::pair{1, 3}, {2, 1}, {127, 1}, {129, 17}, {4099, 3}, {9001, 2}, {700, 1500}, {3, 0}}) {
      lce_case c;
      c.type = type;
      c.tokens = {5};
      c.classes = classes;
      c.features = features;
      c.has_bias = c.has_class_weight = c.ignores = true;
      c.smoothing = 0.1;
      c.z_loss = 0.1;
      c.logit_scale = features > 100 ? 0.1 : 1;
      lce_operands o(c, ++seed);
      o.run_with_gradients();
      INFO(c);
      CHECK(wrong(o, o.expected_with_unit_cotangents(), true, true) == "");
    }
}

TEST_CASE("products of linear cross entropy are right in blocks, of any number of threads") {
  unsigned seed = 31;
  for (const dtype type : {dtype::float32, dtype::float64, dtype::bfloat16})
    for (const auto& [tokens, classes, features] :
         {std::tuple{1, 2051, 520}, {257, 33, 1029}, {65, 1031, 129}, {130, 1, 6200}})
      for (const unsigned layout_seed : {0U, 1U}) {
        lce_case c;
        c.type = type;
        c.tokens = {tokens};
        c.classes = classes;
        c.features = features;
        c.chunk = 129;
        c.logit_scale = 0.1;
        c.layout_seed = layout_seed;
        const results expected = lce_operands(c, ++seed).expected_with_unit_cotangents();
        const std::vector<int> counts = layout_seed == 0 ? std::vector{1, 2, 3, 6, 7} : std::vector{3};
        for (const int threads : counts) {
          lce_operands o(c, seed);
          o.threads = threads;
          o.run_with_gradients();
          INFO(c << ", " << threads << " threads");
          CHECK(wrong(o, expected, true, true) == "");
        }
      }
}

TEST_CASE("the gradient of linear cross entropy is that of finite differences") {
  for (unsigned options = 0; options < 32; ++options) {
    lce_case c;
    c.type = dtype::float64;
    c.tokens = {4};
    c.has_bias = true;
    c.has_class_weight = (options & 1) != 0;
    c.ignores = (options & 2) != 0;
    c.smoothing = (options & 4) != 0 ? 0.3 : 0;
    c.z_loss = (options & 8) != 0 ? 0.05 : 0;
    c.softcap = (options & 16) != 0 ? 2 : 0;
    lce_operands o(c, options + 1);
    o.run_with_gradients();
    INFO(c);
    const auto slope = [&](memory_block& of, std::size_t at) {
      const numbers before = of.read();
      double loss[2];
      for (const int side : {0, 1}) {
        numbers moved = before;
        moved[at] += side == 0 ? -1e-5 : 1e-5;
        of.write(moved);
        o.run();
        loss[side] = o.loss.read()[0];
      }
      of.write(before);
      return (loss[1] - loss[0]) / 2e-5;
    };
    for (auto [of, gradient] :
         {std::pair{&o.x, &o.x_gradient}, {&o.weight, &o.weight_gradient}, {&o.bias, &o.bias_gradient}})
      for (std::size_t at = 0; at < of->read().size(); at += 3)
        CHECK(std::fabs(slope(*of, at) - gradient->read()[at]) < 1e-9);
  }
}

TEST_CASE("no token that counts: the mean is NaN, the sum 0, the gradients 0") {
  for_each_without_tokens({ops::loss_reduction::none, ops::loss_reduction::mean, ops::loss_reduction::sum},
                          [](lce_operands& o) {
                            o.run_with_gradients();
                            INFO(o.c);
                            if (o.c.reduction == ops::loss_reduction::mean)
                              CHECK(std::isnan(o.loss.read()[0]));
                            else
                              CHECK(norm(o.loss.read()) == 0);
                            CHECK(norm(o.x_gradient.read()) == 0);
                            CHECK(norm(o.weight_gradient.read()) == 0);
                            CHECK(norm(o.bias_gradient.read()) == 0);
                          });
}

TEST_CASE("linear cross entropy at the ends of the range") {
  lce_case c;
  c.has_bias = true;
  SECTION("a class masked by a bias of -inf has probability 0") {
    lce_operands o(c, 3);
    numbers bias = o.bias.read();
    bias[2] = -HUGE_VAL;
    o.bias.write(bias);
    o.target.write({0, 1, 3, 4, 5, 6, 7});
    o.run_with_gradients();
    CHECK(wrong(o, o.expected_with_unit_cotangents(), true, true) == "");
    CHECK(o.bias_gradient.read()[2] == 0);
  }
  SECTION("logits of ten thousands") {
    c.logit_scale = 1e4;
    lce_operands o(c, 3);
    o.run_with_gradients();
    CHECK(wrong(o, o.expected_with_unit_cotangents(), true, true) == "");
  }
  SECTION("an ignore_index among the classes") {
    lce_operands o(c, 3);
    o.target.write({4, 1, 4, 2, 3, 4, 0});
    ops::linear_cross_entropy_options options = o.options();
    options.ignore_index = 4;
    run_on_device([&](auto& device) {
      ops::linear_cross_entropy_with_gradients(device, o.x.as_array(false), o.weight.as_array(false),
                                               o.target.as_array(false), o.loss.as_array(true), o.gradients(),
                                               options);
    });
    o.target.write({-100, 1, -100, 2, 3, -100, 0});
    CHECK(wrong(o, o.expected_with_unit_cotangents(), true, true) == "");
  }
}

TEST_CASE("linear cross entropy gives the same bits every time") {
  for (const dtype type : {dtype::float32, dtype::bfloat16}) {
    lce_case c;
    c.type = type;
    c.tokens = {300};
    c.classes = 1000;
    c.features = 64;
    c.has_bias = true;
    c.chunk = 77;
    lce_operands one(c, 5), two(c, 5);
    one.run_with_gradients();
    two.run_with_gradients();
    for (auto [left, right] : {std::pair{&one.loss, &two.loss},
                               {&one.lse, &two.lse},
                               {&one.x_gradient, &two.x_gradient},
                               {&one.weight_gradient, &two.weight_gradient},
                               {&one.bias_gradient, &two.bias_gradient}})
      CHECK(left->read() == right->read());
  }
}

TEST_CASE("float16 under a loss scale of 65536: count and scale are applied together") {
  lce_case c;
  c.type = dtype::float16;
  c.tokens = {30000};
  c.features = 4;
  c.classes = 50;
  c.chunk = 10000;
  constexpr float scale = 65536;
  const memory_of<float> upstream(1, scale);
  const auto errors = [&](bool is_pending) {
    lce_operands o(c, 5);
    o.run_with_gradients(is_pending);
    run_on_device([&](auto& device) {
      if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(device)>, cuda_sizing>)
        ops::scale_gradients(device, o.gradients(), array::of(upstream.data(), {}),
                             is_pending ? std::optional(o.pending.as_array(false)) : std::nullopt);
    });
    results expected = o.expected_with_unit_cotangents();
    for (numbers* each : {&expected.x_gradient, &expected.weight_gradient})
      for (double& value : *each) value *= scale;
    return std::pair{error_of(o.x_gradient.read(), expected.x_gradient),
                     error_of(o.weight_gradient.read(), expected.weight_gradient)};
  };
  const auto [of_x, of_weight] = errors(true);
  CHECK(of_x < 2 * unit_roundoff(c.type));
  CHECK(of_weight < 4 * unit_roundoff(c.type));
  CHECK(errors(false).first > 2 * of_x);  // divided by 30000 first, most lost digits
}

TEST_CASE("scaling gradients") {
  lce_case c;
  c.has_bias = true;
  c.layout_seed = 5;
  lce_operands o(c, 4);
  o.run_with_gradients();
  const numbers before = o.x_gradient.read();
  for (const float factor : {1.0F, 0.5F, 0.0F}) {
    const memory_of<float> upstream(1, factor);
    run_on_device([&](auto& device) {
      if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(device)>, cuda_sizing>)
        ops::scale_gradients(device, o.gradients(), array::of(upstream.data(), {}));
    });
    numbers expected = before;
    for (double& each : expected) each *= factor == 1.0F ? 1.0 : factor == 0.5F ? 0.5 : 0.0;
    CHECK(o.x_gradient.read() == expected);
  }
}

TEST_CASE("a weight gradient added up in float32 is rounded once, in bfloat16 once a chunk") {
  lce_case c;
  c.type = dtype::bfloat16;
  c.tokens = {192};
  c.features = 8;
  c.classes = 40;
  c.chunk = 4;
  const auto error = [&](std::optional<dtype> accumulate) {
    c.accumulate = accumulate;
    lce_operands o(c, 9);
    o.run_with_gradients();
    return error_of(o.weight_gradient.read(), o.expected_with_unit_cotangents().weight_gradient);
  };
  const double one_rounding = unit_roundoff(dtype::bfloat16);
  CHECK(error(dtype::float32) < one_rounding);
  CHECK(error(std::nullopt) < 4 * one_rounding);
  CHECK(error(std::nullopt) > error(dtype::float32));
}

TEST_CASE("the plan of linear cross entropy says what a call holds") {
  memory_of<bfloat16> none;
  const auto shaped = [&](const extent_list& extents) { return array::of(none.data(), std::span(extents)); };
  const array x = shaped({3, 4096, 1024}), weight = shaped({131072, 1024});
  ops::linear_cross_entropy_gradients gradients;
  gradients.x_gradient = x;
  gradients.weight_gradient = weight;
  ops::linear_cross_entropy_options options;
  const auto plan = [&] { return ops::plan_linear_cross_entropy(cpu{}, x, weight, gradients, options); };
  CHECK(plan().tokens == 12288);
  CHECK(plan().chunks * plan().tokens_a_chunk == 12288);
  CHECK(plan().logits_bytes == plan().tokens_a_chunk * 131072 * 2);
  CHECK(plan().memory_bytes < plan().logits_bytes + (13 << 20));  // panels of the products
  options.memory_limit = 40 << 20;
  CHECK(plan().memory_bytes <= options.memory_limit);
  CHECK(plan().memory_bytes > options.memory_limit / 3);
  options.accumulate = dtype::float32;
  CHECK_THROWS_AS(plan(), argument_error);  // the sums alone are half a gigabyte
  options.memory_limit = 0;
  CHECK(plan().copied_bytes == std::int64_t{131072} * 1024 * 4);
  CHECK(explain(plan()).find("48 chunks of 256 tokens") != std::string::npos);
  CHECK_FALSE(plan().keeps_logits_gradient);
  CHECK(explain(plan()).find("two passes") == std::string::npos);
}

TEST_CASE("tokens a chunk, by the shapes and the memory") {
  bfloat16* const none = nullptr;
  constexpr std::int64_t tokens = 12288, features = 4096;
  const auto chunk = [&](std::int64_t classes, std::optional<std::int64_t> limit = {}) {
    const ops::call_arguments call{
        array::of(none, {tokens, features}), array::of(none, {classes, features}), {}, {}};
    return ops::choose_chunk(call, ops::cuda_chunk_policy, limit,
                             [&](std::int64_t each) { return each * classes * 2; });
  };
  // With x, the weight, their gradients and 16 MiB for products: 2768 MiB at 131072 classes, 848 at 32768.
  for (const std::int64_t classes : {1024, 8192, 16384}) CHECK(chunk(classes).tokens == tokens);
  for (const std::int64_t classes : {32768, 65536, 131072}) CHECK(chunk(classes).tokens == 2048);
  CHECK(chunk(20000).tokens == 3072);  // as many fewer as make chunks alike
  CHECK(chunk(131072).bytes == std::int64_t{512} << 20);
  CHECK(chunk(131072, std::int64_t{300} << 20).tokens == 1024);
  CHECK(chunk(131072, std::int64_t{131072} * 2).tokens == 1);
  CHECK_THROWS_AS(chunk(131072, std::int64_t{131072} * 2 - 1), argument_error);
}

namespace {

/// A call with one thing wrong, which must say so before it writes.
template <class Error, class Spoil> std::string error_of_call(Spoil spoil) {
  lce_case c;
  c.has_bias = true;
  lce_operands o(c, 1);
  array x = o.x.as_array(false), weight = o.weight.as_array(false), target = o.target.as_array(false);
  ops::linear_cross_entropy_options options = o.options();
  ops::linear_cross_entropy_gradients gradients = o.gradients();
  std::optional<array> pending = o.pending.as_array(true);
  spoil(x, weight, target, options, gradients, pending);
  std::string text = "no error";
  try {
    run_on_device([&](auto& device) {
      ops::linear_cross_entropy_with_gradients(device, x, weight, target, o.loss.as_array(true), gradients,
                                               options, pending);
    });
  } catch (const Error& e) {
    text = e.what();
  } catch (const std::exception& e) {
    text = std::string("another error: ") + e.what();
  }
  for (const memory_block* each :
       {&o.loss, &o.lse, &o.x_gradient, &o.weight_gradient, &o.bias_gradient, &o.pending})
    CHECK(each->is_untouched());
  return text;
}
auto says(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }

}  // namespace

TEST_CASE("errors of linear cross entropy name the argument") {
  using options_type = ops::linear_cross_entropy_options;
  using gradients_type = ops::linear_cross_entropy_gradients;
  using pending_type = std::optional<array>;
  CHECK_THAT(error_of_call<shape_error>([](array&, array& weight, auto&&...) { weight.extents[1] = 4; }),
             says("weight of shape [V, 5]"));
  CHECK_THAT(error_of_call<shape_error>([](array&, array& weight, auto&&...) { weight.extents[0] = 0; }),
             says("classes"));
  CHECK_THAT(
      error_of_call<shape_error>([](array&, array&, array& target, auto&&...) { target.extents[0] = 6; }),
      says("for target"));
  CHECK_THAT(error_of_call<dtype_error>(
                 [](array&, array&, array& target, auto&&...) { target.type = dtype::float32; }),
             says("int32 or int64 for target"));
  CHECK_THAT(
      error_of_call<dtype_error>([](array&, array& weight, auto&&...) { weight.type = dtype::float64; }),
      says("for weight"));
  CHECK_THAT(error_of_call<argument_error>([](array& x, auto&&...) { x.data = nullptr; }),
             says("memory for x"));
  const auto with_options = [](auto change) {
    return [=](array&, array&, array&, options_type& options, gradients_type&, pending_type&) {
      change(options);
    };
  };
  CHECK_THAT(error_of_call<argument_error>(with_options([](options_type& o) { o.label_smoothing = 1.5; })),
             says("label_smoothing in [0, 1]"));
  CHECK_THAT(error_of_call<argument_error>(with_options([](options_type& o) { o.softcap = -1; })),
             says("softcap"));
  CHECK_THAT(error_of_call<argument_error>(with_options([](options_type& o) { o.z_loss = std::nan(""); })),
             says("z_loss"));
  CHECK_THAT(error_of_call<argument_error>(with_options([](options_type& o) { o.bias.reset(); })),
             says("bias"));
  CHECK_THAT(error_of_call<argument_error>(with_options([](options_type& o) { o.memory_limit = 1000; })),
             says("one token"));
  CHECK_THAT(
      error_of_call<dtype_error>(with_options([](options_type& o) { o.accumulate = dtype::bfloat16; })),
      says("for accumulate"));
  CHECK_THAT(error_of_call<shape_error>(
                 with_options([](options_type& o) { o.reduction = ops::loss_reduction::none; })),
             says("for loss"));
  CHECK_THAT(
      error_of_call<overlap_error>([](array& x, array&, array&, options_type&, gradients_type& gradients,
                                      pending_type&) { x = *gradients.x_gradient; }),
      says("x_gradient apart from x"));
}

TEST_CASE("a target that is no class is an error where targets are checked, else NaN") {
  lce_case c;
  for (const double bad : {11.0, -1.0, -99.0}) {
    lce_operands o(c, 1);
    numbers targets = o.target.read();
    targets[3] = bad;
    o.target.write(targets);
    o.checks_targets = true;
    CHECK_THROWS_WITH(o.run_with_gradients(), says("at position 3"));
    CHECK(o.loss.is_untouched());
    if (!on_gpu) continue;
    o.checks_targets = false;
    o.loss.write({0});
    o.run_with_gradients();
    CHECK(std::isnan(o.loss.read()[0]));
  }
}

#ifdef SCANDSL_TEST_MANAGED
// ---- what only a GPU has

namespace {

/// The call with gradients, and the workspace that it asks for.
struct gpu_call {
  lce_operands& o;
  ops::linear_cross_entropy_options options = o.options();
  memory_of<std::byte> workspace = {};

  template <class Device> void operator()(Device& device) {
    ops::linear_cross_entropy_with_gradients(device, o.x.as_array(false), o.weight.as_array(false),
                                             o.target.as_array(false), o.loss.as_array(true), o.gradients(),
                                             options);
  }
  std::int64_t needed() {
    cuda_sizing size;
    (*this)(size);
    return size.bytes;
  }
  void run(cudaStream_t stream, std::int64_t bytes) {
    workspace.resize(static_cast<std::size_t>(bytes));
    const cuda device{stream, {workspace.data(), bytes}};
    (*this)(device);
  }
};

void require(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

}  // namespace

TEST_CASE("a hundred thousand classes", "[gpu]") {
  for (const std::int64_t classes : {131072, 100003}) {
    lce_case c;
    c.type = dtype::bfloat16;
    c.tokens = {96};
    c.features = 64;
    c.classes = classes;
    c.chunk = 64;
    c.ignores = c.has_bias = true;
    c.logit_scale = 0.3;
    lce_operands o(c, 3);
    o.run_with_gradients();
    CHECK(wrong(o, o.expected_with_unit_cotangents(), true, true) == "");
  }
}

TEST_CASE("after a first call linear cross entropy can be captured in a graph", "[gpu]") {
  lce_case c;
  c.type = dtype::bfloat16;
  c.tokens = {100};
  c.features = 32;
  c.classes = 1000;
  c.chunk = 40;
  c.has_bias = c.has_class_weight = c.ignores = true;
  c.smoothing = 0.1;
  lce_operands o(c, 3);
  gpu_call call{o};
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  require(cudaStreamCreate(&stream));
  const std::int64_t bytes = call.needed();
  call.run(stream, bytes);
  require(cudaStreamSynchronize(stream));
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  call.run(stream, bytes);
  require(cudaStreamEndCapture(stream, &graph));
  require(cudaGraphInstantiate(&executable, graph, 0));
  for (int replay = 0; replay < 3; ++replay) {
    o.x.write(random_values(o.random, c.count() * c.features, -1, 1));
    for (memory_block* each : {&o.loss, &o.lse, &o.x_gradient, &o.weight_gradient, &o.bias_gradient})
      each->write(numbers(each->read().size(), std::nan("")));
    require(cudaGraphLaunch(executable, stream));
    require(cudaStreamSynchronize(stream));
    CHECK(wrong(o, o.expected_with_unit_cotangents(), true, true) == "");
  }
  require(cudaGraphExecDestroy(executable));
  require(cudaGraphDestroy(graph));
  require(cudaStreamDestroy(stream));
}

TEST_CASE("a smaller workspace makes smaller chunks, and too small a one is an error", "[gpu]") {
  lce_case c;
  c.tokens = {512};
  c.classes = 3000;
  c.features = 16;
  c.chunk = 0;
  lce_operands o(c, 3);
  gpu_call call{o};
  const std::int64_t bytes = call.needed();
  c.chunk = o.c.chunk = 512;  // for the tolerance
  for (const std::int64_t less : {std::int64_t{0}, std::int64_t{2} << 20, std::int64_t{4} << 20}) {
    call.run(nullptr, bytes - less);
    require(cudaDeviceSynchronize());
    CHECK(wrong(o, o.expected_with_unit_cotangents(), true, true) == "");
  }
  CHECK_THROWS_AS(call.run(nullptr, 1 << 20), argument_error);
}

TEST_CASE("choices of products are kept in a file", "[gpu]") {
  lce_case c;
  c.classes = 264;  // of no other test
  c.features = 40;
  c.chunk = 0;
  const std::string name = message(std::tmpnam(nullptr), "-products.txt");
  // One choice serves products of much the same size.
  for (const std::int64_t tokens : {64, 62}) {
    c.tokens = {tokens};
    lce_operands o(c, 3);
    gpu_call call{o};
    call.options.tuning.file = name;
    call.run(nullptr, call.needed());
    require(cudaDeviceSynchronize());
    CHECK(wrong(o, o.expected_with_unit_cotangents(), true, true) == "");
  }
  std::ifstream file(name);
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) CHECK(line.find('\t') != std::string::npos);
  CHECK(lines == 3);
  std::remove(name.c_str());
}
#endif
