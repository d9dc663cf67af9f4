// Ops with scan operators of two components; nothing is said of their derivatives.
#include <scandsl/torch.hpp>

using namespace scandsl;
namespace {

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"start"> start;
constexpr scalar<"weight"> weight;

// [doc:operator]
// log(sum of exp) as a running maximum and a sum.
constexpr auto online = scan_op(
    state(-inf, 0.0), [](auto value) { return state(value, 1.0); },
    [](auto left, auto right) {
      auto [m, s] = left;
      auto [k, t] = right;
      auto both = max(m, k);
      return state(both, s * exp_difference(m, both) + t * exp_difference(k, both));
    },
    [](auto whole) {
      auto [m, s] = whole;
      return m + log(s);
    });
// [/doc:operator]
constexpr auto weighted = op<"weighted">(
    out<"y">(b, n) = weight * scan(online, over(n), x(b, n)),
    out<"total">(b) = last(scan(plain_sum, over(n).starting_from(value_or(start(b), 0.0)), x(b, n))));
const torch_op<weighted> registered;

}  // namespace
