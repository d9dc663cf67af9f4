// expect: a name has at most 23 characters
// expect: fixed_string<29>
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr tensor<"a_name_that_is_much_too_long"> bad;
}  // namespace
