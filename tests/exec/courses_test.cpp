#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "scandsl/exec/cpu/run.hpp"
#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"
#include "support/catch.hpp"

using namespace scandsl;

namespace {

constexpr axis<"t"> t;
constexpr axis<"k"> k;
constexpr tensor<"theta"> theta;
constexpr integer_scalar<"offset"> offset;
constexpr integer_scalar<"limit"> limit;
constexpr tensor<"a"> a;
constexpr tensor<"b"> b;
constexpr tensor<"c"> c;
constexpr tensor<"d"> d;
constexpr tensor<"e"> e;

// Positions that advance by one for a while, or stay for a while, and not in all lanes alike.
inline constexpr auto counted = index(t) + offset;
inline constexpr auto quotient = counted / (index(k) + 1);
inline constexpr auto rest = counted % (index(k) + 1);
inline constexpr auto on_grid = counted / (index(k) % 3 + 1) % (index(k) + 1);
inline constexpr auto from_limit = select(index(t) < limit, 2, (index(t) - limit) % 7);
inline constexpr auto by_turns =
    select(index(t) == limit, 5, select(limit + index(k) <= index(t), index(t) / 4, index(k) + index(t)));
inline constexpr auto turned = op<"courses">(
    out<"a">(t, k) = cos_of_product(quotient, theta(k)), out<"b">(t, k) = cos_of_product(rest, theta(k)),
    out<"c">(t, k) = cos_of_product(on_grid, theta(k)), out<"d">(t, k) = cos_of_product(from_limit, theta(k)),
    out<"e">(t, k) = cos_of_product(by_turns, theta(k)));

constexpr axis<"r"> r;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
/// Its exponentials are outside of the loop over r, or where that is short, inside of one over anything.
inline constexpr auto hoisted = op<"hoisted">(out<"y">(r, t, k) = x(r, t, k) * exp(theta(k)));

std::int64_t floor_divide(std::int64_t number, std::int64_t by) {
  return number / by - (number % by < 0 ? 1 : 0);
}
std::int64_t modulo(std::int64_t number, std::int64_t by) { return number - by * floor_divide(number, by); }

using outputs = std::vector<std::vector<float>>;

outputs turn(const cpu& executor, const std::vector<float>& angles, std::int64_t steps, std::int64_t first,
             std::int64_t until) {
  const auto lanes = static_cast<std::int64_t>(angles.size());
  outputs results(5, std::vector<float>(static_cast<std::size_t>(steps * lanes)));
  run<turned>(executor, theta = view(angles.data(), lanes), offset = first, limit = until,
              a = view(results[0].data(), steps, lanes), b = view(results[1].data(), steps, lanes),
              c = view(results[2].data(), steps, lanes), d = view(results[3].data(), steps, lanes),
              e = view(results[4].data(), steps, lanes));
  return results;
}
std::vector<float> angles_of(std::int64_t lanes) {
  std::vector<float> angles(static_cast<std::size_t>(lanes));
  for (std::size_t i = 0; i < angles.size(); ++i)
    angles[i] = std::fmod(0.37F * static_cast<float>(i + 1), 3.0F) * (i % 2 == 0 ? 1.0F : -1.0F);
  return angles;
}

void check_turns(std::int64_t steps, std::int64_t lanes, std::int64_t first, std::int64_t until) {
  CAPTURE(steps, lanes, first, until);
  const std::vector<float> angles = angles_of(lanes);
  const outputs results = turn(cpu{2}, angles, steps, first, until);
  for (std::int64_t i = 0; i < steps; ++i)
    for (std::int64_t j = 0; j < lanes; ++j) {
      const std::int64_t positions[] = {floor_divide(i + first, j + 1), modulo(i + first, j + 1),
                                        modulo(floor_divide(i + first, j % 3 + 1), j + 1),
                                        i < until ? 2 : modulo(i - until, 7),
                                        i == until ? 5 : (until + j <= i ? floor_divide(i, 4) : j + i)};
      for (std::size_t output = 0; output < results.size(); ++output) {
        const auto exact = std::cos(static_cast<long double>(positions[output]) *
                                    static_cast<long double>(angles[static_cast<std::size_t>(j)]));
        const float got = results[output][static_cast<std::size_t>(i * lanes + j)];
        CAPTURE(i, j, output, positions[output]);
        REQUIRE(std::fabs(static_cast<long double>(got) - exact) <= 2e-6L);
      }
    }
}

}  // namespace

TEST_CASE("angles turn at positions that go on evenly for a while", "[exec][positions]") {
  for (const std::int64_t steps : {1, 2, 7, 8, 9, 17, 100, 601})
    for (const std::int64_t lanes : {1, 5, 16, 37}) {
      check_turns(steps, lanes, 0, 0);
      check_turns(steps, lanes, 3, 1);
      check_turns(steps, lanes, -9, 20);
      check_turns(steps, lanes, 1000, 300);
    }
}

TEST_CASE("angles turn at positions close to the last integer", "[exec][positions]") {
  for (const std::int64_t steps : {9, 700}) check_turns(steps, 21, (std::int64_t{1} << 31) - steps, 4);
}

TEST_CASE("angles at such positions have the same bits on any number of threads",
          "[exec][positions][threads]") {
  struct sizes {
    std::int64_t steps, lanes;
  };
  // The longer ones in parts whose length depends on the number of threads, where it may.
  for (const auto [steps, lanes] :
       {sizes{601, 37}, sizes{601, 640}, sizes{9001, 1}, sizes{9001, 37}, sizes{16400, 32}}) {
    const std::vector<float> angles = angles_of(lanes);
    const outputs once = turn(cpu{1}, angles, steps, -9, 20);
    for (const int threads : {2, 3, 7}) {
      CAPTURE(steps, lanes, threads);
      const outputs again = turn(cpu{threads}, angles, steps, -9, 20);
      for (std::size_t i = 0; i < once.size(); ++i)
        CHECK(std::memcmp(once[i].data(), again[i].data(), once[i].size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("what can be hoisted out of a loop is right however short that is", "[exec][walk]") {
  for (const std::int64_t rows : {0, 1, 5, 6, 20})
    for (const std::int64_t steps : {1, 3, 300})
      for (const std::int64_t lanes : {1, 7, 64}) {
        CAPTURE(rows, steps, lanes);
        std::vector<float> values(static_cast<std::size_t>(rows * steps * lanes)),
            exponents(static_cast<std::size_t>(lanes)), result(values.size(), -1.0F);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
        for (std::size_t i = 0; i < exponents.size(); ++i) exponents[i] = std::cos(static_cast<float>(i));
        run<hoisted>(cpu{2}, x = view(values.data(), rows, steps, lanes),
                     theta = view(exponents.data(), lanes), y = view(result.data(), rows, steps, lanes));
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double exact =
              static_cast<double>(values[i]) * std::exp(static_cast<double>(exponents[i % exponents.size()]));
          REQUIRE(std::fabs(static_cast<double>(result[i]) - exact) <= 3e-7 * std::fabs(exact));
        }
      }
}
