// expect: offsets is a tensor<"...">, bare or with one axis
// expect: restart_offsets<false
#include <scandsl/ir/lower.hpp>

using namespace scandsl;

namespace {
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"s"> s;
constexpr tensor<"offsets"> offsets;

constexpr auto bad = over(n).restart_at(offsets(b, s));
}  // namespace
