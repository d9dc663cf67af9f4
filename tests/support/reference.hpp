#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

/// Scans as a textbook writes them: float64 loops over one sequence, without the library. Both the oracle and
/// the executors are compared with them.
namespace reference {

/// A state of up to three numbers; which ones, each scan says.
using state = std::array<double, 3>;

struct options {
  bool reversed = false;              ///< from the last position to the first
  bool exclusive = false;             ///< the value at t leaves x_t out
  std::int64_t chunk = 0;             ///< restart interval, counted from a sequence's position 0; 0: none
  std::vector<std::int64_t> offsets;  ///< boundaries of packed sequences; empty: one sequence
  std::vector<state> initial;         ///< one for each packed sequence; empty: the scan's identity
};

struct result {
  std::vector<double> values;  ///< one a position
  std::vector<state> last;     ///< the final state, one for each packed sequence
};

/// Positions first, first + step, ...: what is scanned without a restart.
struct stretch {
  std::int64_t first = 0, length = 0, step = 1;
  std::size_t sequence = 0;
};

inline std::vector<std::int64_t> boundaries(std::int64_t n, const options& o) {
  return o.offsets.empty() ? std::vector<std::int64_t>{0, n} : o.offsets;
}

/// The stretches of n positions, those of one sequence in the order in which they are scanned.
inline std::vector<stretch> stretches(std::int64_t n, const options& o) {
  std::vector<stretch> result;
  const std::vector<std::int64_t> bounds = boundaries(n, o);
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    const std::int64_t chunk = o.chunk >= 1 ? o.chunk : std::max<std::int64_t>(n, 1);
    std::vector<stretch> sequence;
    for (std::int64_t begin = bounds[s]; begin < bounds[s + 1]; begin += chunk) {
      const std::int64_t length = std::min(chunk, bounds[s + 1] - begin);
      sequence.push_back(o.reversed ? stretch{begin + length - 1, length, -1, s}
                                    : stretch{begin, length, 1, s});
    }
    if (o.reversed) std::reverse(sequence.begin(), sequence.end());
    result.insert(result.end(), sequence.begin(), sequence.end());
  }
  return result;
}

/// state = next(state, t) along every stretch; the value at t is value(state).
template <class Next, class Value>
result recurrence(std::size_t n, const options& o, const state& identity, Next next, Value value) {
  const auto length = static_cast<std::int64_t>(n);
  result r{std::vector<double>(n), o.initial};
  if (o.initial.empty()) r.last.assign(boundaries(length, o).size() - 1, identity);
  const std::vector<state> start = r.last;
  for (const stretch& each : stretches(length, o)) {
    state now = start[each.sequence];
    for (std::int64_t i = 0; i < each.length; ++i) {
      const auto t = static_cast<std::size_t>(each.first + i * each.step);
      if (o.exclusive) r.values[t] = value(now);
      now = next(now, t);
      if (!o.exclusive) r.values[t] = value(now);
    }
    r.last[each.sequence] = now;
  }
  return r;
}

inline double first(const state& s) { return s[0]; }

/// y_t = x_0 + ... + x_t; state (sum).
inline result cumulative_sum(const std::vector<double>& x, const options& o = {}) {
  return recurrence(x.size(), o, {0}, [&](state s, std::size_t t) { return state{s[0] + x[t]}; }, first);
}

/// y_t = x_0 ... x_t; state (product).
inline result cumulative_product(const std::vector<double>& x, const options& o = {}) {
  return recurrence(x.size(), o, {1}, [&](state s, std::size_t t) { return state{s[0] * x[t]}; }, first);
}

/// The greatest of x_0 ... x_t, NaN from the first NaN on; state (maximum).
inline result running_maximum(const std::vector<double>& x, const options& o = {}) {
  const auto next = [&](state s, std::size_t t) {
    return std::isnan(s[0]) || s[0] >= x[t] ? s : state{x[t]};
  };
  return recurrence(x.size(), o, {-std::numeric_limits<double>::infinity()}, next, first);
}

/// The least of x_0 ... x_t, NaN from the first NaN on; state (minimum).
inline result running_minimum(const std::vector<double>& x, const options& o = {}) {
  const auto next = [&](state s, std::size_t t) {
    return std::isnan(s[0]) || s[0] <= x[t] ? s : state{x[t]};
  };
  return recurrence(x.size(), o, {std::numeric_limits<double>::infinity()}, next, first);
}

/// log(exp(a) + exp(b)): -inf where both are, inf where one is, NaN where one is.
inline double log_of_sum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  const double shift = std::max(a, b);
  return std::isinf(shift) ? shift : shift + std::log(std::exp(a - shift) + std::exp(b - shift));
}

/// y_t = log(exp(x_0) + ... + exp(x_t)); state (that).
inline result log_cumulative_sum_exp(const std::vector<double>& x, const options& o = {}) {
  const auto next = [&](state s, std::size_t t) { return state{log_of_sum(s[0], x[t])}; };
  return recurrence(x.size(), o, {-std::numeric_limits<double>::infinity()}, next, first);
}

/// h_t = a_t h_{t-1} + x_t; state (h).
inline result decayed_sum(const std::vector<double>& a, const std::vector<double>& x, const options& o = {}) {
  return recurrence(
      x.size(), o, {0}, [&](state s, std::size_t t) { return state{a[t] * s[0] + x[t]}; }, first);
}

/// The population variance of x_0 ... x_t, 0 of none; state (count, mean, sum of squared deviations).
/// Welford, "Note on a method for calculating corrected sums of squares and products", Technometrics 4(3),
/// 1962.
inline result variance(const std::vector<double>& x, const options& o = {}) {
  const auto next = [&](state s, std::size_t t) {
    const double count = s[0] + 1, off = x[t] - s[1], mean = s[1] + off / count;
    return state{count, mean, s[2] + off * (x[t] - mean)};
  };
  return recurrence(x.size(), o, {}, next, [](const state& s) { return s[0] > 0 ? s[2] / s[0] : s[2]; });
}

/// exp(x_t) / sum of exp(x) over the sequence.
inline std::vector<double> softmax(const std::vector<double>& x) {
  const double top = x.empty() ? 0 : *std::max_element(x.begin(), x.end());
  double total = 0;
  for (const double each : x) total += std::exp(each - top);
  std::vector<double> y;
  for (const double each : x) y.push_back(std::exp(each - top) / total);
  return y;
}

/// Row-major (outer, length, inner): a scan over the middle axis sees outer * inner columns.
struct columns {
  std::int64_t outer = 1, length = 0, inner = 1;

  std::int64_t count() const { return outer * inner; }
  std::size_t at(std::int64_t column, std::int64_t t) const {
    return static_cast<std::size_t>((column / inner * length + t) * inner + column % inner);
  }
  std::vector<double> read(const std::vector<double>& tensor, std::int64_t column) const {
    std::vector<double> result;
    for (std::int64_t t = 0; t < length; ++t) result.push_back(tensor[at(column, t)]);
    return result;
  }
  void write(std::vector<double>& tensor, std::int64_t column, const std::vector<double>& values) const {
    for (std::int64_t t = 0; t < length; ++t) tensor[at(column, t)] = values[static_cast<std::size_t>(t)];
  }
};

}  // namespace reference
