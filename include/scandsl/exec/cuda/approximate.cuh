#pragma once
#include <cmath>

#include "scandsl/core/arithmetic.hpp"
#include "scandsl/core/dtype.hpp"
#include "scandsl/expr/primitives.hpp"

/// Arithmetic for kernels whose operands all have 16 bits: float32 with the hardware's approximations of a
/// few functions, each named here with the error that the CUDA C++ Programming Guide and the PTX manual
/// state. They are hundreds of times finer than the storage's rounding.
namespace scandsl::cuda_detail {

struct approximate {
  float value;

  approximate() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  __host__ __device__ __forceinline__ constexpr explicit approximate(T number)
      : value(static_cast<float>(number)) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  __host__ __device__ __forceinline__ constexpr explicit operator T() const {
    return static_cast<T>(value);
  }
};

__device__ __forceinline__ approximate operator-(approximate x) { return approximate(-x.value); }
__device__ __forceinline__ approximate operator+(approximate x, approximate y) {
  return approximate(x.value + y.value);
}
__device__ __forceinline__ approximate operator-(approximate x, approximate y) {
  return approximate(x.value - y.value);
}
__device__ __forceinline__ approximate operator*(approximate x, approximate y) {
  return approximate(x.value * y.value);
}
/// Relative error 2^-22.
__device__ __forceinline__ approximate operator/(approximate x, approximate y) {
  float quotient;
  asm("div.full.f32 %0, %1, %2;" : "=f"(quotient) : "f"(x.value), "f"(y.value));
  return approximate(quotient);
}
__device__ __forceinline__ bool operator<(approximate x, approximate y) { return x.value < y.value; }
__device__ __forceinline__ bool operator<=(approximate x, approximate y) { return x.value <= y.value; }
__device__ __forceinline__ bool operator>(approximate x, approximate y) { return x.value > y.value; }
__device__ __forceinline__ bool operator>=(approximate x, approximate y) { return x.value >= y.value; }
__device__ __forceinline__ bool operator==(approximate x, approximate y) { return x.value == y.value; }
__device__ __forceinline__ bool operator!=(approximate x, approximate y) { return x.value != y.value; }

/// 2^x, relative error 2^-22; results below 2^-126 are 0.
__device__ __forceinline__ float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// log2(x): absolute error 2^-22 for x in [0.5, 2], relative error 2^-22 elsewhere; -inf below 2^-126.
__device__ __forceinline__ float log2_approximate(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// sin(x) and cos(x): absolute error 2^-20.5 for x in [-pi, pi].
__device__ __forceinline__ float sine_approximate(float x) {
  float y;
  asm("sin.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float cosine_approximate(float x) {
  float y;
  asm("cos.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 1 / x: relative error 2^-23, of numbers between 2^-126 and 2^126.
__device__ __forceinline__ float reciprocal_approximate(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// position * theta in half turns wherever it lies. One function for all places that call it.
template <class P> __device__ __noinline__ float half_turns_anywhere(P position, float theta) {
  return scandsl::half_turns_of_product(position, theta);
}
/// The same; what is far is left to that function.
template <class P> SCANDSL_HD float half_turns_of_product(P position, float theta) {
#ifdef __CUDA_ARCH__
  const reduced_product<float> reduced = reduce_product<float>(static_cast<float>(position), theta);
  bool near = reduced.fits;
  if constexpr (std::is_integral_v<P>)
    near = near && position <= far_position<float> && position >= -far_position<float>;
  return near ? reduced.half_turns : half_turns_anywhere(position, theta);
#else
  return scandsl::half_turns_of_product(position, theta);
#endif
}

/// Arithmetic of a kernel, and the type that memory of its own (scratch) holds.
template <class C> inline constexpr dtype scratch_dtype = dtype_of<C>;
template <> inline constexpr dtype scratch_dtype<approximate> = dtype::float32;
template <class C> struct scratch_type_of {
  using type = C;
};
template <> struct scratch_type_of<approximate> {
  using type = float;
};

__device__ __forceinline__ float shuffle_up(float x, unsigned distance, int width) {
  return __shfl_up_sync(~0U, x, distance, width);
}
__device__ __forceinline__ double shuffle_up(double x, unsigned distance, int width) {
  return __shfl_up_sync(~0U, x, distance, width);
}
__device__ __forceinline__ approximate shuffle_up(approximate x, unsigned distance, int width) {
  return approximate(__shfl_up_sync(~0U, x.value, distance, width));
}
__device__ __forceinline__ float shuffle_down(float x, unsigned distance, int width) {
  return __shfl_down_sync(~0U, x, distance, width);
}
__device__ __forceinline__ double shuffle_down(double x, unsigned distance, int width) {
  return __shfl_down_sync(~0U, x, distance, width);
}
__device__ __forceinline__ approximate shuffle_down(approximate x, unsigned distance, int width) {
  return approximate(__shfl_down_sync(~0U, x.value, distance, width));
}
__device__ __forceinline__ float shuffle_from(float x, int lane, int width) {
  return __shfl_sync(~0U, x, lane, width);
}
__device__ __forceinline__ double shuffle_from(double x, int lane, int width) {
  return __shfl_sync(~0U, x, lane, width);
}
__device__ __forceinline__ approximate shuffle_from(approximate x, int lane, int width) {
  return approximate(__shfl_sync(~0U, x.value, lane, width));
}

}  // namespace scandsl::cuda_detail

namespace scandsl {

template <>
template <>
SCANDSL_HD float scalar_arithmetic<float>::half_turns_of_product(std::int32_t position, float theta) {
  return cuda_detail::half_turns_of_product(position, theta);
}
template <>
template <>
SCANDSL_HD float scalar_arithmetic<float>::half_turns_of_product(float position, float theta) {
  return cuda_detail::half_turns_of_product(position, theta);
}

template <> struct arithmetic<cuda_detail::approximate> {
  using V = cuda_detail::approximate;
  using truth = bool;
  using integer = std::int32_t;
  using exact = arithmetic<float>;
  static constexpr float log2_e = 1.4426950408889634F, ln_2 = 0.6931471805599453F;

  __host__ __device__ __forceinline__ static V constant(double value) { return V(value); }
  __device__ __forceinline__ static V to_real(integer x) { return V(x); }
  /// Relative error 2^-21 + |x| 2^-24.
  __device__ __forceinline__ static V exp(V x) { return V(cuda_detail::exp2_approximate(x.value * log2_e)); }
  /// As log2_approximate, but right below 2^-126 too (numbers of 16 bits reach 2^-133).
  __device__ __forceinline__ static V log(V x) {
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x.value));
    return V(y * ln_2);
  }
  /// Relative error 2^-20: below 2^-4 by the series, for 1 + x rounds there.
  __device__ __forceinline__ static V log1p(V x) {
    const float v = x.value,
                series = fmaf(v, fmaf(v, fmaf(v, fmaf(v, 0.2F, -0.25F), 0x1.555556p-2F), -0.5F), 1.0F);
    return select(abs(x) < V(0x1p-4F), V(v * series), log(V(1.0F + v)));
  }
  __device__ __forceinline__ static V expm1(V x) { return V(exact::expm1(x.value)); }
  __device__ __forceinline__ static V sin(V x) { return V(exact::sin(x.value)); }
  __device__ __forceinline__ static V cos(V x) { return V(exact::cos(x.value)); }
  __device__ __forceinline__ static V tanh(V x) { return V(exact::tanh(x.value)); }
  __device__ __forceinline__ static V normal_cdf(V x) { return V(exact::normal_cdf(x.value)); }
  __device__ __forceinline__ static V half_turns_of_product(V position, V theta) {
    return V(exact::half_turns_of_product(position.value, theta.value));
  }
  __device__ __forceinline__ static V half_turns_of_product(integer position, V theta) {
    return V(exact::half_turns_of_product(position, theta.value));
  }
  /// Absolute error 2^-20: the instruction's 2^-20.5 within [-pi, pi], and the angle's rounding.
  __device__ __forceinline__ static V sinpi(V x) {
    return V(cuda_detail::sine_approximate(without_turns<float>(x.value) * half_turn<float>::pi));
  }
  __device__ __forceinline__ static V cospi(V x) {
    return V(cuda_detail::cosine_approximate(without_turns<float>(x.value) * half_turn<float>::pi));
  }
  __device__ __forceinline__ static V angle(V x) { return V(exact::angle(x.value)); }
  __device__ __forceinline__ static V sqrt(V x) { return V(exact::sqrt(x.value)); }
  __device__ __forceinline__ static V pow(V x, V y) { return V(exact::pow(x.value, y.value)); }
  __device__ __forceinline__ static V abs(V x) { return V(exact::abs(x.value)); }
  __device__ __forceinline__ static V fma(V x, V y, V z) { return V(exact::fma(x.value, y.value, z.value)); }
  __device__ __forceinline__ static V maximum(V x, V y) { return V(exact::maximum(x.value, y.value)); }
  __device__ __forceinline__ static V minimum(V x, V y) { return V(exact::minimum(x.value, y.value)); }
  __device__ __forceinline__ static V select(bool condition, V x, V y) { return condition ? x : y; }
};

namespace cuda_detail {
template <class V> SCANDSL_HD V short_sigmoid(V x) {
  return V(reciprocal_approximate(1.0F + exp2_approximate(-x.value * arithmetic<V>::log2_e)));
}
template <class V> SCANDSL_HD V short_silu_derivative(V x) {
  const V of_x = short_sigmoid(x),
          bounded = arithmetic<V>::minimum(primitive::silu_op::value(x), V(primitive::saturated));
  return bounded * (V(1.0F) - of_x) + of_x;
}
}  // namespace cuda_detail
/// Relative error 2^-20: of the exponential, the sum and the reciprocal. 0 below -87, where it is less than
/// 2^-125.
template <> SCANDSL_HD cuda_detail::approximate primitive::sigmoid_op::value(cuda_detail::approximate x) {
  return cuda_detail::short_sigmoid(x);
}
/// Absolute error 2^-19 where x is positive (x times that of 1 - sigmoid(x)); where it is negative, a
/// relative error of 2^-19 of the larger of its two terms, and 0 below -87.
template <>
SCANDSL_HD cuda_detail::approximate primitive::silu_derivative_op::value(cuda_detail::approximate x) {
  return cuda_detail::short_silu_derivative(x);
}

}  // namespace scandsl
