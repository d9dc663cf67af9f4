#pragma once
#include "exec/executed.hpp"
#include "scandsl/ir/lower.hpp"

namespace exec_test {

// One program for each group of operators, with every option of a scan. Scans of one walk share a kernel, so
// that few programs cover all operators. Inputs x(b, n) and a(n), state h(s, b), packed sequences s; each
// scan writes y_<name> and l_<name>, its final state, both optional.

/// plain_sum, product, maximum, minimum.
extern const compiled simple_scans;
/// log_add_exp, running_max_sum, welford; no initial state for the last two.
extern const compiled statistics_scans;
/// decayed_sum, and a user operator of three components.
extern const compiled decayed_scans;

/// The mean of the elements so far, weighted by how much of each was kept: three components, not commutative.
inline constexpr auto kept_mean = scan_op(
    state(1.0, 0.0, 0.0), [](auto keep, auto x, auto weight) { return state(keep, weight * x, weight); },
    [](auto l, auto r) {
      auto [keep, total, weight] = l;
      auto [c, k, w] = r;
      return state(keep * c, c * total + k, c * weight + w);
    },
    [](auto state_) {
      auto [keep, total, weight] = state_;
      return total / (1.0 + weight);
    });

namespace names {

inline constexpr axis<"b"> b;
inline constexpr axis<"n"> n;
inline constexpr axis<"d"> d;
inline constexpr axis<"s"> s;
inline constexpr tensor<"x"> x;
inline constexpr tensor<"a"> a;
inline constexpr tensor<"h"> h;
inline constexpr tensor<"offsets"> offsets;
inline constexpr scalar<"backward"> backward;
inline constexpr scalar<"before"> before;
inline constexpr scalar<"chunk"> chunk;

/// Every option of a scan but the initial state; unbound, they mean their default.
inline constexpr auto walk = over(n)
                                 .reversed(value_or(backward, 0))
                                 .exclusive(value_or(before, 0))
                                 .restart_every(value_or(chunk, 0))
                                 .restart_at(offsets(s));
constexpr auto walk_from(double identity) { return walk.starting_from(value_or(h(s, b), identity)); }

}  // namespace names

/// The options of one case, as operands.
struct scan_case {
  std::int64_t batch = 2, length = 0, chunk = 0, width = 3;
  bool reversed = false, exclusive = false, packed = false, seeded = false;
  std::vector<std::int64_t> offsets = {};  ///< if packed
};
operands make_operands(const compiled& program_, const scan_case& c, unsigned seed);
/// Boundaries of about `sequences` packed sequences, some empty.
std::vector<std::int64_t> random_offsets(std::mt19937& random, std::int64_t length, int sequences);

std::ostream& operator<<(std::ostream& out, const scan_case& c);

}  // namespace exec_test
