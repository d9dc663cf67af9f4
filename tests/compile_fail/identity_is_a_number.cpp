// expect: the identity must be state(numbers...)
// expect: identity_is_numbers<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr auto bad = scan_op(
    0.0, [](auto v) { return state(v); }, [](auto l, auto) { return l; },
    [](auto v) {
      auto [p] = v;
      return p;
    });
}  // namespace
