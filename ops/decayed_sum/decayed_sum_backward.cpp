#include <utility>

#include "../common/devices.hpp"
#include "../common/gradient_operands.hpp"
#include "broadcast.hpp"
#include "gradient_program.hpp"
#include "scandsl/ops/decayed_sum.hpp"

namespace scandsl::ops {
namespace {

using namespace decayed_sum_program;
using namespace gradient_names;

/// Runs where lanes are numbered in another order than in the scan: with no use for the carries that it left.
template <class F> void run_without_carries(const cpu& device, F&& run) { run(device); }
template <class F> void run_without_carries(const cuda& device, F&& run) {
  cuda plain = device;
  plain.carries = {};
  run(std::as_const(plain));
}
template <class F> void run_without_carries(cuda_sizing& device, F&& run) {
  cuda_sizing plain;
  run(plain);
  device.bytes = plain.bytes;
  device.carry_bytes = 0;
}

/// x's dimensions on the axes of a program whose decay repeats: b, repeated and n, or those of them that an
/// operand has.
class split_lanes {
public:
  split_lanes(const array& x, const array& decay, int dim, bool packed)
      : x_(x), decay_(decay), dim_(dim), packed_(packed) {}

  erased_view rows(const array& given) const {
    erased_view view{given.data, given.type, given.writable, 3, {}};
    for (int i = 0; i < x_.rank; ++i)
      view.axis[i == dim_ ? 2 : lane_axis(i)].push_back({given.extents[i], given.strides[i]});
    return view;
  }
  std::optional<erased_view> rows(const std::optional<array>& given) const {
    return given ? std::optional(rows(*given)) : std::nullopt;
  }
  std::optional<erased_view> state(const std::optional<array>& given) const {
    if (!given) return std::nullopt;
    erased_view view{given->data, given->type, given->writable, 3, {}};
    view.axis[0].push_back(packed_ ? scandsl::dim{given->extents[0], given->strides[0]} : scandsl::dim{1, 0});
    for (int i = 0, from = packed_ ? 1 : 0; i < x_.rank; ++i)
      if (i != dim_) {
        view.axis[1 + lane_axis(i)].push_back({given->extents[from], given->strides[from]});
        ++from;
      }
    return view;
  }
  /// Whether lanes are numbered as in the scan, which knows one axis of them: what repeats comes last.
  bool keeps_order() const {
    bool repeated = false;
    for (int i = 0; i < x_.rank; ++i) {
      if (i == dim_ || x_.extents[i] == 1) continue;
      if (repeated && lane_axis(i) == 0) return false;
      repeated = lane_axis(i) == 1;
    }
    return true;
  }
  /// A decay or its gradient, without what repeats.
  erased_view decays(const char* operand, const array& given) const {
    const array wide = broadcast(operand, given, x_);
    const bool steps = !repeats(decay_, x_, dim_);
    erased_view view{given.data, given.type, given.writable, steps ? 2 : 1, {}};
    for (int i = 0; i < x_.rank; ++i) {
      if (i != dim_ && lane_axis(i) == 0) view.axis[0].push_back({wide.extents[i], wide.strides[i]});
      if (i == dim_ && steps) view.axis[1].push_back({wide.extents[i], wide.strides[i]});
    }
    return view;
  }

private:
  const array& x_;
  const array& decay_;
  int dim_;
  bool packed_;

  int lane_axis(int i) const { return repeats(decay_, x_, i) ? 1 : 0; }
};

void check(const array& input, const array& decays, int along, const decayed_sum_gradients& gradients,
           const decayed_sum_options& options) {
  check_scan_gradients(input, along, gradients, options);
  require_dtype("decay", decays, dtype::float32, input.type);
  broadcast("decay", decays, input);
  if (!gradients.decay_gradient) return;
  require_shape("decay_gradient", *gradients.decay_gradient, decays.extents, decays.rank);
  require_dtype("decay_gradient", *gradients.decay_gradient, decays.type, decays.type);
}

template <class Device>
void run_backward(Device& device, const array& input, const array& decays, int dim,
                  const decayed_sum_gradients& gradients, const decayed_sum_options& options) {
  const int along = normalised_dim(input, dim);
  check(input, decays, along, gradients, options);
  const gradient_bindings bound(along, gradients, options);
  const bool packed = options.cu_seqlens.has_value();
  bool repeated_lanes = false;
  for (int i = 0; i < input.rank; ++i)
    repeated_lanes = repeated_lanes || (i != along && repeats(decays, input, i));
  const bool repeated_steps = repeats(decays, input, along);
  if (!gradients.decay_gradient) {
    const auto run = [&]<const scandsl::program & P>(ref<P>) {
      run_on<P>(device, decay = decays_along(broadcast("decay", decays, input), along, repeated_steps),
                dy = bound.dy, dx = bound.dx, dfinal_state = bound.dfinal, dinitial_state = bound.dinitial,
                reverse = options.reverse, exclusive = options.exclusive, log_decay = options.log_decay,
                cu_seqlens = bound.offsets);
    };
    if (repeated_steps)
      run(ref<gradient_without_decay_per_lane>{});
    else
      run(ref<gradient_without_decay>{});
  } else if (!repeated_lanes && !repeated_steps) {
    run_on<gradient_per_element>(
        device, x = rows_along(input, along), decay = rows_along(decays, along), dy = bound.dy, dx = bound.dx,
        ddecay = rows_along(*gradients.decay_gradient, along), dfinal_state = bound.dfinal,
        dinitial_state = bound.dinitial, initial_state = bound.initial, reverse = options.reverse,
        exclusive = options.exclusive, log_decay = options.log_decay, cu_seqlens = bound.offsets);
  } else {
    const split_lanes split(input, decays, along, packed);
    const auto run = [&]<const scandsl::program & P>(auto& on, ref<P>) {
      run_on<P>(on, x = split.rows(input), decay = split.decays("decay", decays),
                dy = split.rows(gradients.y_cotangent), dx = split.rows(gradients.x_gradient),
                ddecay = split.decays("decay_gradient", *gradients.decay_gradient),
                dfinal_state = split.state(gradients.final_state_cotangent),
                dinitial_state = split.state(gradients.initial_state_gradient),
                initial_state = split.state(options.initial_state), reverse = options.reverse,
                exclusive = options.exclusive, log_decay = options.log_decay, cu_seqlens = bound.offsets);
    };
    const auto run_any = [&](auto& on) {
      if (repeated_steps)
        run(on, ref<gradient_per_lane>{});
      else
        run(on, ref<gradient_per_step>{});
    };
    if (split.keeps_order())
      run_any(device);
    else
      run_without_carries(device, run_any);
  }
}

}  // namespace

void decayed_sum_backward(const cpu& device, const array& input, const array& decays, int dim,
                          const decayed_sum_gradients& gradients, const decayed_sum_options& options) {
  run_backward(device, input, decays, dim, gradients, options);
}
void decayed_sum_backward(const cuda& device, const array& input, const array& decays, int dim,
                          const decayed_sum_gradients& gradients, const decayed_sum_options& options) {
  run_backward(device, input, decays, dim, gradients, options);
}
void decayed_sum_backward(cuda_sizing& device, const array& input, const array& decays, int dim,
                          const decayed_sum_gradients& gradients, const decayed_sum_options& options) {
  run_backward(device, input, decays, dim, gradients, options);
}

}  // namespace scandsl::ops
