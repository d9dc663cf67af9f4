#include <functional>
#include <limits>

#include "ops/error_of.hpp"
#include "ops/op_case.hpp"
#include "scandsl/ops/lrpe_cosine.hpp"
#include "scandsl/ops/md_lrpe_cosine.hpp"
#include "support/catch.hpp"

// What the positional encodings and their backwards refuse, and what they say of it.

using namespace op_test;

namespace {

constexpr float sentinel = 77;
constexpr std::int64_t int64_least = std::numeric_limits<std::int64_t>::min(),
                       int64_most = std::numeric_limits<std::int64_t>::max();

/// Operands of all entries, all of them right; a test spoils one. Every block has room for float64.
struct encoding_call {
  static constexpr std::int64_t room = 1024;

  memory_of<float> memory[7] = {memory_of<float>(room, 1),        memory_of<float>(room, 0.5F),
                                memory_of<float>(room, sentinel), memory_of<float>(room, 1),
                                memory_of<float>(room, sentinel), memory_of<float>(room, sentinel),
                                memory_of<float>(room, 1)};
  memory_of<std::int64_t> places = memory_of<std::int64_t>(16, 3);
  array x, theta, y;
  ops::lrpe_gradients gradients;

  void use(const extent_list& of_x, const extent_list& of_theta) {
    extent_list of_y = of_x;
    of_y.back() *= 2;
    x = at(0, of_x), theta = at(1, of_theta), y = at(2, of_y);
    gradients = {at(3, of_y), at(4, of_x), at(5, of_theta)};
  }
  array at(int block, const extent_list& extents) { return array::of(memory[block].data(), extents); }
  bool is_unwritten() const {
    for (const int output : {2, 4, 5})
      for (const float each : memory[output])
        if (each != sentinel) return false;
    return true;
  }
};

/// x [2, 5, 3, 4].
struct lrpe_call : encoding_call {
  ops::lrpe_options options;

  lrpe_call() { use({2, 5, 3, 4}, {3, 4}); }
  array positions(const extent_list& extents) const { return array::of(places.data(), extents); }
  void forward() {
    run_on_device([&](auto& device) { ops::lrpe_cosine(device, x, theta, y, options); });
  }
  void backward() {
    run_on_device([&](auto& device) { ops::lrpe_cosine_backward(device, x, theta, gradients, options); });
  }
};

/// x [2, 3, 1 + 2 * 3, 5] on a grid of two dimensions.
struct md_lrpe_call : encoding_call {
  extent_list shape{2, 3};
  ops::md_lrpe_options options{1, {}};
  array table = at(2, {3, 7, 5});

  md_lrpe_call() { use({2, 3, 7, 5}, {3, 3}); }
  void with_table() {
    options.angles = at(6, {3, 7, 5});
    gradients.theta_gradient.reset();
  }
  void forward() {
    run_on_device([&](auto& device) { ops::md_lrpe_cosine(device, x, theta, shape, y, options); });
  }
  void backward() {
    run_on_device(
        [&](auto& device) { ops::md_lrpe_cosine_backward(device, x, theta, shape, gradients, options); });
  }
  void angles() {
    run_on_device(
        [&](auto& device) { ops::md_lrpe_angles(device, theta, shape, table, options.extra_tokens); });
  }
};

/// The same of both directions, which say the same.
template <class Error, class Call> std::string error_of_both(const std::function<void(Call&)>& spoil) {
  const std::string of_forward = error_of<Error, Call>(&Call::forward, spoil),
                    of_backward = error_of<Error, Call>(&Call::backward, spoil);
  CHECK(of_forward == of_backward);
  return of_forward;
}
const auto lrpe_shape = error_of_both<shape_error, lrpe_call>;
const auto lrpe_dtype = error_of_both<dtype_error, lrpe_call>;
const auto lrpe_argument = error_of_both<argument_error, lrpe_call>;
const auto md_shape = error_of_both<shape_error, md_lrpe_call>;
const auto md_dtype = error_of_both<dtype_error, md_lrpe_call>;
const auto md_argument = error_of_both<argument_error, md_lrpe_call>;

template <class Call> std::string shape_of_gradients(const std::function<void(Call&)>& spoil) {
  return error_of<shape_error, Call>(&Call::backward, spoil);
}
template <class Call> std::string dtype_of_gradients(const std::function<void(Call&)>& spoil) {
  return error_of<dtype_error, Call>(&Call::backward, spoil);
}

}  // namespace

TEST_CASE("the operands that the errors of encodings start from are right", "[ops][lrpe][errors]") {
  for (void (lrpe_call::*entry)() : {&lrpe_call::forward, &lrpe_call::backward}) {
    lrpe_call call;
    CHECK_NOTHROW((call.*entry)());
    CHECK(!call.is_unwritten());
  }
  for (void (md_lrpe_call::*entry)() :
       {&md_lrpe_call::forward, &md_lrpe_call::backward, &md_lrpe_call::angles}) {
    md_lrpe_call call;
    CHECK_NOTHROW((call.*entry)());
    CHECK(!call.is_unwritten());
  }
  for (void (md_lrpe_call::*entry)() : {&md_lrpe_call::forward, &md_lrpe_call::backward}) {
    md_lrpe_call call;
    call.with_table();
    CHECK_NOTHROW((call.*entry)());
    CHECK(!call.is_unwritten());
  }
}

TEST_CASE("shapes that lrpe_cosine does not take", "[ops][lrpe][errors]") {
  for (const extent_list& extents : {extent_list{}, {120}, {2, 5, 12}, {1, 2, 5, 3, 4}})
    CHECK_THAT(lrpe_shape([&](lrpe_call& c) { c.x = c.at(0, extents); }),
               says("x of shape [b, n, h, d]; got ["));
  CHECK_THAT(lrpe_shape([](lrpe_call& c) { c.x = c.at(0, {2, 5, 12}); }), says("got [2, 5, 12]"));
  const std::pair<extent_list, const char*> thetas[] = {
      {{}, "[]"},         {{4}, "[4]"},       {{12}, "[12]"},     {{4, 3}, "[4, 3]"},      {{1, 1}, "[1, 1]"},
      {{1, 3}, "[1, 3]"}, {{3, 2}, "[3, 2]"}, {{0, 4}, "[0, 4]"}, {{1, 3, 4}, "[1, 3, 4]"}};
  for (const auto& [extents, text] : thetas)
    CHECK_THAT(lrpe_shape([&](lrpe_call& c) { c.theta = c.at(1, extents); }),
               says(message("theta of shape [3, 4], [3, 1] or [1, 4]; got ", text)));
  const std::pair<extent_list, const char*> positions[] = {
      {{}, "[2, 5] for positions; got []"},         {{4}, "[5] for positions; got [4]"},
      {{1}, "[5] for positions; got [1]"},          {{5, 2}, "[2, 5] for positions; got [5, 2]"},
      {{1, 5}, "[2, 5] for positions; got [1, 5]"}, {{2, 5, 1}, "[2, 5] for positions; got [2, 5, 1]"}};
  for (const auto& [extents, text] : positions)
    CHECK_THAT(lrpe_shape([&](lrpe_call& c) { c.options.positions = c.positions(extents); }), says(text));
  CHECK_THAT(error_of<shape_error>(&lrpe_call::forward, [](lrpe_call& c) { c.y = c.at(2, {2, 5, 3, 4}); }),
             says("shape [2, 5, 3, 8] for y; got [2, 5, 3, 4]"));
  CHECK_THAT(
      shape_of_gradients<lrpe_call>([](lrpe_call& c) { c.gradients.y_cotangent = c.at(3, {2, 5, 8, 3}); }),
      says("shape [2, 5, 3, 8] for y_cotangent; got [2, 5, 8, 3]"));
  CHECK_THAT(
      shape_of_gradients<lrpe_call>([](lrpe_call& c) { c.gradients.x_gradient = c.at(4, {2, 5, 3, 8}); }),
      says("shape [2, 5, 3, 4] for x_gradient; got [2, 5, 3, 8]"));
  CHECK_THAT(
      shape_of_gradients<lrpe_call>([](lrpe_call& c) { c.gradients.theta_gradient = c.at(5, {1, 4}); }),
      says("shape [3, 4] for theta_gradient; got [1, 4]"));
  CHECK_THAT(shape_of_gradients<lrpe_call>([](lrpe_call& c) { c.theta = c.at(1, {3, 1}); }),
             says("shape [3, 1] for theta_gradient; got [3, 4]"));
}

TEST_CASE("element types that lrpe_cosine does not take", "[ops][lrpe][errors]") {
  for (const dtype type : {dtype::int32, dtype::int64})
    CHECK_THAT(lrpe_dtype([=](lrpe_call& c) { c.x.type = type; }),
               says(message("float32, float64, bfloat16 or float16 for x; got ", name_of(type))));
  CHECK_THAT(lrpe_dtype([](lrpe_call& c) { c.theta.type = dtype::float64; }),
             says("float32 for theta; got float64"));
  CHECK_THAT(lrpe_dtype([](lrpe_call& c) {
               c.x.type = dtype::float16;
               c.theta.type = dtype::bfloat16;
             }),
             says("float32 or float16 for theta; got bfloat16"));
  CHECK_THAT(lrpe_dtype([](lrpe_call& c) { c.theta.type = dtype::int64; }),
             says("float32 for theta; got int64"));
  CHECK_THAT(lrpe_dtype([](lrpe_call& c) {
               c.options.positions = c.positions({5});
               c.options.positions->type = dtype::float32;
             }),
             says("int32 or int64 for positions; got float32"));
  CHECK_THAT(error_of<dtype_error>(&lrpe_call::forward, [](lrpe_call& c) { c.y.type = dtype::bfloat16; }),
             says("float32 for y; got bfloat16"));
  CHECK_THAT(
      dtype_of_gradients<lrpe_call>([](lrpe_call& c) { c.gradients.y_cotangent.type = dtype::float64; }),
      says("float32 for y_cotangent; got float64"));
  CHECK_THAT(
      dtype_of_gradients<lrpe_call>([](lrpe_call& c) { c.gradients.x_gradient->type = dtype::float16; }),
      says("float32 for x_gradient; got float16"));
  CHECK_THAT(
      dtype_of_gradients<lrpe_call>([](lrpe_call& c) { c.gradients.theta_gradient->type = dtype::int32; }),
      says("float32 for theta_gradient; got int32"));
}

TEST_CASE("positions beyond 31 bits are argument_errors without float64", "[ops][lrpe][errors]") {
  const std::int64_t limit = std::int64_t{1} << 31;
  for (const std::int64_t offset :
       {limit - 4, limit, 2 * limit, -limit - 1, -2 * limit, int64_most, int64_most - 2, int64_least}) {
    const auto move = [=](lrpe_call& c) { c.options.offset = offset; };
    CHECK_THAT(lrpe_argument(move), says(message("positions of at most 31 bits; got offset ", offset)));
  }
  for (const std::int64_t offset : {limit - 5, -limit})
    for (void (lrpe_call::*entry)() : {&lrpe_call::forward, &lrpe_call::backward}) {
      lrpe_call call;
      call.options.offset = offset;
      CHECK_NOTHROW((call.*entry)());
    }
  // Positions replace the offset, float64 has room.
  lrpe_call call;
  call.options.offset = limit;
  call.options.positions = call.positions({5});
  CHECK_NOTHROW(call.forward());
  call.options.positions.reset();
  for (array* each : {&call.x, &call.theta, &call.y}) each->type = dtype::float64;
  CHECK_NOTHROW(call.forward());
}

TEST_CASE("an activation that there is not, a softmax along other dimensions", "[ops][lrpe][errors]") {
  for (const int act : {5, -1, 1000})
    CHECK_THAT(lrpe_argument([=](lrpe_call& c) { c.options.act = static_cast<ops::lrpe_activation>(act); }),
               says(message("an activation of lrpe_activation; got ", act)));
  for (const int act_dim : {0, 2, 4, -2, -4, std::numeric_limits<int>::min()}) {
    const auto spoil = [=](lrpe_call& c) {
      c.options.act = ops::lrpe_activation::softmax;
      c.options.act_dim = act_dim;
    };
    CHECK_THAT((error_of_both<index_error, lrpe_call>(spoil)),
               says(message("act_dim -1, the features, or 1, the sequence; got ", act_dim)));
  }
}

TEST_CASE("null memory and const outputs of encodings are argument_errors", "[ops][lrpe][errors]") {
  CHECK_THAT(lrpe_argument([](lrpe_call& c) { c.x.data = nullptr; }), says("memory for x; got a null"));
  CHECK_THAT(lrpe_argument([](lrpe_call& c) { c.theta.data = nullptr; }), says("memory for theta; got"));
  CHECK_THAT(lrpe_argument([](lrpe_call& c) {
               c.options.positions = c.positions({5});
               c.options.positions->data = nullptr;
             }),
             says("memory for positions; got a null pointer"));
  CHECK_THAT(md_argument([](md_lrpe_call& c) { c.x.data = nullptr; }), says("memory for x; got a null"));
  CHECK_THAT(md_argument([](md_lrpe_call& c) { c.theta.data = nullptr; }), says("memory for theta; got"));
  CHECK_THAT(md_argument([](md_lrpe_call& c) {
               c.with_table();
               c.options.angles->data = nullptr;
             }),
             says("memory for angles; got a null pointer"));
  const auto outputs = [](auto forward, auto backward, auto example) {
    using call = decltype(example);
    CHECK_THAT((error_of<argument_error, call>(forward, [](call& c) { c.y.data = nullptr; })),
               says("memory for y; got a null pointer"));
    CHECK_THAT((error_of<argument_error, call>(forward, [](call& c) { c.y.writable = false; })),
               says("output y; got a view of const"));
    CHECK_THAT(
        (error_of<argument_error, call>(backward, [](call& c) { c.gradients.y_cotangent.data = nullptr; })),
        says("memory for dy; got a null pointer"));
    CHECK_THAT(
        (error_of<argument_error, call>(backward, [](call& c) { c.gradients.x_gradient->writable = false; })),
        says("output dx; got a view of const"));
    CHECK_THAT((error_of<argument_error, call>(backward,
                                               [](call& c) { c.gradients.theta_gradient->data = nullptr; })),
               says("memory for dtheta; got a null pointer"));
  };
  outputs(&lrpe_call::forward, &lrpe_call::backward, lrpe_call{});
  outputs(&md_lrpe_call::forward, &md_lrpe_call::backward, md_lrpe_call{});
}

TEST_CASE("outputs of encodings that share memory are overlap_errors", "[ops][lrpe][errors]") {
  const auto outputs = [](auto forward, auto backward, auto example) {
    using call = decltype(example);
    const auto shared = [](array& operand, const array& output) { operand.data = output.data; };
    CHECK_THAT((error_of<overlap_error, call>(forward, [=](call& c) { shared(c.x, c.y); })),
               says("the output y apart from x"));
    CHECK_THAT((error_of<overlap_error, call>(forward, [=](call& c) { shared(c.theta, c.y); })),
               says("the output y apart from theta"));
    CHECK_THAT((error_of<overlap_error, call>(forward, [=](call& c) { c.y.strides[0] = 0; })),
               says("each element of the output y"));
    CHECK_THAT((error_of<overlap_error, call>(
                   backward, [=](call& c) { shared(*c.gradients.theta_gradient, *c.gradients.x_gradient); })),
               says("apart from"));
    CHECK_THAT((error_of<overlap_error, call>(
                   backward, [=](call& c) { shared(c.theta, *c.gradients.theta_gradient); })),
               says("the output dtheta apart from theta"));
  };
  outputs(&lrpe_call::forward, &lrpe_call::backward, lrpe_call{});
  outputs(&md_lrpe_call::forward, &md_lrpe_call::backward, md_lrpe_call{});
}

TEST_CASE("grids that md_lrpe_cosine does not take", "[ops][lrpe][errors]") {
  const auto both_and_angles = [](const std::function<void(md_lrpe_call&)>& spoil, const char* text) {
    CHECK_THAT(md_shape(spoil), says(text));
    CHECK_THAT((error_of<shape_error, md_lrpe_call>(&md_lrpe_call::angles, spoil)), says(text));
  };
  both_and_angles([](md_lrpe_call& c) { c.shape = {}; }, "a grid of 1 to 16 sizes; got 0");
  both_and_angles([](md_lrpe_call& c) { c.shape.assign(17, 1); }, "a grid of 1 to 16 sizes; got 17");
  both_and_angles([](md_lrpe_call& c) { c.shape = {2, -3}; }, "product is below 2^31; got [2, -3]");
  both_and_angles([](md_lrpe_call& c) { c.shape = {1 << 16, 1 << 15}; }, "2^31; got [65536, 32768]");
  both_and_angles([](md_lrpe_call& c) { c.shape = {2, int64_most}; }, "2^31; got [2, 9223372036854775807]");
  // Tokens that are not there.
  CHECK_THAT(md_shape([](md_lrpe_call& c) { c.shape = {2, 2}; }),
             says("x of shape [b, h, 5, d], a token for each place of the grid; got [2, 3, 7, 5]"));
  CHECK_THAT(md_shape([](md_lrpe_call& c) { c.options.extra_tokens = 0; }), says("x of shape [b, h, 6, d]"));
  CHECK_THAT(md_shape([](md_lrpe_call& c) { c.shape = {2, 0}; }), says("x of shape [b, h, 1, d]"));
  const auto with_tokens = [](const std::int64_t tokens) {
    return [=](md_lrpe_call& c) { c.options.extra_tokens = tokens; };
  };
  for (const std::int64_t tokens : {std::int64_t{-1}, int64_least, int64_most}) {
    const std::string text = message("extra_tokens from 0 to 2^62; got ", tokens);
    CHECK_THAT(md_argument(with_tokens(tokens)), says(text));
    CHECK_THAT((error_of<argument_error, md_lrpe_call>(&md_lrpe_call::angles, with_tokens(tokens))),
               says(text));
  }
}

TEST_CASE("shapes that md_lrpe_cosine does not take", "[ops][lrpe][errors]") {
  for (const extent_list& extents : {extent_list{}, {7, 5}, {6, 7, 5}, {1, 2, 3, 7, 5}})
    CHECK_THAT(md_shape([&](md_lrpe_call& c) { c.x = c.at(0, extents); }),
               says("x of shape [b, h, 7, d], a token for each place of the grid; got ["));
  // ceil(5 / 2) features of each dimension.
  for (const extent_list& extents : {extent_list{3, 2}, {3, 5}, {2, 3}, {1, 3}, {3, 1}, {3}, {3, 3, 1}})
    CHECK_THAT(md_shape([&](md_lrpe_call& c) { c.theta = c.at(1, extents); }),
               says("shape [3, 3] for theta; got ["));
  CHECK_THAT(md_shape([](md_lrpe_call& c) { c.theta = c.at(1, {3, 5}); }), says("got [3, 5]"));
  for (const extent_list& extents : {extent_list{7, 5}, {3, 6, 5}, {2, 3, 7, 5}, {3, 7, 3}})
    CHECK_THAT(md_shape([&](md_lrpe_call& c) {
                 c.with_table();
                 c.options.angles = c.at(6, extents);
               }),
               says("shape [3, 7, 5] for angles; got ["));
  CHECK_THAT((error_of<shape_error, md_lrpe_call>(&md_lrpe_call::forward,
                                                  [](md_lrpe_call& c) { c.y = c.at(2, {2, 3, 7, 5}); })),
             says("shape [2, 3, 7, 10] for y; got [2, 3, 7, 5]"));
  CHECK_THAT(shape_of_gradients<md_lrpe_call>(
                 [](md_lrpe_call& c) { c.gradients.y_cotangent = c.at(3, {2, 7, 3, 10}); }),
             says("shape [2, 3, 7, 10] for y_cotangent; got [2, 7, 3, 10]"));
  CHECK_THAT(shape_of_gradients<md_lrpe_call>(
                 [](md_lrpe_call& c) { c.gradients.x_gradient = c.at(4, {2, 3, 7, 10}); }),
             says("shape [2, 3, 7, 5] for x_gradient; got [2, 3, 7, 10]"));
  CHECK_THAT(
      shape_of_gradients<md_lrpe_call>([](md_lrpe_call& c) { c.gradients.theta_gradient = c.at(5, {9}); }),
      says("shape [3, 3] for theta_gradient; got [9]"));
}

TEST_CASE("element types that md_lrpe_cosine does not take", "[ops][lrpe][errors]") {
  CHECK_THAT(md_dtype([](md_lrpe_call& c) { c.x.type = dtype::int32; }),
             says("float32, float64, bfloat16 or float16 for x; got int32"));
  CHECK_THAT(md_dtype([](md_lrpe_call& c) { c.theta.type = dtype::bfloat16; }),
             says("float32 for theta; got bfloat16"));
  CHECK_THAT(md_dtype([](md_lrpe_call& c) {
               c.with_table();
               c.options.angles->type = dtype::float64;
             }),
             says("float32 for angles; got float64"));
  CHECK_THAT((error_of<dtype_error, md_lrpe_call>(&md_lrpe_call::forward,
                                                  [](md_lrpe_call& c) { c.y.type = dtype::float16; })),
             says("float32 for y; got float16"));
  CHECK_THAT(dtype_of_gradients<md_lrpe_call>(
                 [](md_lrpe_call& c) { c.gradients.y_cotangent.type = dtype::float16; }),
             says("float32 for y_cotangent; got float16"));
  CHECK_THAT(dtype_of_gradients<md_lrpe_call>(
                 [](md_lrpe_call& c) { c.gradients.x_gradient->type = dtype::bfloat16; }),
             says("float32 for x_gradient; got bfloat16"));
  CHECK_THAT(dtype_of_gradients<md_lrpe_call>(
                 [](md_lrpe_call& c) { c.gradients.theta_gradient->type = dtype::float64; }),
             says("float32 for theta_gradient; got float64"));
}

TEST_CASE("a gradient of theta beside angles is an argument_error", "[ops][lrpe][errors]") {
  CHECK_THAT((error_of<argument_error, md_lrpe_call>(&md_lrpe_call::backward,
                                                     [](md_lrpe_call& c) {
                                                       const auto wanted = c.gradients.theta_gradient;
                                                       c.with_table();
                                                       c.gradients.theta_gradient = wanted;
                                                     })),
             says("no theta_gradient beside angles; got both"));
  // With angles nobody looks at theta.
  md_lrpe_call call;
  call.with_table();
  call.theta = array{};
  CHECK_NOTHROW(call.forward());
  CHECK_NOTHROW(call.backward());
}

TEST_CASE("operands that md_lrpe_angles does not take", "[ops][lrpe][errors]") {
  using call = md_lrpe_call;
  const auto shapes = [](const std::function<void(call&)>& spoil) {
    return error_of<shape_error, call>(&call::angles, spoil);
  };
  const std::string wanted = "theta of shape [h, e] and angles of shape [h, 7, d], where e = ceil(d / 2)";
  CHECK_THAT(shapes([](call& c) { c.theta = c.at(1, {9}); }), says(wanted + "; got [9] and [3, 7, 5]"));
  CHECK_THAT(shapes([](call& c) { c.theta = c.at(1, {3, 2}); }), says(wanted + "; got [3, 2] and"));
  CHECK_THAT(shapes([](call& c) { c.theta = c.at(1, {1, 3}); }), says(wanted + "; got [1, 3] and"));
  CHECK_THAT(shapes([](call& c) { c.table = c.at(2, {3, 35}); }), says(wanted + "; got [3, 3] and [3, 35]"));
  CHECK_THAT(shapes([](call& c) { c.table = c.at(2, {3, 6, 5}); }), says("and [3, 6, 5]"));
  CHECK_THAT(shapes([](call& c) { c.table = c.at(2, {3, 7, 7}); }), says("and [3, 7, 7]"));
  const auto dtypes = [](const std::function<void(call&)>& spoil) {
    return error_of<dtype_error, call>(&call::angles, spoil);
  };
  for (const dtype type : {dtype::bfloat16, dtype::float16, dtype::int32})
    CHECK_THAT(dtypes([=](call& c) { c.theta.type = type; }),
               says(message("float32 or float64 for theta; got ", name_of(type))));
  CHECK_THAT(dtypes([](call& c) { c.table.type = dtype::float64; }), says("float32 for angles; got float64"));
  const auto arguments = [](const std::function<void(call&)>& spoil) {
    return error_of<argument_error, call>(&call::angles, spoil);
  };
  CHECK_THAT(arguments([](call& c) { c.theta.data = nullptr; }), says("memory for theta; got a null"));
  CHECK_THAT(arguments([](call& c) { c.table.data = nullptr; }), says("memory for angles; got a null"));
  CHECK_THAT(arguments([](call& c) { c.table.writable = false; }),
             says("output angles; got a view of const"));
  CHECK_THAT((error_of<overlap_error, call>(&call::angles, [](call& c) { c.theta.data = c.table.data; })),
             says("the output angles apart from theta"));
}
