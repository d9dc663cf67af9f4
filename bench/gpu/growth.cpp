#include "scan_calls.hpp"

// How time grows with sizes. Rows of one sweep follow each other, and each is a third or a half larger than
// the one before, so that what a tile, a block or a cluster no longer holds shows as a step.
namespace bench {
namespace {

using shape = std::vector<std::int64_t>;

void add_one(const char* sweep, const shape& s, int axis, bool backward) {
  using T = bfloat16;
  const std::int64_t bytes = count_of(s) * static_cast<std::int64_t>(sizeof(T));
  measure({"logcumsumexp", sweep, "bf16", s, axis, (backward ? 3 : 2) * bytes,
           backward ? with_carries(parts_of_pool(bytes), call_logcumsumexp<T>(s, axis),
                                   call_logcumsumexp_backward<T>(s, axis))
                    : with_workspace(call_logcumsumexp<T>(s, axis)),
           backward ? "backward" : "forward"});
}

/// 2^low, 3 x 2^(low - 1), 2^(low + 1) .. 2^high.
std::vector<std::int64_t> steps(int low, int high) {
  std::vector<std::int64_t> sizes;
  for (int power = low; power <= high; ++power) {
    sizes.push_back(std::int64_t{1} << power);
    if (power < high) sizes.push_back(std::int64_t{3} << (power - 1));
  }
  return sizes;
}

}  // namespace

void add_growth() {
  constexpr std::int64_t elements = std::int64_t{1} << 27;
  for (const bool backward : {false, true}) {
    for (const std::int64_t n : steps(10, backward ? 26 : 30)) add_one("one_row", {1, n}, 1, backward);
    for (const std::int64_t n : steps(10, backward ? 20 : 24)) add_one("few_lanes", {1, n, 64}, 1, backward);
    for (const std::int64_t n : steps(6, 15)) add_one("longer_rows", {8192, n}, 1, backward);
    for (const std::int64_t n : steps(6, 15)) add_one("longer_lanes", {4, n, 2048}, 1, backward);
    // As many elements in rows of any length, and in lanes any distance apart.
    for (const std::int64_t n : steps(4, backward ? 24 : 27))
      add_one("rows_of", {elements / n, n}, 1, backward);
    for (const std::int64_t inner : steps(1, 14))
      add_one("lanes_side_by_side", {elements / 8192 / inner, 8192, inner}, 1, backward);
  }
}

}  // namespace bench
