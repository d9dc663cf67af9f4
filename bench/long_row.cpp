#include <scandsl/scandsl.hpp>

#include "baseline.hpp"
#include "row.hpp"

namespace bench {
namespace {

using namespace scandsl;

constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr auto sum_row = op<"plain_sum">(out<"y">(n) = scan(plain_sum, over(n), x(n)));
constexpr auto log_row = op<"log_add_exp">(out<"y">(n) = scan(log_add_exp, over(n), x(n)));

constexpr std::int64_t length = std::int64_t{1} << 24;

/// One row of 2^24 numbers: nothing is independent, so the plain loop has one thread.
template <const program& P, class Loop> void add_row(const char* op, Loop loop) {
  const std::int64_t bytes = 2 * length * std::int64_t{sizeof(float)};
  row r{op, "none", "f32", {1, length}, 1, "scandsl", bytes, {}};
  r.call = [](int call) {
    run<P>(cpu{}, x = view(memory<float>(pool::x, length, call), length),
           y = view(memory<float>(pool::y, length, call), length));
  };
  add(r);
  r.provider = "loop";
  r.call = [=](int call) {
    loop(baseline::extents{1, length, 1}, memory<float>(pool::x, length, call),
         memory<float>(pool::y, length, call));
  };
  add(r);
}

}  // namespace

void add_long_row() {
  add_row<sum_row>("plain_sum", [](baseline::extents row, const float* from, float* to) {
    baseline::chunk_cumsum(row, baseline::order::columns, length, false, from, to);
  });
  add_row<log_row>("log_add_exp", [](baseline::extents row, const float* from, float* to) {
    baseline::logcumsumexp(row, baseline::order::columns, from, to);
  });
}

}  // namespace bench
