// expect: op is a scan operator
// expect: scan_takes_operator<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = scan([](auto l, auto r) { return l + r; }, over(n), x(n));
}  // namespace
