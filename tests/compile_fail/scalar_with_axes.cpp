// expect: SCALAR is one number, the same everywhere
// expect: scalar_has_no_axes<false, .*"chunk"
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"n"> n;
constexpr scalar<"chunk"> chunk;

constexpr auto bad = chunk(n);
}  // namespace
