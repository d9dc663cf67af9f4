#pragma once
#include "scandsl/expr/scan.hpp"

/// The standard scan operators.
namespace scandsl {

namespace detail {
inline constexpr auto lift_one = [](auto x) { return state(x); };
inline constexpr auto project_one = [](auto s) { return std::get<0>(s); };
}  // namespace detail

inline constexpr auto plain_sum = scan_op(
    state(0.0), detail::lift_one, [](auto l, auto r) { return state(std::get<0>(l) + std::get<0>(r)); },
    detail::project_one);

inline constexpr auto product = scan_op(
    state(1.0), detail::lift_one, [](auto l, auto r) { return state(std::get<0>(l) * std::get<0>(r)); },
    detail::project_one);

inline constexpr auto maximum = scan_op(
    state(-inf), detail::lift_one, [](auto l, auto r) { return state(max(std::get<0>(l), std::get<0>(r))); },
    detail::project_one);

inline constexpr auto minimum = scan_op(
    state(inf), detail::lift_one, [](auto l, auto r) { return state(min(std::get<0>(l), std::get<0>(r))); },
    detail::project_one);

/// log(exp(x_0) + ... + exp(x_t)), range-safe. Executors carry it as (max, sum): pass/log_sum.hpp.
inline constexpr auto log_add_exp = scan_op(
    state(-inf), detail::lift_one,
    [](auto l, auto r) { return state(logaddexp(std::get<0>(l), std::get<0>(r))); }, detail::project_one);

/// h_t = a_t h_{t-1} + x_t; operands (a, x); the initial state is h.
/// Blelloch, "Prefix sums and their applications", 1990, section 1.4.
inline constexpr auto decayed_sum = scan_op(
                                        state(1.0, 0.0), [](auto a, auto x) { return state(a, x); },
                                        [](auto l, auto r) {
                                          auto [a, h] = l;
                                          auto [c, k] = r;
                                          return state(a * c, c * h + k);
                                        },
                                        [](auto s) { return std::get<1>(s); })
                                        .seeded_by([](auto h) { return state(1.0, h); });

/// The running maximum m and the sum s of exp(x - m): the scan gives m + log(s). The initial state is (m, s).
/// Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
inline constexpr auto running_max_sum = scan_op(
    state(-inf, 0.0), [](auto x) { return state(x, 1.0); },
    [](auto l, auto r) {
      auto [m, s] = l;
      auto [k, t] = r;
      auto top = max(m, k);
      return state(top, s * exp_difference(m, top) + t * exp_difference(k, top));
    },
    [](auto s) {
      auto [m, sum] = s;
      return m + log(sum);
    });

/// The running population variance; state (count, mean, sum of squared deviations). An empty stretch has
/// variance 0. Welford, Technometrics 4(3), 1962; combined as Chan, Golub and LeVeque, 1979.
inline constexpr auto welford = scan_op(
    state(0.0, 0.0, 0.0), [](auto x) { return state(1.0, x, 0.0); },
    [](auto l, auto r) {
      auto [count, mean, squares] = l;
      auto [k, m, q] = r;
      auto total = max(count + k, 1.0);
      auto shift = m - mean;
      return state(count + k, mean + shift * (k / total), squares + q + shift * shift * (count * k / total));
    },
    [](auto s) {
      auto [count, mean, squares] = s;
      return squares / max(count, 1.0);
    });

/// exp(x) as a share of its sum over an axis: softmax(over(d), x(b, n, d)). Where all of x is -inf, or one is
/// +inf, there are no shares, and they are NaN there.
template <class Over, operand A> constexpr auto softmax(Over over, A x) {
  return exp(x - reduce(log_add_exp, over, x));
}

/// The sum over an axis: sum(over(n), x(b, n)).
template <class Over, class... E> constexpr auto sum(Over over, E... x) {
  return reduce(plain_sum, over, x...);
}

}  // namespace scandsl
