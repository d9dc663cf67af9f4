// The language, the passes and the node evaluator under nvcc: what a CUDA executor builds on. Compiled where
// nvcc is.
#include "scandsl/exec/evaluate.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/prepare.hpp"

using namespace scandsl;

inline constexpr axis<"b"> b;
inline constexpr axis<"n"> n;
inline constexpr tensor<"x"> x;
inline constexpr scalar<"reverse"> reverse;

inline constexpr auto smooth =
    op<"smooth">(out<"y">(b, n) = silu(scan(log_add_exp, over(n).reversed(value_or(reverse, 0.0)), x(b, n))));
inline constexpr auto variance = op<"variance">(out<"y">(b, n) = scan(welford, over(n), x(b, n)));
inline constexpr program smooth_kernel = prepare(smooth);
inline constexpr program variance_kernel = prepare(variance);

/// One thread combines two states of one column each: `states` holds the left ones, then the right ones.
template <class Ref> __global__ void combine_states(const float* states, float* combined) {
  using combine = combiner<Ref, 0, all_components<Ref, 0>>;
  typename combine::template states<float> left{}, right{};
  const unsigned column = threadIdx.x;
  for (unsigned k = 0; k < combine::components; ++k) {
    left[k] = states[(2 * k) * blockDim.x + column];
    right[k] = states[(2 * k + 1) * blockDim.x + column];
  }
  combine::apply(left, right);
  for (unsigned k = 0; k < combine::components; ++k) combined[k * blockDim.x + column] = left[k];
}

void launch(const float* states, float* combined) {
  combine_states<ref<smooth_kernel>><<<1, 32>>>(states, combined);
  combine_states<ref<variance_kernel>><<<1, 32>>>(states, combined);
}
