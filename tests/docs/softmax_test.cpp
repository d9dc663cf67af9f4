#include <string>

#include "docs/golden.hpp"
#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"

using namespace scandsl;
using docs_test::golden;

namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"v"> v;
constexpr tensor<"y"> y;
constexpr tensor<"dx"> dx;
constexpr tensor<"dy"> dy;

// [doc:programs]
constexpr auto over_features = op<"over_features">(out<"y">(b, n, d) = softmax(over(d), x(b, n, d)));
constexpr auto over_sequence = op<"over_sequence">(out<"y">(b, n, d) = softmax(over(n), x(b, n, d)));
// [/doc:programs]
constexpr auto dover_features = gradient(over_features);
constexpr auto dover_sequence = gradient(over_sequence);
// [doc:pooled]
constexpr auto pooled =
    op<"pooled">(out<"y">(b, d) = sum(over(n), softmax(over(n), x(b, n, d)) * v(b, n, d)));
// [/doc:pooled]

}  // namespace

TEST_CASE("a softmax as it is printed", "[docs]") {
  CHECK(describe(over_sequence) + "\n" == golden("softmax.txt", "written"));
  CHECK(describe(prepare(over_sequence)) + "\n" == golden("softmax.txt", "prepared"));
  CHECK(describe(dover_sequence) + "\n" == golden("softmax.txt", "gradient"));
  CHECK(describe_latex(dover_sequence) + "\n" == golden("softmax.txt", "gradient-latex"));
  CHECK(describe(prepare(dover_sequence)) + "\n" == golden("softmax.txt", "gradient-prepared"));
  CHECK(describe(prepare(pooled)) + "\n" == golden("softmax.txt", "pooled"));
}

TEST_CASE("the traffic of a softmax", "[docs]") {
  // [doc:features]
  const auto whole = shape<float>(4, 4096, 128);
  const cpu_plan forward = plan<over_features>(cpu{2}, x = whole, y = whole);
  const cpu_plan backward = plan<dover_features>(cpu{2}, x = whole, dy = whole, dx = whole);
  CHECK(forward.moved_bytes == forward.floor_bytes);    // x read once, y written once
  CHECK(backward.moved_bytes == backward.floor_bytes);  // x and dy read once, dx written once
  // [/doc:features]
  // [doc:sequence]
  const auto long_one = shape<float>(4, 100000, 128);
  const std::int64_t unit = 4 * 100000 * 128 * 4;
  CHECK(plan<over_sequence>(cpu{2}, x = long_one, y = long_one).moved_bytes == 3 * unit);  // x twice, y
  CHECK(plan<dover_sequence>(cpu{2}, x = long_one, dy = long_one, dx = long_one).moved_bytes ==
        5 * unit);  // x and dy twice, dx
  // [/doc:sequence]
}
