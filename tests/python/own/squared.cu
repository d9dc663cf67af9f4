// An op for tensors of the CPU and of CUDA.
#include <scandsl/torch.hpp>

using namespace scandsl;
namespace {

constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr auto squared = op<"squared">(out<"y">(n) = x(n) * x(n));
const torch_op<squared> registered;

}  // namespace
