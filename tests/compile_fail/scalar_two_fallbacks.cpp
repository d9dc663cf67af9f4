// expect: NAME is used with and without value_or
// expect: one_fallback<false, .*"chunk"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr scalar<"chunk"> chunk;

constexpr auto bad = op<"bad">(out<"y">(n) = x(n) * chunk + value_or(chunk, 1.0));
}  // namespace
