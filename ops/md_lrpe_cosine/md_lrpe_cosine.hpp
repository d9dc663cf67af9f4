#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "scandsl/ops/lrpe_cosine.hpp"

namespace scandsl::ops {

struct md_lrpe_options {
  std::int64_t extra_tokens = 0;  ///< before the others, with angle 0: they become x and zeros
  std::optional<array> angles;    ///< what md_lrpe_angles wrote; theta is then not looked at
};

/// lrpe_cosine of tokens on a grid of any number m of dimensions, up to 16: feature j has position number j /
/// e along the grid and the angle of that position and theta[:, j % e], e = ceil(d / m).
///
/// x: [b, h, extra_tokens + the product of `shape`, d], tokens row-major (the last size fastest), any
/// strides; float32, float64, bfloat16 or float16. y: [b, h, tokens, 2 d], of x's dtype. theta: [h, e];
/// float32, or of x's dtype. Values and errors as of lrpe_cosine.
void md_lrpe_cosine(const cpu& device, const array& x, const array& theta,
                    std::span<const std::int64_t> shape, const array& y, const md_lrpe_options& options = {});
void md_lrpe_cosine(const cuda& device, const array& x, const array& theta,
                    std::span<const std::int64_t> shape, const array& y, const md_lrpe_options& options = {});
void md_lrpe_cosine(cuda_sizing& device, const array& x, const array& theta,
                    std::span<const std::int64_t> shape, const array& y, const md_lrpe_options& options = {});

/// The gradient, derived from the program. With angles, theta has none: theta_gradient throws argument_error.
void md_lrpe_cosine_backward(const cpu& device, const array& x, const array& theta,
                             std::span<const std::int64_t> shape, const lrpe_gradients& gradients,
                             const md_lrpe_options& options = {});
void md_lrpe_cosine_backward(const cuda& device, const array& x, const array& theta,
                             std::span<const std::int64_t> shape, const lrpe_gradients& gradients,
                             const md_lrpe_options& options = {});
void md_lrpe_cosine_backward(cuda_sizing& device, const array& x, const array& theta,
                             std::span<const std::int64_t> shape, const lrpe_gradients& gradients,
                             const md_lrpe_options& options = {});

/// The angles, which md_lrpe_cosine takes: the exact products reduced to [-pi, pi]. theta: [h, e], float32 or
/// float64. angles: [h, extra_tokens + the product of `shape`, d], of theta's dtype, with ceil(d / m) = e.
void md_lrpe_angles(const cpu& device, const array& theta, std::span<const std::int64_t> shape,
                    const array& angles, std::int64_t extra_tokens = 0);
void md_lrpe_angles(const cuda& device, const array& theta, std::span<const std::int64_t> shape,
                    const array& angles, std::int64_t extra_tokens = 0);
void md_lrpe_angles(cuda_sizing& device, const array& theta, std::span<const std::int64_t> shape,
                    const array& angles, std::int64_t extra_tokens = 0);

}  // namespace scandsl::ops
