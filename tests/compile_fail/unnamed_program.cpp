// expect: give the program a name
// expect: program_has_name<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr tensor<"x"> x;

constexpr auto bad = op(out<"y">(n) = x(n));
}  // namespace
