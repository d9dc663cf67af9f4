// [doc:op]
#include <scandsl/torch.hpp>
using namespace scandsl;
constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr tensor<"x"> x;
constexpr tensor<"gate"> gate;
constexpr auto gated_sum =
    op<"gated_sum">(out<"y">(b, n, d) = silu(scan(decayed_sum, over(n), sigmoid(gate(b, n, d)), x(b, n, d))));
const torch_op<gated_sum> registered;
// [/doc:op]
