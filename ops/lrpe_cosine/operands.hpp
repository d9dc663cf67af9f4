#pragma once
#include "../common/operands.hpp"
#include "program.hpp"
#include "scandsl/ops/lrpe_cosine.hpp"

/// Private to lrpe_cosine: its arguments, checked and as views on the axes of its programs.
namespace scandsl::ops {

/// The kinds of encodings that have a program of their own.
enum class lrpe_kind {
  plain,
  silu,
  choices,
  softmax_features,
  softmax_features_given,
  softmax_sequence,
  softmax_sequence_given,
};

class lrpe_operands {
public:
  lrpe_operands(const array& input, const array& angles, const lrpe_options& options)
      : x_(input), theta_(angles), options_(options) {
    require_floating("x", x_);
    if (x_.rank != 4)
      throw shape_error("x of shape [b, n, h, d]", shape_text(x_.extents, x_.rank),
                        "add or merge dimensions");
    require_dtype("theta", theta_, dtype::float32, x_.type);
    check_theta();
    check_positions();
  }

  /// The program that serves the options. `sums_over_theta`: the gradient of a theta that repeats is wanted.
  lrpe_kind kind(bool sums_over_theta) const {
    const bool is_general = options_.positions || (sums_over_theta && repeats());
    if (options_.act == lrpe_activation::softmax) {
      if (options_.act_dim == -1 || options_.act_dim == 3)
        return is_general ? lrpe_kind::softmax_features_given : lrpe_kind::softmax_features;
      if (options_.act_dim == 1 || options_.act_dim == -3)
        return is_general ? lrpe_kind::softmax_sequence_given : lrpe_kind::softmax_sequence;
      throw index_error("act_dim -1, the features, or 1, the sequence", message(options_.act_dim),
                        "name one of these two");
    }
    if (is_general) return lrpe_kind::choices;
    if (options_.act == lrpe_activation::none) return lrpe_kind::plain;
    return options_.act == lrpe_activation::silu ? lrpe_kind::silu : lrpe_kind::choices;
  }

  /// y or its cotangent.
  void check_output(const char* operand, const array& given) const {
    const std::int64_t extents[] = {x_.extents[0], x_.extents[1], x_.extents[2], 2 * x_.extents[3]};
    require_shape(operand, given, extents, 4);
    require_dtype(operand, given, x_.type, x_.type);
  }
  void check_gradients(const lrpe_gradients& gradients) const {
    check_output("y_cotangent", gradients.y_cotangent);
    if (gradients.x_gradient) {
      require_shape("x_gradient", *gradients.x_gradient, x_.extents, x_.rank);
      require_dtype("x_gradient", *gradients.x_gradient, x_.type, x_.type);
    }
    if (gradients.theta_gradient) {
      require_shape("theta_gradient", *gradients.theta_gradient, theta_.extents, theta_.rank);
      require_dtype("theta_gradient", *gradients.theta_gradient, theta_.type, theta_.type);
    }
  }

  erased_view x(const array& like_x) const {
    erased_view view{like_x.data, like_x.type, like_x.writable, 4, {}};
    for (int i = 0; i < 4; ++i) view.axis[i].push_back({like_x.extents[i], like_x.strides[i]});
    return view;
  }
  /// Heads, then cosines and sines apart from features.
  erased_view y(const array& like_y) const {
    const std::int64_t features = x_.extents[3];
    erased_view view{like_y.data, like_y.type, like_y.writable, 5, {}};
    for (int i = 0; i < 3; ++i) view.axis[i].push_back({like_y.extents[i], like_y.strides[i]});
    view.axis[3].push_back({2, features * like_y.strides[3]});
    view.axis[4].push_back({features, like_y.strides[3]});
    return view;
  }
  /// On the axes h and d, single dimensions repeated.
  erased_view theta() const {
    erased_view view = theta_as_it_is(theta_);
    for (int i = 0; i < 2; ++i)
      if (theta_.extents[i] == 1) view.axis[i] = dims{{x_.extents[2 + i], 0}};
    return view;
  }
  erased_view theta_as_it_is(const array& like_theta) const {
    erased_view view{like_theta.data, like_theta.type, like_theta.writable, 2, {}};
    for (int i = 0; i < 2; ++i) view.axis[i].push_back({like_theta.extents[i], like_theta.strides[i]});
    return view;
  }
  std::optional<erased_view> positions() const {
    if (!options_.positions) return std::nullopt;
    const array& given = *options_.positions;
    erased_view view{given.data, given.type, given.writable, 2, {}};
    if (given.rank == 1) view.axis[0].push_back({x_.extents[0], 0});
    for (int i = 0; i < given.rank; ++i)
      view.axis[2 - given.rank + i].push_back({given.extents[i], given.strides[i]});
    return view;
  }
  int has_positions() const { return options_.positions ? 1 : 0; }
  std::int64_t offset() const { return options_.offset; }
  int act() const { return static_cast<int>(options_.act); }

private:
  const array& x_;
  const array& theta_;
  const lrpe_options& options_;

  bool repeats() const {
    return (theta_.extents[0] == 1 && x_.extents[2] != 1) || (theta_.extents[1] == 1 && x_.extents[3] != 1);
  }
  void check_theta() const {
    bool fits = theta_.rank == 2;
    for (int i = 0; fits && i < 2; ++i)
      fits = theta_.extents[i] == x_.extents[2 + i] || theta_.extents[i] == 1;
    if (!fits || (theta_.extents[0] != x_.extents[2] && theta_.extents[1] != x_.extents[3]))
      throw shape_error(message("theta of shape [", x_.extents[2], ", ", x_.extents[3], "], [", x_.extents[2],
                                ", 1] or [1, ", x_.extents[3], "]"),
                        shape_text(theta_.extents, theta_.rank), "match the heads and features of x");
  }
  void check_positions() const {
    if (static_cast<unsigned>(options_.act) > static_cast<unsigned>(lrpe_activation::softmax))
      throw argument_error("an activation of lrpe_activation", message(static_cast<int>(options_.act)),
                           "name one of the enumeration");
    if (!options_.positions) {
      const std::int64_t first = options_.offset, limit = std::int64_t{1} << 31;
      if (x_.type != dtype::float64 && (first < -limit || first > limit - x_.extents[1]))
        throw argument_error("positions of at most 31 bits", message("offset ", options_.offset),
                             "use float64 for positions so far away");
      return;
    }
    const array& given = *options_.positions;
    require_dtype("positions", given, dtype::int32, dtype::int64);
    if (given.rank == 1)
      require_shape("positions", given, x_.extents + 1, 1);
    else
      require_shape("positions", given, x_.extents, 2);
  }
};

}  // namespace scandsl::ops
