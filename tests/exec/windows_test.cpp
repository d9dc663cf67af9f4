#include <cstdint>
#include <vector>

#include "exec/executed.hpp"
#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/catch.hpp"

// What a gradient's first sweep keeps of a long range is computed again, window by window: the same bits as
// of so few lanes that it is kept.
namespace {

using namespace scandsl;

constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"decay"> decay;
constexpr tensor<"start"> start;
constexpr scalar<"back"> back;
constexpr tensor<"dy"> dy;
constexpr tensor<"dend"> dend;
constexpr tensor<"dx"> dx;
constexpr tensor<"ddecay"> ddecay;
constexpr tensor<"dstart"> dstart;

constexpr auto sums = scan(decayed_sum, over(n).reversed(back).starting_from(start(d)), decay(n, d), x(n, d));
constexpr auto gradient_of_sums =
    gradient(op<"sums">(out<"y">(n, d) = sums, out<"end">(d).optional() = last(sums)));
constexpr auto gradient_of_logs =
    gradient(op<"logs">(out<"y">(n, d) = scan(log_add_exp, over(n).reversed(back), x(n, d))), x);

constexpr std::int64_t steps = 3000, lanes = 80, few = 16;

template <class T> struct results {
  std::vector<T> dx, ddecay, dstart, of_logs;
};
template <class T> std::vector<float> numbers(const std::vector<T>& values) {
  std::vector<float> result;
  for (const T& each : values) result.push_back(static_cast<float>(each));
  return result;
}

/// Runs lanes [first, first + count).
template <class T>
void take(const std::vector<T>& xs, const std::vector<T>& decays, const std::vector<T>& starts,
          const std::vector<T>& dys, std::int64_t first, std::int64_t count, double backwards,
          results<T>& to) {
  const auto part = [&](auto* all) { return view(all + first, dims{{steps, lanes}}, dims{{count, 1}}); };
  const auto once = [&](auto* all) { return view(all + first, count); };
  run<gradient_of_sums>(cpu{1}, x = part(xs.data()), decay = part(decays.data()), start = once(starts.data()),
                        dy = part(dys.data()), dend = once(starts.data()), back = backwards,
                        dx = part(to.dx.data()), ddecay = part(to.ddecay.data()),
                        dstart = once(to.dstart.data()));
  run<gradient_of_logs>(cpu{1}, x = part(xs.data()), dy = part(dys.data()), back = backwards,
                        dx = part(to.of_logs.data()));
}

template <class T> void compare() {
  const auto drawn = [](std::int64_t count, double scale, double low) {
    std::vector<T> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(T(static_cast<float>(low + scale * static_cast<double>(i * 37 % 101) / 101)));
    return values;
  };
  const std::vector<T> xs = drawn(steps * lanes, 4, -2), decays = drawn(steps * lanes, 0.5, 0.5),
                       starts = drawn(lanes, 2, -1), dys = drawn(steps * lanes, 2, -1);
  for (const double backwards : {0.0, 1.0}) {
    CAPTURE(backwards);
    const results<T> empty{std::vector<T>(xs.size()), std::vector<T>(xs.size()),
                           std::vector<T>(starts.size()), std::vector<T>(xs.size())};
    results<T> whole = empty, in_parts = empty;
    take(xs, decays, starts, dys, 0, lanes, backwards, whole);
    for (std::int64_t first = 0; first < lanes; first += few)
      take(xs, decays, starts, dys, first, few, backwards, in_parts);
    CHECK(numbers(whole.dx) == numbers(in_parts.dx));
    CHECK(numbers(whole.ddecay) == numbers(in_parts.ddecay));
    CHECK(numbers(whole.dstart) == numbers(in_parts.dstart));
    CHECK(numbers(whole.of_logs) == numbers(in_parts.of_logs));
    CHECK(numbers(whole.dx) != numbers(empty.dx));
  }
}

}  // namespace

TEST_CASE("what a long first sweep keeps is computed again, window by window", "[exec]") {
  compare<float>();
  compare<bfloat16>();
}
