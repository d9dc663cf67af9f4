#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"
#include "support/catch.hpp"

// Outputs of calls that no cache holds are written past it (strip_policy::uncached_call_bytes), where whole
// lines are. That changes no bit: each row comes out as when it is computed alone, for which the caches have
// room.

namespace {

using namespace scandsl;

constexpr axis<"r"> r;
constexpr axis<"t"> t;
constexpr axis<"k"> k;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"end"> end;
constexpr tensor<"theta"> theta;

inline constexpr auto summed = op<"summed">(out<"y">(r, t, k) = scan(plain_sum, over(t), x(r, t, k)),
                                            out<"end">(r, k) = last(scan(plain_sum, over(t), x(r, t, k))));
inline constexpr auto summed_back =
    op<"summed_back">(out<"y">(r, t, k) = scan(log_add_exp, over(t).reversed(), x(r, t, k)),
                      out<"end">(r, k) = last(scan(plain_sum, over(t), x(r, t, k))));
inline constexpr auto shares = op<"shares">(out<"y">(r, t, k) = softmax(over(k), x(r, t, k)),
                                            out<"end">(r, k) = last(scan(plain_sum, over(t), x(r, t, k))));
inline constexpr auto turned =
    op<"turned">(out<"y">(r, t, k) = x(r, t, k) * cos_of_product(index(t), theta(k)),
                 out<"end">(r, k) = last(scan(plain_sum, over(t), x(r, t, k))));

constexpr std::int64_t rows = 4, steps = 2048, lanes = 640, row = steps * lanes, count = rows * row;
static_assert(2 * 4 * count >= strip_policy::uncached_call_bytes &&
              4 * count >= strip_policy::uncached_output_bytes);
static_assert(2 * 4 * row < strip_policy::uncached_call_bytes);

/// Numbers, the first one so many behind where a line begins.
class numbers {
public:
  numbers(std::int64_t size, std::int64_t behind)
      : memory_(static_cast<float*>(::operator new(bytes(size + behind), line))),
        data(memory_.get() + behind) {
    std::memset(data, 0xff, static_cast<std::size_t>(size) * sizeof(float));  // NaNs
  }

private:
  static constexpr std::align_val_t line{64};
  static std::size_t bytes(std::int64_t size) { return static_cast<std::size_t>(size) * sizeof(float); }
  struct freed {
    void operator()(float* memory) const { ::operator delete(memory, line); }
  };
  std::unique_ptr<float, freed> memory_;

public:
  float* data;
};

template <const program& P> void check_rows(std::int64_t behind, bool in_place) {
  CAPTURE(P.id.view(), behind, in_place);
  numbers given(count, behind), result(count, behind), ends(rows * lanes, 0), alone(row, behind),
      end_alone(lanes, 0);
  for (std::int64_t i = 0; i < count; ++i) given.data[i] = std::sin(static_cast<float>(i % 10007));
  const auto run_rows = [&](const float* from, float* to, float* last_of, std::int64_t how_many) {
    const auto run_with = [&](const auto&... others) {
      run<P>(cpu{2}, x = view(from, how_many, steps, lanes), y = view(to, how_many, steps, lanes),
             end = view(last_of, how_many, lanes), others...);
    };
    if constexpr (P.find_tensor(theta.id) >= 0)
      run_with(theta = view(static_cast<const float*>(given.data), lanes));
    else
      run_with();
  };
  if (in_place) std::memcpy(result.data, given.data, sizeof(float) * static_cast<std::size_t>(count));
  run_rows(in_place ? result.data : given.data, result.data, ends.data, rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    run_rows(given.data + i * row, alone.data, end_alone.data, 1);
    CHECK(std::memcmp(result.data + i * row, alone.data, sizeof(float) * row) == 0);
    CHECK(std::memcmp(ends.data + i * lanes, end_alone.data, sizeof(float) * lanes) == 0);
  }
}

}  // namespace

TEST_CASE("what is written past the caches is what else would be written", "[exec][past_cache]") {
  for (const std::int64_t behind : {0, 1, 8}) {  // whole lines, none, and halves of them
    check_rows<summed>(behind, false);
    check_rows<summed_back>(behind, false);
    check_rows<shares>(behind, false);
    check_rows<turned>(behind, false);
  }
  check_rows<summed>(0, true);
}
