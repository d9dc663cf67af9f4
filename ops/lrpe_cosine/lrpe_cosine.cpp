#include "scandsl/ops/lrpe_cosine.hpp"

#include "../common/devices.hpp"
#include "operands.hpp"

namespace scandsl::ops {
namespace {

using namespace lrpe_cosine_program;
inline constexpr tensor<"y"> y;

template <class Device>
void run_op(Device& device, const array& input, const array& angles, const array& output,
            const lrpe_options& options) {
  const lrpe_operands operands(input, angles, options);
  operands.check_output("y", output);
  const auto run = [&]<const scandsl::program & P>(ref<P>, const auto&... choices) {
    run_on<P>(device, x = operands.x(input), theta = operands.theta(), y = operands.y(output),
              offset = operands.offset(), choices...);
  };
  const auto positions_given = positions = operands.positions();
  const auto how = has_positions = operands.has_positions();
  switch (operands.kind(false)) {
  case lrpe_kind::plain: return run(ref<plain>{});
  case lrpe_kind::silu: return run(ref<with_silu>{});
  case lrpe_kind::choices: return run(ref<with_choices>{}, positions_given, how, act = operands.act());
  case lrpe_kind::softmax_features: return run(ref<softmax_features>{});
  case lrpe_kind::softmax_features_given: return run(ref<softmax_features_given>{}, positions_given, how);
  case lrpe_kind::softmax_sequence: return run(ref<softmax_sequence>{});
  case lrpe_kind::softmax_sequence_given: return run(ref<softmax_sequence_given>{}, positions_given, how);
  }
}

}  // namespace

void lrpe_cosine(const cpu& device, const array& input, const array& angles, const array& output,
                 const lrpe_options& options) {
  run_op(device, input, angles, output, options);
}
void lrpe_cosine(const cuda& device, const array& input, const array& angles, const array& output,
                 const lrpe_options& options) {
  run_op(device, input, angles, output, options);
}
void lrpe_cosine(cuda_sizing& device, const array& input, const array& angles, const array& output,
                 const lrpe_options& options) {
  run_op(device, input, angles, output, options);
}

}  // namespace scandsl::ops
