// expect: a name has at most 23 characters
// expect: N = 29
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr tensor<"a_name_that_is_much_too_long"> bad;
}  // namespace
