#pragma once
#include <algorithm>
#include <array>

#include "ops/op_case.hpp"

/// What the textbook expects of the ops' derivatives: the chain rule, walked back over a forward walk. In
/// float64, or in dual numbers, whose tangents are those of the gradients.
namespace op_test {

/// A number and how it moves: first-order forward differentiation.
struct dual {
  double value = 0, tangent = 0;

  dual() = default;
  dual(double v, double t = 0) : value(v), tangent(t) {}
  friend dual operator+(dual p, dual q) { return {p.value + q.value, p.tangent + q.tangent}; }
  friend dual operator-(dual p, dual q) { return {p.value - q.value, p.tangent - q.tangent}; }
  friend dual operator*(dual p, dual q) {
    return {p.value * q.value, p.tangent * q.value + p.value * q.tangent};
  }
  dual& operator+=(dual p) { return *this = *this + p; }
  friend dual exp(dual p) { return {std::exp(p.value), std::exp(p.value) * p.tangent}; }
  friend dual log1p(dual p) { return {std::log1p(p.value), p.tangent / (1 + p.value)}; }
};
inline double value_of(double x) { return x; }
inline double value_of(dual x) { return x.value; }

/// One scanned sequence of x, a and g, in scan order, with what its backward adds up.
template <class Number> struct chain {
  std::vector<Number> x, a, g;
  Number initial = 0.0, final_cotangent = 0.0;
  std::vector<Number> y, dx, da;
  Number final = 0.0, dinitial = 0.0;

  /// step(h, x, a) is the next state, pass(h, x, a, next, r) what r, the cotangent of `next`, gives to (h, x,
  /// a).
  template <class Step, class Pass> void walk(bool exclusive, Step step, Pass pass) {
    const std::size_t n = x.size();
    std::vector<Number> h(n + 1, initial), r(n + 1, 0.0);
    for (std::size_t t = 0; t < n; ++t) h[t + 1] = step(h[t], x[t], a[t]);
    for (std::size_t t = 0; t < n; ++t) r[exclusive ? t : t + 1] += g[t];
    r[n] += final_cotangent;
    y.assign(n, 0.0), dx.assign(n, 0.0), da.assign(n, 0.0);
    for (std::size_t t = n; t-- > 0;) {
      const std::array<Number, 3> to = pass(h[t], x[t], a[t], h[t + 1], r[t + 1]);
      y[t] = h[exclusive ? t : t + 1];
      r[t] += to[0], dx[t] = to[1], da[t] = to[2];
    }
    final = h[n], dinitial = r[0];
  }
};

inline constexpr auto log_add_exp_step = []<class Number>(Number h, Number x, Number) {
  using std::exp, std::log1p;
  const bool rises = value_of(h) < value_of(x);
  const Number most = rises ? x : h, least = rises ? h : x;
  return std::isfinite(value_of(most)) ? most + log1p(exp(least - most)) : most;
};
inline constexpr auto log_add_exp_back = []<class Number>(Number h, Number x, Number, Number next, Number r) {
  using std::exp;
  const auto share = [&](Number part) {
    return value_of(part) == -INFINITY ? Number(0.0) : exp(part - next) * r;
  };
  return std::array<Number, 3>{share(h), share(x), 0.0};
};
inline constexpr auto decayed_step = []<class Number>(Number h, Number x, Number a) { return a * h + x; };
inline constexpr auto decayed_back = []<class Number>(Number h, Number, Number a, Number, Number r) {
  return std::array<Number, 3>{a * r, r, h * r};
};

/// What is known of a case, and what is to come out.
template <class Number> struct gradient_case {
  const op_case& c;
  /// Empty: absent (of a: 1 everywhere).
  std::vector<Number> x = {}, a = {}, g = {}, initial = {}, final_cotangent = {};
  std::vector<Number> y = {}, final = {}, dx = {}, da = {}, dinitial = {};

  template <class Step, class Pass> void expect(Step step, Pass pass) {
    const reference::columns columns = c.columns();
    y.assign(x.size(), 0.0), dx.assign(x.size(), 0.0), da.assign(x.size(), 0.0);
    dinitial.assign(static_cast<std::size_t>(c.sequences() * columns.count()), 0.0);
    final = dinitial;
    for (std::int64_t column = 0; column < columns.count(); ++column)
      for (std::int64_t s = 0; s < c.sequences(); ++s) {
        const std::int64_t low = c.offsets.empty() ? 0 : c.offsets[static_cast<std::size_t>(s)],
                           high = c.offsets.empty() ? c.length() : c.offsets[static_cast<std::size_t>(s) + 1];
        const std::int64_t chunk = c.chunk > 0 ? c.chunk : std::max<std::int64_t>(1, high - low);
        const auto state = static_cast<std::size_t>(s * columns.count() + column);
        std::int64_t from = low;
        do {  // a sequence without positions is its initial state
          chain<Number> one;
          const std::int64_t to = std::min(from + chunk, high);
          std::vector<std::size_t> places;
          for (std::int64_t t = from; t < to; ++t)
            places.push_back(columns.at(column, c.reverse ? from + to - 1 - t : t));
          for (const std::size_t at : places) {
            one.x.push_back(x[at]), one.a.push_back(a.empty() ? Number(1.0) : a[at]);
            one.g.push_back(g.empty() ? Number(0.0) : g[at]);
          }
          if (!initial.empty()) one.initial = initial[state];
          if (!final_cotangent.empty()) one.final_cotangent = final_cotangent[state];
          one.walk(c.exclusive, step, pass);
          for (std::size_t i = 0; i < places.size(); ++i)
            y[places[i]] = one.y[i], dx[places[i]] = one.dx[i], da[places[i]] = one.da[i];
          final[state] = one.final, dinitial[state] = one.dinitial;
          from += chunk;
        } while (from < high);
      }
  }
};

/// Every third of the forward's cases: each compiles no more, but a backward walks twice.
template <class F> void for_each_gradient_case(F f) {
  for_each_case([&](const op_case& c, unsigned seed) {
    if (seed % 3 == 0 || c.length() < 100) f(c, seed);
  });
}

/// Shapes of a decay that broadcasts against x.
inline std::vector<extent_list> decay_shapes(const extent_list& extents) {
  extent_list ones(extents.size(), 1), half = extents, other = extents;
  for (std::size_t i = 0; i < half.size(); ++i) (i % 2 == 0 ? half : other)[i] = 1;
  return {extents, ones, half, other, {extents.back()}, {}};
}

/// The dtype of a state that is written.
inline dtype state_type(const op_case& c) {
  return c.type == dtype::float64 ? dtype::float64 : dtype::float32;
}

}  // namespace op_test
