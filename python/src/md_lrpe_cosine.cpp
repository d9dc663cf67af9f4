#include "scandsl/ops/md_lrpe_cosine.hpp"

#include "encoding_call.hpp"

namespace scandsl::binding {
namespace {

using extents = std::vector<std::int64_t>;

/// The operands of a call, checked as far as the op does not.
struct md_lrpe_call {
  array x, theta;
  ops::md_lrpe_options options;

  md_lrpe_call(const Tensor& input, const optional_tensor& angles_of_one, const optional_tensor& angles,
               std::int64_t extra_tokens)
      : x(array_of("x", input)), options{extra_tokens, array_of("angles", angles)} {
    require_same_device("theta", angles_of_one, "x", input);
    require_same_device("angles", angles, "x", input);
    if (!angles_of_one && !angles) throw argument_error("theta or angles", "neither", "give one of both");
    if (angles_of_one) theta = array_of("theta", *angles_of_one);
  }
};

tensor_list forward(const Tensor& x, const optional_tensor& theta, const optional_tensor& angles,
                    const extents& shape, std::int64_t extra_tokens) {
  const md_lrpe_call call(x, theta, angles, extra_tokens);
  const Tensor result = allocate_encoded(x, call.x);
  const array y = array_of("y", result, true);
  run_where(x,
            [&](auto& device) { ops::md_lrpe_cosine(device, call.x, call.theta, shape, y, call.options); });
  return {result};
}

tensor_list backward(const optional_tensor& y_cotangent, const Tensor& x, const optional_tensor& theta,
                     const optional_tensor& angles, const extents& shape, std::int64_t extra_tokens,
                     const std::vector<bool>& wanted) {
  const md_lrpe_call call(x, theta, angles, extra_tokens);
  result_list results(wanted);
  ops::lrpe_gradients gradients;
  gradients.y_cotangent = array_of("y_cotangent", y_cotangent.value());
  gradients.x_gradient = results.like("x_gradient", x);
  gradients.theta_gradient = results.like("theta_gradient", theta);
  run_where(x, [&](auto& device) {
    ops::md_lrpe_cosine_backward(device, call.x, call.theta, shape, gradients, call.options);
  });
  return results.tensors();
}

Tensor angles(const Tensor& theta, const extents& shape, std::int64_t extra_tokens) {
  const array angles_of_one = array_of("theta", theta);
  if (angles_of_one.rank != 2)
    throw shape_error("theta of shape [h, e]", message("rank ", angles_of_one.rank), "add a dimension");
  std::int64_t tokens = extra_tokens, grid = 1;
  for (const std::int64_t size : shape) grid *= size;
  tokens += grid;
  const std::int64_t sizes[] = {angles_of_one.extents[0], tokens > 0 ? tokens : 0,
                                angles_of_one.extents[1] * static_cast<std::int64_t>(shape.size())};
  const Tensor result = allocate(sizes, theta.scalar_type(), theta);
  const array written = array_of("angles", result, true);
  run_where(theta,
            [&](auto& device) { ops::md_lrpe_angles(device, angles_of_one, shape, written, extra_tokens); });
  return result;
}

const kernels registered(
    "scandsl",
    {
        {"md_lrpe_cosine(Tensor x, Tensor? theta, Tensor? angles, SymInt[] shape, SymInt extra_tokens=0) -> "
         "Tensor[]",
         boxed<forward>},
        {"md_lrpe_cosine_backward(Tensor? y_cotangent, Tensor x, Tensor? theta, Tensor? angles, "
         "SymInt[] shape, SymInt extra_tokens, bool[] wanted) -> Tensor[]",
         boxed<backward>},
        {"md_lrpe_angles(Tensor theta, SymInt[] shape, SymInt extra_tokens) -> Tensor", boxed<angles>},
    });

}  // namespace
}  // namespace scandsl::binding
