#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"

using namespace scandsl;

// run<P> itself: bindings, what it rejects, and that a rejected call writes nothing.

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"s"> segment;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"h"> h;
constexpr tensor<"cu"> cu;
constexpr tensor<"final"> final_state;
constexpr scalar<"chunk"> chunk;
constexpr scalar<"scale"> scale;

constexpr auto scanned =
    scan(plain_sum,
         over(n).restart_every(chunk).restart_at(cu(segment)).starting_from(value_or(h(segment, b), 0.0)),
         value_or(scale, 1.0) * x(b, n));
inline constexpr auto sums =
    op<"sums">(out<"y">(b, n) = scanned, out<"final">(segment, b).optional() = last(scanned));

inline constexpr auto shares =
    op<"softmax">(out<"y">(b, n) = exp(x(b, n) - last(scan(log_add_exp, over(n), x(b, n)))));

/// A store before the sweep, of a tensor that the sweep reads.
inline constexpr auto early =
    op<"early">(out<"y">(b) = h(b) * 2.0, out<"final">(b, n) = scan(plain_sum, over(n), x(b, n)) + h(b));

constexpr float sentinel = 77;

/// Operands of `sums` as they should be: x and y [2, 3], cu [3] for two sequences, h and final [2, 2]. A test
/// spoils one of them.
struct good_operands {
  float x_memory[6] = {1, 2, 3, 4, 5, 6}, y_memory[6], h_memory[4] = {0, 0, 0, 0}, final_memory[4];
  std::int64_t cu_memory[3] = {0, 1, 3};
  erased_view x_view = erase(view(x_memory, 2, 3));
  erased_view y_view = erase(view(y_memory, 2, 3));
  erased_view h_view = erase(view(h_memory, 2, 2));
  erased_view cu_view = erase(view(cu_memory, 3));
  erased_view final_view = erase(view(final_memory, 2, 2));
  double interval = 0;

  good_operands() {
    std::fill(std::begin(y_memory), std::end(y_memory), sentinel);
    std::fill(std::begin(final_memory), std::end(final_memory), sentinel);
  }
  good_operands(const good_operands&) = delete;

  void run_sums() {
    run<sums>(cpu{1}, x = x_view, y = y_view, h = h_view, cu = cu_view, final_state = final_view,
              chunk = interval);
  }
  bool is_unwritten() const {
    bool same = x_memory[0] == 1 && x_memory[5] == 6;
    for (const float each : y_memory) same = same && each == sentinel;
    for (const float each : final_memory) same = same && each == sentinel;
    return same;
  }
};

/// The message of the Error that a spoilt call throws; it has written nothing by then.
template <class Error, class Spoil> std::string error_of(Spoil spoil) {
  good_operands operands;
  spoil(operands);
  std::string text = "no error";
  try {
    operands.run_sums();
  } catch (const Error& e) {
    text = e.what();
  } catch (const std::exception& e) {
    text = std::string("another error: ") + e.what();
  }
  CHECK(operands.is_unwritten());
  return text;
}
auto says(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }

}  // namespace

TEST_CASE("the operands that the errors start from are right", "[exec][run]") {
  good_operands operands;
  operands.run_sums();
  CHECK(std::vector<float>(operands.y_memory, operands.y_memory + 6) ==
        std::vector<float>{1, 2, 5, 4, 5, 11});
  CHECK(std::vector<float>(operands.final_memory, operands.final_memory + 4) ==
        std::vector<float>{1, 4, 5, 11});
}

TEST_CASE("an optional operand that is not bound has its fallback", "[exec][run]") {
  float in[3] = {1, 2, 3}, result[3];
  run<sums>(cpu{}, x = view(std::as_const(in), 1, 3), y = view(result, 1, 3), chunk = 0);
  CHECK(std::vector<float>(result, result + 3) == std::vector<float>{1, 3, 6});
  run<sums>(cpu{}, x = view(in, 1, 3), out<"y"> = view(result, 1, 3), chunk = 2, scale = 10);
  CHECK(std::vector<float>(result, result + 3) == std::vector<float>{10, 30, 30});
  run<sums>(cpu{}, x = view(in, 1, 3), y = view(result, 1, 3), chunk = 2.0F,
            cu = std::optional<erased_view>(), final_state = std::optional<erased_view>());
  CHECK(std::vector<float>(result, result + 3) == std::vector<float>{1, 3, 3});
}

TEST_CASE("a restart interval that is no positive number means none", "[exec][run]") {
  float in[3] = {1, 2, 3}, result[3];
  for (const double interval : std::vector<double>{0.0, -1.0, 0.5, 3.0, 1e300, inf, std::nan("")}) {
    run<sums>(cpu{}, x = view(in, 1, 3), y = view(result, 1, 3), chunk = interval);
    INFO(interval);
    CHECK(result[2] == 6);
  }
}

TEST_CASE("ranks and extents that do not fit are errors", "[exec][run]") {
  CHECK_THAT(error_of<shape_error>([](auto& o) { o.x_view = erase(view(o.x_memory, 6)); }),
             says("rank 2 for x; got rank 1"));
  CHECK_THAT(error_of<shape_error>([](auto& o) { o.y_view = erase(view(o.y_memory, 2, 3, 1)); }),
             says("rank 2 for y; got rank 3"));
  CHECK_THAT(error_of<shape_error>([](auto& o) { o.cu_view = erase(view(o.cu_memory, 3, 1)); }),
             says("rank 1 for cu; got rank 2"));
  CHECK_THAT(error_of<shape_error>([](auto& o) { o.y_view = erase(view(o.y_memory, 2, 2)); }),
             says("extent 3 of axis n, as x has it; got extent 2 in y"));
  CHECK_THAT(error_of<shape_error>([](auto& o) { o.x_view = erase(view(o.x_memory, 1, 3)); }),
             says("axis b"));
  CHECK_THAT(error_of<shape_error>([](auto& o) { o.h_view = erase(view(o.h_memory, 1, 2)); }),
             says("extent 2 of axis s, as cu has it; got extent 1 in h"));
  CHECK_THAT(error_of<shape_error>([](auto& o) { o.final_view = erase(view(o.final_memory, 2, 1)); }),
             says("final"));
  CHECK_THAT(error_of<shape_error>([](auto& o) { o.x_view = erase(view(o.x_memory, 0, 3)); }),
             says("axis b"));
  // 6 positions as (2, 3) and as (3, 2) have no common dimensions.
  CHECK_THAT(error_of<shape_error>([](auto& o) {
               o.x_view = erase(view(o.x_memory, dim{1, 6}, dims{{2, 3}, {3, 1}}));
               o.y_view = erase(view(o.y_memory, dim{1, 6}, dims{{3, 2}, {2, 1}}));
             }),
             says("a different split in y"));
}

TEST_CASE("states of several sequences need their offsets", "[exec][run]") {
  float in[6] = {}, result[6] = {}, states[4] = {sentinel, sentinel, sentinel, sentinel};
  CHECK_THROWS_AS(run<sums>(cpu{}, x = view(in, 2, 3), y = view(result, 2, 3), chunk = 0,
                            final_state = view(states, 2, 2)),
                  shape_error);
  CHECK_THROWS_AS(
      run<sums>(cpu{}, x = view(in, 2, 3), y = view(result, 2, 3), chunk = 0, h = view(states, 2, 2)),
      shape_error);
  CHECK(states[0] == sentinel);
  CHECK_NOTHROW(run<sums>(cpu{}, x = view(in, 2, 3), y = view(result, 2, 3), chunk = 0,
                          final_state = view(states, 1, 2)));
}

TEST_CASE("element types that a tensor does not take are errors", "[exec][run]") {
  CHECK_THAT(error_of<dtype_error>([](auto& o) { o.x_view.type = dtype::int32; }), says("for x; got int32"));
  CHECK_THAT(error_of<dtype_error>([](auto& o) { o.y_view.type = dtype::int64; }), says("for y; got int64"));
  CHECK_THAT(error_of<dtype_error>([](auto& o) { o.cu_view.type = dtype::float32; }),
             says("offsets cu; got float32"));
  CHECK_THAT(error_of<dtype_error>([](auto& o) { o.h_view.type = dtype::int32; }), says("for h; got int32"));
}

TEST_CASE("null memory and const outputs are errors", "[exec][run]") {
  CHECK_THAT(error_of<argument_error>([](auto& o) { o.x_view.data = nullptr; }),
             says("memory for x; got a null pointer"));
  CHECK_THAT(error_of<argument_error>([](auto& o) { o.y_view.data = nullptr; }), says("memory for y"));
  CHECK_THAT(error_of<argument_error>([](auto& o) { o.cu_view.data = nullptr; }), says("memory for cu"));
  CHECK_THAT(error_of<argument_error>([](auto& o) { o.final_view.data = nullptr; }),
             says("memory for final"));
  CHECK_THAT(
      error_of<argument_error>([](auto& o) { o.y_view = erase(view(std::as_const(o.y_memory), 2, 3)); }),
      says("the output y; got a view of const"));
}

TEST_CASE("offsets run from 0 to the extent without decreasing", "[exec][run]") {
  const auto with = [](std::int64_t first, std::int64_t second, std::int64_t third) {
    return error_of<argument_error>([=](auto& o) {
      o.cu_memory[0] = first;
      o.cu_memory[1] = second;
      o.cu_memory[2] = third;
    });
  };
  CHECK_THAT(with(1, 2, 3), says("cu starting at 0; got 1"));
  CHECK_THAT(with(-1, 2, 3), says("cu starting at 0; got -1"));
  CHECK_THAT(with(0, 1, 2), says("cu ending at 3, the extent of n; got 2"));
  CHECK_THAT(with(0, 1, 4), says("got 4"));
  CHECK_THAT(with(0, 4, 3), says("does not decrease; got 4 then 3"));
  CHECK_THAT(with(0, -1, 3), says("does not decrease; got 0 then -1"));
  CHECK_THAT(error_of<shape_error>([](auto& o) { o.cu_view = erase(view(o.cu_memory, 0)); }),
             says("at least one offset in cu"));
  CHECK_THAT(error_of<argument_error>([](auto& o) {
               o.cu_view = erase(view(o.cu_memory, 1));
               o.h_view = erase(view(o.h_memory, 0, 2));
               o.final_view = erase(view(o.final_memory, 0, 2));
             }),
             says("cu ending at 3"));
}

TEST_CASE("outputs that share memory are errors", "[exec][run]") {
  CHECK_THAT(
      error_of<overlap_error>([](auto& o) { o.y_view = erase(view(o.y_memory, dim{2, 0}, dim{3, 1})); }),
      says("each element of the output y"));
  CHECK_THAT(
      error_of<overlap_error>([](auto& o) { o.y_view = erase(view(o.y_memory, dim{2, 1}, dim{3, 1})); }),
      says("each element of the output y"));
  CHECK_THAT(error_of<overlap_error>([](auto& o) {  // the same memory in another order
               o.x_view = erase(view(o.y_memory, dim{2, 1}, dim{3, 2}));
             }),
             says("the output y apart from x"));
  CHECK_THAT(error_of<overlap_error>([](auto& o) { o.h_view = erase(view(o.y_memory, 2, 2)); }),
             says("the output y apart from h"));
  CHECK_THAT(error_of<overlap_error>([](auto& o) { o.final_view = erase(view(o.y_memory + 2, 2, 2)); }),
             says("apart from"));
  CHECK_THAT(error_of<overlap_error>([](auto& o) {  // shifted by one element
               o.x_view = erase(view(o.y_memory + 1, dim{2, 2}, dim{3, 1}));
             }),
             says("the output y apart from x"));
  CHECK_THAT(error_of<overlap_error>(
                 [](auto& o) { o.y_view = erase(view(reinterpret_cast<bfloat16*>(o.x_memory), 2, 3)); }),
             says("the output y apart from x"));
}

TEST_CASE("an output may be the very view of an input where one sweep reads it", "[exec][run]") {
  float memory[6] = {1, 2, 3, 4, 5, 6}, states[2] = {10, 20};
  run<sums>(cpu{}, x = view(memory, 2, 3), y = view(memory, 2, 3), h = view(states, 1, 2),
            final_state = view(states, 1, 2), chunk = 0);
  CHECK(std::vector<float>(memory, memory + 6) == std::vector<float>{11, 13, 16, 24, 29, 35});
  CHECK(std::vector<float>(states, states + 2) == std::vector<float>{16, 35});
  // Interleaved, but apart.
  float both[6] = {1, 0, 2, 0, 3, 0};
  run<sums>(cpu{}, x = view(both, dim{1, 6}, dim{3, 2}), y = view(both + 1, dim{1, 6}, dim{3, 2}), chunk = 0);
  CHECK(std::vector<float>(both, both + 6) == std::vector<float>{1, 1, 2, 3, 3, 6});
}

TEST_CASE("the last of several sweeps may write where the ones before it read", "[exec][run]") {
  for (const std::int64_t length : {3, 20000}) {  // lanes, and a row in pieces
    std::vector<float> memory(static_cast<std::size_t>(length)), apart(memory.size());
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i % 7);
    run<shares>(cpu{2}, x = view(memory.data(), 1, length), y = view(apart.data(), 1, length));
    run<shares>(cpu{2}, x = view(memory.data(), 1, length), y = view(memory.data(), 1, length));
    CHECK(memory == apart);
  }
}

TEST_CASE("in place is an error where a later sweep reads the input again", "[exec][run]") {
  float memory[6] = {1, 2, 3, 4, 5, 6};
  float states[2] = {1, 2}, result[6];
  CHECK_THROWS_AS(run<early>(cpu{}, x = view(memory, 2, 3), h = view(states, 2), y = view(states, 2),
                             final_state = view(result, 2, 3)),
                  overlap_error);
  CHECK(states[1] == 2);
}

TEST_CASE("long rows work in place", "[exec][run][pieces]") {
  std::vector<float> memory(20000, 1.0F);
  run<sums>(cpu{2}, x = view(memory.data(), 1, 20000), y = view(memory.data(), 1, 20000), chunk = 0);
  bool right = true;
  for (std::size_t i = 0; i < memory.size(); ++i) right = right && memory[i] == static_cast<float>(i + 1);
  CHECK(right);
}

TEST_CASE("no elements need no memory", "[exec][run]") {
  float states[2] = {1, 2}, finals[2] = {};
  float* const none = nullptr;
  run<sums>(cpu{}, x = view(none, 2, 0), y = view(none, 2, 0), h = view(states, 1, 2),
            final_state = view(finals, 1, 2), chunk = 4);
  CHECK(finals[1] == 2);
  run<sums>(cpu{}, x = view(none, 0, 5), y = view(none, 0, 5), h = view(none, 1, 0),
            final_state = view(none, 1, 0), chunk = 4);
  const std::int32_t boundaries[1] = {0};
  run<sums>(cpu{}, x = view(none, 2, 0), y = view(none, 2, 0), cu = view(boundaries, 1),
            final_state = view(none, 0, 2), chunk = 4);
}
