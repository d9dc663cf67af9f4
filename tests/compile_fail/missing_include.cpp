// The definitions come with scandsl/scandsl.hpp; without it, nothing of ours can say so.
// expect: 'out' was not declared in this scope
#include <scandsl/expr/operators.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = op<"bad">(out<"y">(n) = x(n));
}  // namespace
