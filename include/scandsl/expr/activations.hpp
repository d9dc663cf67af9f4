#pragma once
#include "scandsl/expr/fn.hpp"

/// Activations as values, for code that takes one as an argument and applies it to operands of the language:
/// stage(activation::silu). The functions themselves stand in expr/primitives.hpp.
namespace scandsl::activation {

template <class P> struct primitive_activation {
  template <operand A> constexpr auto operator()(A x) const { return apply<P>(x); }
};

inline constexpr auto none = fn([](auto x) { return x; });
inline constexpr primitive_activation<primitive::relu_op> relu;
inline constexpr primitive_activation<primitive::sigmoid_op> sigmoid;
inline constexpr primitive_activation<primitive::silu_op> silu;
inline constexpr primitive_activation<primitive::gelu_op> gelu;
inline constexpr primitive_activation<primitive::tanh_op> tanh;
inline constexpr primitive_activation<primitive::softplus_op> softplus;
inline constexpr primitive_activation<primitive::mish_op> mish;

}  // namespace scandsl::activation
