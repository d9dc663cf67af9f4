#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

/// The layer of examples/layer.hpp and its gradient, as loops in float64, for operands drawn at random.
struct layer_reference {
  std::size_t batch, length, heads, features, every;
  std::vector<double> x, g, theta, decay, dy;
  std::vector<double> y, dx, dg;
  /// What an element adds up, without signs: errors are measured in it.
  std::vector<double> size_of_y, size_of_dx, size_of_dg;

  layer_reference(std::size_t b, std::size_t n, std::size_t h, std::size_t d, std::size_t chunk)
      : batch(b), length(n), heads(h), features(d), every(chunk) {
    std::mt19937 random(static_cast<unsigned>(b + n + h + d));
    std::normal_distribution<double> normal;
    const auto draw = [&](std::vector<double>& to, std::size_t count) {
      to.resize(count);
      for (double& each : to) each = normal(random);
    };
    const std::size_t count = b * n * h * d;
    draw(x, count);
    draw(g, count);
    draw(dy, 2 * count);
    draw(theta, h * d);
    for (std::size_t i = 0; i < h; ++i) decay.push_back(i % 2 == 0 ? 0.9375 : -0.5);
  }

  /// An operand as T, to which its numbers here are rounded, too.
  template <class T> static std::vector<T> held(std::vector<double>& exact) {
    if constexpr (std::is_same_v<T, double>) return exact;
    std::vector<T> values;
    for (double& each : exact)
      each = static_cast<double>(static_cast<float>(values.emplace_back(static_cast<float>(each))));
    return values;
  }

  /// How far `values` are off, in units of `sizes`, beyond a rounding by `unit` when stored; 1e30 where one
  /// is not finite.
  template <class T>
  static double error_in(const std::vector<double>& sizes, const std::vector<T>& values,
                         const std::vector<double>& expected, double unit = 0) {
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      double value;
      if constexpr (sizeof(T) == 8)
        value = values[i];
      else
        value = static_cast<double>(static_cast<float>(values[i]));
      const double error = std::fabs(value - expected[i]) - unit * std::fabs(expected[i]);
      if (!(error <= 0)) worst = std::isfinite(error / sizes[i]) ? std::max(worst, error / sizes[i]) : 1e30;
    }
    return worst;
  }

  void compute() {
    y.assign(dy.size(), 0);
    dx.assign(x.size(), 0);
    dg = size_of_dx = size_of_dg = dx;
    size_of_y = y;
    for (std::size_t i = 0; i < batch; ++i)
      for (std::size_t j = 0; j < heads; ++j)
        for (std::size_t k = 0; k < features; ++k)
          for (std::size_t part = 0; part < 2; ++part) lane(i, j, k, part);
  }

private:
  static double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

  /// One part of one feature, there and back.
  void lane(std::size_t i, std::size_t j, std::size_t k, std::size_t part) {
    std::vector<double> state(length), size(length);
    const auto at = [&](std::size_t t) { return ((i * length + t) * heads + j) * features + k; };
    const auto of_part = [&](std::size_t t) {
      return (((i * length + t) * heads + j) * 2 + part) * features + k;
    };
    const auto turn = [&](std::size_t t) {
      const double angle = static_cast<double>(t) * theta[j * features + k];
      return part == 0 ? std::cos(angle) : std::sin(angle);
    };
    const auto begins = [&](std::size_t t) { return t == 0 || (every > 0 && t % every == 0); };
    for (std::size_t t = 0; t < length; ++t) {
      const double value = x[at(t)] * sigmoid(x[at(t)]), gate = sigmoid(g[at(t)]);
      state[t] = value * turn(t) + (begins(t) ? 0 : decay[j] * state[t - 1]);
      size[t] = std::fabs(value) + (begins(t) ? 0 : std::fabs(decay[j]) * size[t - 1]);
      y[of_part(t)] = gate * state[t];
      size_of_y[of_part(t)] = gate * size[t];
      dg[at(t)] += gate * (1 - gate) * state[t] * dy[of_part(t)];
      size_of_dg[at(t)] += gate * (1 - gate) * size[t] * std::fabs(dy[of_part(t)]);
    }
    double back = 0, back_size = 0;
    for (std::size_t t = length; t-- > 0;) {
      const bool ends = t + 1 == length || begins(t + 1);
      const double gate = sigmoid(g[at(t)]), s = sigmoid(x[at(t)]), slope = s * (1 + x[at(t)] * (1 - s));
      back = gate * dy[of_part(t)] + (ends ? 0 : decay[j] * back);
      back_size = gate * std::fabs(dy[of_part(t)]) + (ends ? 0 : std::fabs(decay[j]) * back_size);
      dx[at(t)] += slope * turn(t) * back;
      // Near its root the slope is a difference of numbers of size s.
      size_of_dx[at(t)] += s * (1 + std::fabs(x[at(t)])) * back_size;
    }
  }
};
