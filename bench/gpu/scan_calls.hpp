#pragma once
#include <scandsl/ops/logcumsumexp.hpp>

#include "measure.hpp"

/// Calls of the scans, as with_workspace and with_carries take them.
namespace bench {

template <class T> auto call_logcumsumexp(std::vector<std::int64_t> shape, int axis) {
  return [=](auto& device, int call) {
    ops::logcumsumexp(device, operand<T>(pool_x, shape, call), axis, operand<T>(pool_y, shape, call));
  };
}
/// Of x. pool_g holds the cotangents.
template <class T> ops::scan_gradients gradients_of(const std::vector<std::int64_t>& shape, int call) {
  ops::scan_gradients gradients;
  gradients.y_cotangent = operand<const T>(pool_g, shape, call);
  gradients.x_gradient = operand<T>(pool_y, shape, call);
  return gradients;
}
template <class T> auto call_logcumsumexp_backward(std::vector<std::int64_t> shape, int axis) {
  return [=](auto& device, int call) {
    ops::logcumsumexp_backward(device, operand<T>(pool_x, shape, call), axis, gradients_of<T>(shape, call));
  };
}

}  // namespace bench
