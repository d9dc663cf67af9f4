#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

#include "docs/golden.hpp"
#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"

namespace {

// [doc:tree]
/// x_t becomes x_0 . x_1 . ... . x_t, where . is combine.
template <class State, class Combine> void scan_as_tree(std::span<State> x, Combine combine) {
  if (x.size() < 2) return;
  const auto left = x.first(x.size() / 2), right = x.subspan(x.size() / 2);
  scan_as_tree(left, combine);
  scan_as_tree(right, combine);  // needs nothing of the left half: both may run at the same time
  for (State& each : right) each = combine(left.back(), each);  // and so may all of these
}
// [/doc:tree]

// [doc:pair]
/// A stretch of h_t = a_t h_{t-1} + x_t: whatever h is before it, a h + k is what comes out behind it.
struct stretch {
  double a = 1.0, k = 0.0;
};
stretch combine(stretch left, stretch right) {
  return {left.a * right.a, right.a * left.k + right.k};  // right of (left of h)
}
// [/doc:pair]

std::vector<stretch> random_stretches(std::size_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> decay(0.5, 1.0), value(-1.0, 1.0);
  std::vector<stretch> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back({decay(random), value(random)});
  return result;
}

std::vector<double> by_hand(const std::vector<stretch>& each) {
  std::vector<double> result;
  double h = 0.0;
  for (const stretch& s : each) result.push_back(h = s.a * h + s.k);
  return result;
}

/// What the three phases do, with pieces of `length` positions.
std::vector<stretch> scan_in_pieces(std::vector<stretch> x, std::size_t length) {
  const std::size_t pieces = (x.size() + length - 1) / length;
  const auto piece = [&](std::size_t p) {
    return std::span(x).subspan(p * length, std::min(length, x.size() - p * length));
  };
  // [doc:phases]
  std::vector<stretch> total(pieces), before(pieces);
  for (std::size_t p = 0; p < pieces; ++p)  // 1. reduce: every piece on its own, in parallel
    for (const stretch& each : piece(p)) total[p] = combine(total[p], each);
  for (std::size_t p = 1; p < pieces; ++p)  // 2. chain: one short scan over the pieces
    before[p] = combine(before[p - 1], total[p - 1]);
  for (std::size_t p = 0; p < pieces; ++p) {  // 3. scan: every piece from where it starts, in parallel
    stretch carry = before[p];
    for (stretch& each : piece(p)) each = carry = combine(carry, each);
  }
  // [/doc:phases]
  return x;
}

}  // namespace

TEST_CASE("a sum by hand and as a tree", "[docs]") {
  const std::vector<int> x = {3, 1, 4, 1, 5, 9, 2, 6};
  std::vector<int> y(x.size());
  // [doc:hand]
  int sum = 0;
  for (std::size_t t = 0; t < x.size(); ++t) y[t] = sum = sum + x[t];
  // [/doc:hand]
  std::vector<int> tree = x;
  scan_as_tree(std::span(tree), [](int left, int right) { return left + right; });
  CHECK(tree == y);
  CHECK(y == std::vector<int>{3, 4, 8, 9, 14, 23, 25, 31});
}

TEST_CASE("a decayed sum as a tree and in pieces", "[docs]") {
  std::vector<stretch> each = random_stretches(1000);
  const std::vector<double> expected = by_hand(each);
  const std::vector<stretch> pieces = scan_in_pieces(each, 64);
  scan_as_tree(std::span(each), combine);
  for (std::size_t t = 0; t < each.size(); ++t) {
    CHECK(each[t].k == Approx(expected[t]));
    CHECK(pieces[t].k == Approx(expected[t]));
  }
}

namespace {

using namespace scandsl;
constexpr axis<"n"> n;
constexpr axis<"seq"> seq;
constexpr tensor<"x"> x;
constexpr tensor<"offsets"> offsets;

// [doc:walks]
constexpr auto walks =
    op<"walks">(out<"forward">(n) = scan(plain_sum, over(n), x(n)),
                out<"reversed">(n) = scan(plain_sum, over(n).reversed(), x(n)),
                out<"exclusive">(n) = scan(plain_sum, over(n).exclusive(), x(n)),
                out<"started">(n) = scan(plain_sum, over(n).starting_from(100), x(n)),
                out<"chunks">(n) = scan(plain_sum, over(n).restart_every(3), x(n)),
                out<"chunks_reversed">(n) = scan(plain_sum, over(n).restart_every(3).reversed(), x(n)),
                out<"packed">(n) = scan(plain_sum, over(n).restart_at(offsets(seq)), x(n)),
                out<"ends">(seq) = last(scan(plain_sum, over(n).restart_at(offsets(seq)), x(n))));
// [/doc:walks]

std::string row(const char* label, const std::vector<float>& values) {
  std::string text = label;
  text.resize(16, ' ');
  char number[16];
  for (const float value : values) text += (std::snprintf(number, sizeof number, "%5g", value), number);
  return text + "\n";
}

}  // namespace

TEST_CASE("the ways to walk an axis", "[docs]") {
  const std::vector<float> in = {1, 2, 3, 4, 5, 6, 7};
  const std::vector<std::int64_t> where = {0, 2, 2, 7};
  std::vector<std::vector<float>> y(7, std::vector<float>(in.size()));
  std::vector<float> ends(3);
  run<walks>(cpu{}, x = view(in.data(), 7), offsets = view(where.data(), 4),
             out<"forward"> = view(y[0].data(), 7), out<"reversed"> = view(y[1].data(), 7),
             out<"exclusive"> = view(y[2].data(), 7), out<"started"> = view(y[3].data(), 7),
             out<"chunks"> = view(y[4].data(), 7), out<"chunks_reversed"> = view(y[5].data(), 7),
             out<"packed"> = view(y[6].data(), 7), out<"ends"> = view(ends.data(), 3));
  std::string text = row("x", in) + row("offsets", {where.begin(), where.end()}) + "\n";
  const char* const labels[] = {"forward", "reversed",        "exclusive", "started",
                                "chunks",  "chunks_reversed", "packed"};
  for (std::size_t i = 0; i < y.size(); ++i) text += row(labels[i], y[i]);
  text += row("ends", ends);
  CHECK(text == docs_test::golden("scans.txt", "walks"));
}
