#pragma once
#include <limits>
#include <vector>

#include "../common/operands.hpp"
#include "program.hpp"
#include "scandsl/ops/md_lrpe_cosine.hpp"

/// Private to md_lrpe_cosine: its arguments, checked and as views on the axes of its programs.
namespace scandsl::ops {

/// The grid's sizes and strides, as the programs' tables.
class token_grid {
public:
  token_grid(std::span<const std::int64_t> shape, std::int64_t extra_tokens)
      : sizes_(shape.begin(), shape.end()), strides_(shape.size()), tokens_(extra_tokens) {
    if (shape.empty() || shape.size() > static_cast<std::size_t>(max_table))
      throw shape_error(message("a grid of 1 to ", max_table, " sizes"), message(shape.size()),
                        "merge dimensions of the grid");
    constexpr std::int64_t most_tokens = std::int64_t{1} << 62;
    if (extra_tokens < 0 || extra_tokens > most_tokens)
      throw argument_error("extra_tokens from 0 to 2^62", message(extra_tokens), "give their number");
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] < 0 || (shape[i] > 0 && stride > std::numeric_limits<std::int32_t>::max() / shape[i]))
        throw shape_error("sizes of at least 0 whose product is below 2^31",
                          shape_text(shape.data(), static_cast<int>(shape.size())), "check the grid");
      strides_[i] = stride;
      stride *= shape[i];
    }
    tokens_ += stride;
  }

  std::int64_t tokens() const { return tokens_; }
  /// Of d features.
  std::int64_t features_of_dimension(std::int64_t d) const {
    const auto m = static_cast<std::int64_t>(sizes_.size());
    return (d + m - 1) / m;
  }
  strided_view<const std::int64_t, 1> sizes() const { return view(sizes_.data(), sizes_.size()); }
  strided_view<const std::int64_t, 1> strides() const { return view(strides_.data(), strides_.size()); }

private:
  std::vector<std::int64_t> sizes_, strides_;
  std::int64_t tokens_;
};

/// An array on as many axes as it has dimensions.
inline erased_view as_it_is(const array& given) {
  erased_view view{given.data, given.type, given.writable, given.rank, {}};
  for (int i = 0; i < given.rank; ++i) view.axis[i].push_back({given.extents[i], given.strides[i]});
  return view;
}

class md_lrpe_operands {
public:
  md_lrpe_operands(const array& input, const array& theta, const token_grid& grid,
                   const md_lrpe_options& options)
      : x_(input) {
    require_floating("x", x_);
    const bool fits = x_.rank == 4 && x_.extents[2] == grid.tokens();
    if (!fits)
      throw shape_error(
          message("x of shape [b, h, ", grid.tokens(), ", d], a token for each place of the grid"),
          shape_text(x_.extents, x_.rank), "match extra_tokens + the product of shape");
    if (options.angles) {
      require_shape("angles", *options.angles, x_.extents + 1, 3);
      require_dtype("angles", *options.angles, dtype::float32, x_.type);
      return;
    }
    const std::int64_t extents[] = {x_.extents[1], grid.features_of_dimension(x_.extents[3])};
    require_shape("theta", theta, extents, 2);
    require_dtype("theta", theta, dtype::float32, x_.type);
  }
  /// y or its cotangent.
  void check_output(const char* operand, const array& given) const {
    const std::int64_t extents[] = {x_.extents[0], x_.extents[1], x_.extents[2], 2 * x_.extents[3]};
    require_shape(operand, given, extents, 4);
    require_dtype(operand, given, x_.type, x_.type);
  }
  void check_gradients(const array& theta, const lrpe_gradients& gradients,
                       const md_lrpe_options& options) const {
    check_output("y_cotangent", gradients.y_cotangent);
    if (gradients.x_gradient) {
      require_shape("x_gradient", *gradients.x_gradient, x_.extents, x_.rank);
      require_dtype("x_gradient", *gradients.x_gradient, x_.type, x_.type);
    }
    if (!gradients.theta_gradient) return;
    if (options.angles)
      throw argument_error("no theta_gradient beside angles", "both",
                           "leave out the angles, which hide theta");
    require_shape("theta_gradient", *gradients.theta_gradient, theta.extents, theta.rank);
    require_dtype("theta_gradient", *gradients.theta_gradient, theta.type, theta.type);
  }
  /// The cosines and sines apart from the features.
  erased_view y(const array& like_y) const {
    const std::int64_t features = x_.extents[3];
    erased_view view{like_y.data, like_y.type, like_y.writable, 5, {}};
    for (int i = 0; i < 3; ++i) view.axis[i].push_back({like_y.extents[i], like_y.strides[i]});
    view.axis[3].push_back({2, features * like_y.strides[3]});
    view.axis[4].push_back({features, like_y.strides[3]});
    return view;
  }

private:
  const array& x_;
};

}  // namespace scandsl::ops
