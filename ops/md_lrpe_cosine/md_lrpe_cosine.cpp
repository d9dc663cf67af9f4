#include "scandsl/ops/md_lrpe_cosine.hpp"

#include "../common/devices.hpp"
#include "operands.hpp"

namespace scandsl::ops {
namespace {

namespace names = md_lrpe_cosine_program;
inline constexpr tensor<"y"> y;

template <class Device>
void run_op(Device& device, const array& input, const array& theta, std::span<const std::int64_t> shape,
            const array& output, const md_lrpe_options& options) {
  const token_grid grid(shape, options.extra_tokens);
  const md_lrpe_operands operands(input, theta, grid, options);
  operands.check_output("y", output);
  if (options.angles)
    return run_on<names::from_angles>(device, names::x = as_it_is(input),
                                      names::angles = as_it_is(*options.angles), y = operands.y(output));
  run_on<names::program>(device, names::x = as_it_is(input), names::theta = as_it_is(theta),
                         names::sizes = grid.sizes(), names::strides = grid.strides(),
                         names::extra_tokens = options.extra_tokens, y = operands.y(output));
}

template <class Device>
void run_angles(Device& device, const array& theta, std::span<const std::int64_t> shape, const array& angles,
                std::int64_t extra_tokens) {
  const token_grid grid(shape, extra_tokens);
  if (theta.rank != 2 || angles.rank != 3 || angles.extents[0] != theta.extents[0] ||
      angles.extents[1] != grid.tokens() || grid.features_of_dimension(angles.extents[2]) != theta.extents[1])
    throw shape_error(
        message("theta of shape [h, e] and angles of shape [h, ", grid.tokens(), ", d], where e = ceil(d / ",
                shape.size(), ")"),
        message(shape_text(theta.extents, theta.rank), " and ", shape_text(angles.extents, angles.rank)),
        "match the grid");
  require_dtype("theta", theta, dtype::float32, dtype::float64);
  require_dtype("angles", angles, theta.type, theta.type);
  run_on<names::make_angles>(device, names::theta = as_it_is(theta), names::sizes = grid.sizes(),
                             names::strides = grid.strides(), names::extra_tokens = extra_tokens,
                             names::angles = as_it_is(angles));
}

}  // namespace

void md_lrpe_cosine(const cpu& device, const array& x, const array& theta,
                    std::span<const std::int64_t> shape, const array& output,
                    const md_lrpe_options& options) {
  run_op(device, x, theta, shape, output, options);
}
void md_lrpe_cosine(const cuda& device, const array& x, const array& theta,
                    std::span<const std::int64_t> shape, const array& output,
                    const md_lrpe_options& options) {
  run_op(device, x, theta, shape, output, options);
}
void md_lrpe_cosine(cuda_sizing& device, const array& x, const array& theta,
                    std::span<const std::int64_t> shape, const array& output,
                    const md_lrpe_options& options) {
  run_op(device, x, theta, shape, output, options);
}

void md_lrpe_angles(const cpu& device, const array& theta, std::span<const std::int64_t> shape,
                    const array& angles, std::int64_t extra_tokens) {
  run_angles(device, theta, shape, angles, extra_tokens);
}
void md_lrpe_angles(const cuda& device, const array& theta, std::span<const std::int64_t> shape,
                    const array& angles, std::int64_t extra_tokens) {
  run_angles(device, theta, shape, angles, extra_tokens);
}
void md_lrpe_angles(cuda_sizing& device, const array& theta, std::span<const std::int64_t> shape,
                    const array& angles, std::int64_t extra_tokens) {
  run_angles(device, theta, shape, angles, extra_tokens);
}

}  // namespace scandsl::ops
