#include "ops/error_of.hpp"
#include "ops/op_case.hpp"
#include "scandsl/ops/chunk_cumsum_decay.hpp"
#include "scandsl/ops/decayed_sum.hpp"
#include "scandsl/ops/logcumsumexp.hpp"
#include "support/catch.hpp"

using namespace op_test;

namespace {

constexpr float sentinel = 77;

/// Operands of a call on x [2, 3] along dimension 1 with two packed sequences, all of them right. A test
/// spoils one.
struct call {
  memory_of<float> memory[6] = {memory_of<float>(24, 1),        memory_of<float>(24, sentinel),
                                memory_of<float>(24, 0.5F),     memory_of<float>(24, 0),
                                memory_of<float>(24, sentinel), memory_of<float>(24, 1)};
  memory_of<std::int32_t> boundaries{0, 1, 3};
  array x = array::of(memory[0].data(), {2, 3}), y = array::of(memory[1].data(), {2, 3}),
        decay = array::of(memory[2].data(), {2, 3});
  std::optional<array> initial = array::of(memory[3].data(), {2, 2}),
                       final_state = array::of(memory[4].data(), {2, 2}),
                       cu_seqlens = array::of(boundaries.data(), {3});
  int dim = 1;
  std::int64_t chunk_size = 2;

  void fill(ops::scan_options& options) const {
    options.initial_state = initial;
    options.final_state = final_state;
    options.cu_seqlens = cu_seqlens;
  }
  void logcumsumexp() {
    ops::scan_options options;
    fill(options);
    run_on_device([&](auto& device) { ops::logcumsumexp(device, x, dim, y, options); });
  }
  void decayed_sum() {
    ops::decayed_sum_options options;
    fill(options);
    run_on_device([&](auto& device) { ops::decayed_sum(device, x, decay, dim, y, options); });
  }
  void chunk_cumsum_decay() {
    ops::chunk_cumsum_options options;
    options.dim = dim;
    options.chunk_size = chunk_size;
    options.cu_seqlens = cu_seqlens;
    run_on_device([&](auto& device) { ops::chunk_cumsum_decay(device, x, y, options); });
  }
  bool is_unwritten() const {
    for (const int output : {1, 4})
      for (const float each : memory[output])
        if (each != sentinel) return false;
    return true;
  }
};
using op_call = void (call::*)();

struct named_op {
  op_call run;
  const char* input;  ///< what the op calls x
  bool has_states;
};
const named_op every_op[] = {{&call::logcumsumexp, "x", true},
                             {&call::decayed_sum, "x", true},
                             {&call::chunk_cumsum_decay, "log_decay", false}};

}  // namespace

TEST_CASE("the operands that the errors start from are right", "[ops][errors]") {
  for (const named_op& each : every_op) {
    call operands;
    CHECK_NOTHROW((operands.*each.run)());
    CHECK(!operands.is_unwritten());
  }
}

TEST_CASE("a dimension outside of x is an index_error", "[ops][errors]") {
  for (const named_op& each : every_op) {
    for (const int dim : {2, -3, 100, std::numeric_limits<int>::min()}) {
      const std::string text = error_of<index_error>(each.run, [=](call& c) { c.dim = dim; });
      CHECK_THAT(text, says(std::string("dim in [-2, 2) for ") + each.input));
      CHECK_THAT(text, says(std::to_string(dim)));
    }
    CHECK_THAT(
        error_of<index_error>(each.run, [](call& c) { c.x = c.y = array::of(c.memory[0].data(), {}); }),
        says("rank 0"));
  }
}

TEST_CASE("shapes that do not match are shape_errors that name the argument", "[ops][errors]") {
  for (const named_op& each : every_op) {
    CHECK_THAT(error_of<shape_error>(each.run, [](call& c) { c.y = array::of(c.memory[1].data(), {3, 2}); }),
               says("shape [2, 3] for y; got [3, 2]"));
    CHECK_THAT(error_of<shape_error>(each.run, [](call& c) { c.y = array::of(c.memory[1].data(), {6}); }),
               says("for y; got [6]"));
    CHECK_THAT(error_of<shape_error>(each.run,
                                     [](call& c) { c.cu_seqlens = array::of(c.boundaries.data(), {3, 1}); }),
               says("cu_seqlens of shape [S + 1]; got [3, 1]"));
    CHECK_THAT(
        error_of<shape_error>(each.run, [](call& c) { c.cu_seqlens = array::of(c.boundaries.data(), {0}); }),
        says("cu_seqlens"));
    CHECK_THAT(
        error_of<shape_error>(each.run, [](call& c) { c.cu_seqlens = array::of(c.boundaries.data(), {}); }),
        says("cu_seqlens"));
    if (!each.has_states) continue;
    CHECK_THAT(
        error_of<shape_error>(each.run, [](call& c) { c.initial = array::of(c.memory[3].data(), {2}); }),
        says("shape [2, 2] for initial_state; got [2]"));
    CHECK_THAT(error_of<shape_error>(each.run,
                                     [](call& c) { c.final_state = array::of(c.memory[4].data(), {3, 2}); }),
               says("shape [2, 2] for final_state; got [3, 2]"));
    CHECK_THAT(error_of<shape_error>(each.run, [](call& c) { c.cu_seqlens.reset(); }),
               says("shape [2] for initial_state"));
  }
}

TEST_CASE("element types that an op does not take are dtype_errors that name the argument", "[ops][errors]") {
  for (const named_op& each : every_op) {
    for (const dtype type : {dtype::int32, dtype::int64})
      CHECK_THAT(error_of<dtype_error>(each.run, [=](call& c) { c.x.type = type; }),
                 says(message("for ", each.input, "; got ", name_of(type))));
    CHECK_THAT(error_of<dtype_error>(each.run, [](call& c) { c.y.type = dtype::int32; }),
               says("for y; got int32"));
    CHECK_THAT(error_of<dtype_error>(each.run, [](call& c) { c.y.type = dtype::bfloat16; }),
               says("for y; got bfloat16"));
    CHECK_THAT(error_of<dtype_error>(each.run, [](call& c) { c.cu_seqlens->type = dtype::float32; }),
               says("cu_seqlens; got float32"));
    if (!each.has_states) continue;
    CHECK_THAT(error_of<dtype_error>(each.run, [](call& c) { c.initial->type = dtype::bfloat16; }),
               says("for initial_state; got bfloat16"));
    CHECK_THAT(error_of<dtype_error>(each.run, [](call& c) { c.final_state->type = dtype::float64; }),
               says("float32 for final_state; got float64"));
  }
  CHECK_THAT(error_of<dtype_error>(&call::decayed_sum, [](call& c) { c.decay.type = dtype::float64; }),
             says("for decay; got float64"));
  CHECK_THAT(error_of<dtype_error>(&call::decayed_sum, [](call& c) { c.decay.type = dtype::int32; }),
             says("for decay; got int32"));
  // The output of a 16-bit input may be float32 for chunk_cumsum_decay alone.
  CHECK_THAT(error_of<dtype_error>(&call::logcumsumexp, [](call& c) { c.x.type = dtype::float16; }),
             says("float16 for y; got float32"));
  CHECK(error_of<dtype_error>(&call::chunk_cumsum_decay, [](call& c) {
          c.x.type = dtype::float16;
          c.chunk_size = 0;  // gets past y's type
        }).find("another error: expected chunk_size") == 0);
}

TEST_CASE("null memory, const outputs and bad numbers are argument_errors", "[ops][errors]") {
  for (const named_op& each : every_op) {
    CHECK_THAT(error_of<argument_error>(each.run, [](call& c) { c.x.data = nullptr; }),
               says(std::string("memory for ") + each.input));
    CHECK_THAT(error_of<argument_error>(each.run, [](call& c) { c.y.data = nullptr; }), says("memory for y"));
    CHECK_THAT(error_of<argument_error>(each.run, [](call& c) { c.cu_seqlens->data = nullptr; }),
               says("memory for cu_seqlens"));
    CHECK_THAT(error_of<argument_error>(each.run, [](call& c) { c.y.writable = false; }),
               says("output y; got a view of const"));
    const auto offsets = [&](memory_of<std::int32_t> boundaries) {
      return error_of<argument_error>(each.run, [&](call& c) {
        c.boundaries = boundaries;
        c.cu_seqlens->data = c.boundaries.data();
      });
    };
    if (!on_gpu) {  // where nobody looks at the offsets' values
      CHECK_THAT(offsets({1, 2, 3}), says("cu_seqlens starting at 0; got 1"));
      CHECK_THAT(offsets({0, 1, 2}), says("cu_seqlens ending at 3"));
      CHECK_THAT(offsets({0, 4, 3}), says("cu_seqlens that does not decrease; got 4 then 3"));
    }
    if (!each.has_states) continue;
    CHECK_THAT(error_of<argument_error>(each.run, [](call& c) { c.initial->data = nullptr; }),
               says("memory for initial_state"));
    CHECK_THAT(error_of<argument_error>(each.run, [](call& c) { c.final_state->data = nullptr; }),
               says("memory for final_state"));
    CHECK_THAT(error_of<argument_error>(each.run, [](call& c) { c.final_state->writable = false; }),
               says("output final_state"));
  }
  CHECK_THAT(error_of<argument_error>(&call::decayed_sum, [](call& c) { c.decay.data = nullptr; }),
             says("memory for decay"));
  for (const std::int64_t size :
       {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()})
    CHECK_THAT(error_of<argument_error>(&call::chunk_cumsum_decay, [=](call& c) { c.chunk_size = size; }),
               says("chunk_size of at least 1; got " + std::to_string(size)));
}

TEST_CASE("a decay that does not broadcast against x is a shape_error", "[ops][errors]") {
  for (const extent_list& extents : {extent_list{2}, {3, 2}, {2, 2}, {1, 2, 3}, {0}})
    CHECK_THAT(error_of<shape_error>(&call::decayed_sum,
                                     [&](call& c) { c.decay = array::of(c.memory[2].data(), extents); }),
               says("a decay that broadcasts against x of shape [2, 3]; got ["));
}

TEST_CASE("outputs that share memory with another operand are overlap_errors", "[ops][errors]") {
  for (const named_op& each : every_op) {
    CHECK_THAT(
        error_of<overlap_error>(each.run, [](call& c) { c.x = array::of(c.memory[1].data() + 1, {2, 3}); }),
        says(std::string("the output y apart from ") + each.input));
    CHECK_THAT(error_of<overlap_error>(each.run,
                                       [](call& c) { c.y = array::of(c.memory[1].data(), {2, 3}, {0, 1}); }),
               says("each element of the output y"));
    CHECK_THAT(error_of<overlap_error>(each.run,
                                       [](call& c) { c.x = array::of(c.memory[1].data(), {2, 3}, {1, 2}); }),
               says("the output y apart from"));
    if (!each.has_states) continue;
    CHECK_THAT(error_of<overlap_error>(
                   each.run, [](call& c) { c.final_state = array::of(c.memory[1].data(), {2, 2}); }),
               says("final_state"));
  }
  CHECK_THAT(error_of<overlap_error>(&call::decayed_sum,
                                     [](call& c) { c.decay = array::of(c.memory[1].data(), {3}); }),
             says("the output y apart from decay"));
}

TEST_CASE("the largest chunk is no chunk", "[ops][chunk_cumsum_decay]") {
  call operands;
  operands.chunk_size = std::numeric_limits<std::int64_t>::max();
  operands.cu_seqlens.reset();
  operands.chunk_cumsum_decay();
  CHECK(operands.memory[1][2] == 3);
}

TEST_CASE("ranks up to the limit", "[ops]") {
  const memory_of<float> x{1, 2};
  memory_of<float> y(2), state(2);
  const memory_of<std::int32_t> offsets{0, 1, 2};
  const array from = array::of(x.data(), {1, 1, 1, 1, 1, 1, 1, 2}),
              to = array::of(y.data(), {1, 1, 1, 1, 1, 1, 1, 2});
  ops::scan_options options;
  run_on_device([&](auto& device) { ops::logcumsumexp(device, from, 7, to, options); });
  CHECK(y[1] == Approx(std::log(std::exp(1) + std::exp(2))));
  // S is one more dimension of a state.
  options.cu_seqlens = array::of(offsets.data(), {3});
  options.final_state = array::of(state.data(), {2, 1, 1, 1, 1, 1, 1, 1});
  run_on_device([&](auto& device) { ops::logcumsumexp(device, from, 7, to, options); });
  CHECK(state[1] == 2);
}
