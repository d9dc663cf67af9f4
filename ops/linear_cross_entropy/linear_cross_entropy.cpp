#include "scandsl/ops/linear_cross_entropy.hpp"

#include <algorithm>
#include <memory>

#include "chunks.hpp"
#include "computation.hpp"
#include "scale.hpp"
#include "scandsl/exec/cuda_workspace.hpp"
#include "scandsl/pass/explain.hpp"
#include "targets.hpp"

namespace scandsl::ops {
namespace {

// ---- sessions

/// values *= the number `by`, where that is not 1.
void scale_on_cpu(const cpu& device, const erased_view& values, const void* by, const void* pending) {
  using namespace linear_cross_entropy_program;
  visit_dtype(state_dtype(values.type), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      const T product =
          *static_cast<const T*>(by) * (pending != nullptr ? *static_cast<const T*>(pending) : T(1));
      if (product != T(1)) run_on<scaled>(device, x = values, y = values, factor = view(&product));
    }
  });
}

class cpu_session {
public:
  static constexpr bool only_sizes = false;

  explicit cpu_session(const cpu& on) : device(on) {}

  template <const program& P, class... B> void run(const B&... bindings) { run_on<P>(device, bindings...); }
  void choose(const product&) {}
  void multiply(const product& what) { ops::multiply(device, what); }
  void scale(const matrix& values, const void* by) { scale_on_cpu(device, view_of(values), by, nullptr); }

private:
  const cpu& device;
};

class cuda_session {
public:
  static constexpr bool only_sizes = false;

  /// `workspace`: that of programs.
  cuda_session(CUstream_st* stream, cuda_workspace workspace, const cuda_blas::setting& with)
      : device(stream, workspace), blas(with) {}

  template <const program& P, class... B> void run(const B&... bindings) { run_on<P>(device, bindings...); }
  void choose(const product& what) {
    if (what.left.columns > 0) cuda_blas::choose(device, blas, what);
  }
  void multiply(const product& what) {
    using namespace linear_cross_entropy_program;
    if (what.left.columns > 0)
      cuda_blas::multiply(device, blas, what);
    else if (!what.accumulates)
      run<scaled>(y = view_of(what.result));  // sums of nothing
  }
  void scale(const matrix& values, const void* by) { ops::scale(device, view_of(values), by, nullptr); }

private:
  cuda device;
  const cuda_blas::setting& blas;
};

/// Finds what programs need of a workspace.
class sizing_session {
public:
  static constexpr bool only_sizes = true;

  template <const program& P, class... B> void run(const B&... bindings) {
    cuda_sizing size;
    run_on<P>(size, bindings...);
    bytes = std::max(bytes, size.bytes);
  }
  void choose(const product&) {}
  void multiply(const product&) {}
  void scale(const matrix&, const void*) {}

  std::int64_t bytes = 0;
};

// ---- calls

/// Calls f(gradient) for those that there are.
template <class F> void for_each_gradient(const linear_cross_entropy_gradients& gradients, F f) {
  for (const std::optional<array>* each :
       {&gradients.x_gradient, &gradients.weight_gradient, &gradients.bias_gradient})
    if (*each) f(**each);
}

constexpr auto takes_any = [](const matrix&) { return true; };

/// What a call allocates: what it holds, and the products' panels.
std::int64_t cpu_bytes(const call_arguments& call, std::int64_t tokens) {
  arena counted;
  const call_memory held(counted, call, tokens, takes_any);
  bool direct = call.x.type == call.sums();
  for (const matrix_operand* each : {&held.x, &held.weight, &held.x_gradient, &held.weight_gradient})
    direct = direct && (each->values.rows == 0 || has_unit_stride(each->values));
  return counted.bytes() + (direct ? 0 : panel_bytes(call.x.type));
}
chunk_choice cpu_chunk(const call_arguments& call) {
  std::optional<std::int64_t> limit;
  if (call.options.memory_limit > 0) limit = call.options.memory_limit;
  return choose_chunk(call, cpu_chunk_policy, limit,
                      [&](std::int64_t tokens) { return cpu_bytes(call, tokens); });
}

void run_call(const cpu& device, const call_arguments& call) {
  check_arguments(call);
  if (call.target) check_targets(call);
  const std::int64_t tokens = cpu_chunk(call).tokens;
  arena counted;
  const call_memory sizes(counted, call, tokens, takes_any);
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(counted.bytes()));
  arena from(memory.get());
  const call_memory held(from, call, tokens, takes_any);
  cpu_session session(device);
  computation(session, call, held)();
}

/// The workspace of a call that takes `tokens` at a time: what it holds, the products' part, the programs'.
std::int64_t cuda_bytes(const call_arguments& call, std::int64_t tokens) {
  arena counted;
  const call_memory held(counted, call, tokens, has_unit_stride);
  sizing_session session;
  computation(session, call, held)();
  return counted.bytes() + cuda_blas::scratch_bytes + session.bytes;
}
chunk_choice cuda_chunk(const call_arguments& call, std::optional<std::int64_t> limit) {
  return choose_chunk(call, cuda_chunk_policy, limit,
                      [&](std::int64_t tokens) { return cuda_bytes(call, tokens); });
}
/// The smaller of two limits, of which 0 is none.
std::int64_t within(std::int64_t limit, std::int64_t bytes) {
  return limit > 0 ? std::min(limit, bytes) : bytes;
}

/// Of a call that has its memory allocated, but for gradients without memory, which will take some of what is
/// free. That is asked for where a call needs some part of the device: to ask takes as long as to launch
/// several kernels. What an allocator keeps for later does not count as free, and may serve the gradients:
/// half is left to the chunk.
chunk_choice cuda_chunk_of_device(const call_arguments& call) {
  constexpr std::int64_t some_part = 256;
  std::optional<std::int64_t> limit;
  if (call.options.memory_limit > 0 && !call.logits_gradient) limit = call.options.memory_limit;
  const chunk_choice chunk = cuda_chunk(call, limit);
  if (call.logits_gradient || chunk.bytes < cuda_blas::all_bytes() / some_part) return chunk;
  const std::int64_t available = cuda_blas::free_bytes();
  std::int64_t wanted = 0;
  for_each_gradient(call.gradients, [&](const array& each) {
    if (each.data == nullptr) wanted += each.count() * static_cast<std::int64_t>(size_of(each.type));
  });
  return cuda_chunk(call, within(call.options.memory_limit, std::max(available / 2, available - wanted)));
}

void run_call(const cuda& device, const call_arguments& call) {
  check_arguments(call);
  if (call.options.check_targets) check_targets(device, call);
  const chunk_choice chunk =
      device.allocate != nullptr
          ? cuda_chunk_of_device(call)
          : cuda_chunk(call, within(call.options.memory_limit, device.workspace.bytes));
  cuda_detail::workspace_layout workspace(device);
  workspace.take(chunk.bytes);
  char* const memory = workspace.memory(device, make_name("linear_cross_entropy"));
  arena from(memory);
  const call_memory held(from, call, chunk.tokens, has_unit_stride);
  cuda_blas::setting blas;
  blas.scratch = from.take(cuda_blas::scratch_bytes);
  blas.tuning = call.options.tuning;
  cuda_session session(device.stream, {memory + from.bytes(), chunk.bytes - from.bytes()}, blas);
  computation(session, call, held)();
}

void run_call(cuda_sizing& device, const call_arguments& call) {
  check_without_memory(call);
  device.bytes = cuda_chunk_of_device(call).bytes;
}

template <class Device>
void run_backward(Device& device, const array& x, const array& weight, const array& target,
                  const linear_cross_entropy_gradients& gradients,
                  const linear_cross_entropy_options& options) {
  linear_cross_entropy_options without_outputs = options;
  without_outputs.lse.reset();
  run_call(device, {x, weight, target, {}, gradients, {}, without_outputs, true});
}

/// The gradients of one pass, whose cotangents are not looked at.
linear_cross_entropy_gradients without_cotangents(linear_cross_entropy_gradients gradients) {
  gradients.loss_cotangent.reset();
  gradients.lse_cotangent.reset();
  return gradients;
}

template <class Device>
void run_first_pass(Device& device, const array& x, const array& weight, const array& target,
                    const array& loss, const array& logits_gradient, const array& pending,
                    const linear_cross_entropy_options& options,
                    const linear_cross_entropy_gradients& earlier) {
  call_arguments call{x, weight, target, loss, {}, pending, options, false, logits_gradient};
  if (x.rank > 0 && call.keeps_last_chunk()) call.gradients = without_cotangents(earlier);
  run_call(device, call);
}

template <class Device>
void run_products(Device& device, const array& x, const array& weight, const array& logits_gradient,
                  const linear_cross_entropy_gradients& gradients, const array& factor, const array& pending,
                  const product_tuning& tuning) {
  linear_cross_entropy_options options;
  options.tuning = tuning;
  run_call(
      device,
      {x, weight, {}, {}, without_cotangents(gradients), pending, options, false, logits_gradient, factor});
}

// ---- plans

/// The arguments of a call that is only planned: its other operands have no memory.
call_arguments planned_call(const array& x, const array& weight,
                            const linear_cross_entropy_gradients& gradients,
                            const linear_cross_entropy_options& options) {
  array target = x;
  target.data = nullptr;
  target.type = dtype::int64;
  target.rank = std::max(x.rank - 1, 0);
  call_arguments call{x, weight, target, {}, gradients, {}, options, false};
  check_without_memory(call);
  return call;
}
linear_cross_entropy_plan describe_call(const call_arguments& call, const char* device,
                                        const call_memory& held, std::int64_t memory_bytes) {
  linear_cross_entropy_plan plan{device,      call.tokens(),     call.classes(),        call.features(),
                                 call.x.type, call.accumulate(), call.wants_gradients()};
  const std::int64_t row = held.logits.row_stride * static_cast<std::int64_t>(size_of(call.x.type));
  plan.tokens_a_chunk = held.logits.rows;
  plan.chunks = plan.tokens == 0 ? 0 : (plan.tokens + plan.tokens_a_chunk - 1) / plan.tokens_a_chunk;
  plan.logits_row = held.logits.row_stride;
  plan.logits_bytes = plan.tokens_a_chunk * row;
  plan.all_logits_bytes = plan.tokens * row;
  plan.copied_bytes = held.copied_bytes();
  plan.memory_bytes = memory_bytes;
  plan.keeps_logits_gradient = plan.with_gradients && call.options.reduction != loss_reduction::none &&
                               (plan.chunks <= 1 || (call.gradients.weight_gradient.has_value() &&
                                                     call.accumulate() == call.weight.type));
  return plan;
}

}  // namespace

void linear_cross_entropy(const cpu& device, const array& x, const array& weight, const array& target,
                          const array& loss, const linear_cross_entropy_options& options) {
  run_call(device, {x, weight, target, loss, {}, {}, options, false});
}
void linear_cross_entropy(const cuda& device, const array& x, const array& weight, const array& target,
                          const array& loss, const linear_cross_entropy_options& options) {
  run_call(device, {x, weight, target, loss, {}, {}, options, false});
}
void linear_cross_entropy(cuda_sizing& device, const array& x, const array& weight, const array& target,
                          const array& loss, const linear_cross_entropy_options& options) {
  run_call(device, {x, weight, target, loss, {}, {}, options, false});
}

void linear_cross_entropy_with_gradients(const cpu& device, const array& x, const array& weight,
                                         const array& target, const array& loss,
                                         const linear_cross_entropy_gradients& gradients,
                                         const linear_cross_entropy_options& options,
                                         const std::optional<array>& pending) {
  run_call(device, {x, weight, target, loss, without_cotangents(gradients), pending, options, false});
}
void linear_cross_entropy_with_gradients(const cuda& device, const array& x, const array& weight,
                                         const array& target, const array& loss,
                                         const linear_cross_entropy_gradients& gradients,
                                         const linear_cross_entropy_options& options,
                                         const std::optional<array>& pending) {
  run_call(device, {x, weight, target, loss, without_cotangents(gradients), pending, options, false});
}
void linear_cross_entropy_with_gradients(cuda_sizing& device, const array& x, const array& weight,
                                         const array& target, const array& loss,
                                         const linear_cross_entropy_gradients& gradients,
                                         const linear_cross_entropy_options& options,
                                         const std::optional<array>& pending) {
  run_call(device, {x, weight, target, loss, without_cotangents(gradients), pending, options, false});
}

void linear_cross_entropy_with_logits_gradient(const cpu& device, const array& x, const array& weight,
                                               const array& target, const array& loss,
                                               const array& logits_gradient, const array& pending,
                                               const linear_cross_entropy_options& options,
                                               const linear_cross_entropy_gradients& earlier) {
  run_first_pass(device, x, weight, target, loss, logits_gradient, pending, options, earlier);
}
void linear_cross_entropy_with_logits_gradient(const cuda& device, const array& x, const array& weight,
                                               const array& target, const array& loss,
                                               const array& logits_gradient, const array& pending,
                                               const linear_cross_entropy_options& options,
                                               const linear_cross_entropy_gradients& earlier) {
  run_first_pass(device, x, weight, target, loss, logits_gradient, pending, options, earlier);
}
void linear_cross_entropy_with_logits_gradient(cuda_sizing& device, const array& x, const array& weight,
                                               const array& target, const array& loss,
                                               const array& logits_gradient, const array& pending,
                                               const linear_cross_entropy_options& options,
                                               const linear_cross_entropy_gradients& earlier) {
  run_first_pass(device, x, weight, target, loss, logits_gradient, pending, options, earlier);
}

void linear_cross_entropy_products(const cpu& device, const array& x, const array& weight,
                                   const array& logits_gradient,
                                   const linear_cross_entropy_gradients& gradients, const array& factor,
                                   const array& pending, const product_tuning& tuning) {
  run_products(device, x, weight, logits_gradient, gradients, factor, pending, tuning);
}
void linear_cross_entropy_products(const cuda& device, const array& x, const array& weight,
                                   const array& logits_gradient,
                                   const linear_cross_entropy_gradients& gradients, const array& factor,
                                   const array& pending, const product_tuning& tuning) {
  run_products(device, x, weight, logits_gradient, gradients, factor, pending, tuning);
}
void linear_cross_entropy_products(cuda_sizing& device, const array& x, const array& weight,
                                   const array& logits_gradient,
                                   const linear_cross_entropy_gradients& gradients, const array& factor,
                                   const array& pending, const product_tuning& tuning) {
  run_products(device, x, weight, logits_gradient, gradients, factor, pending, tuning);
}

void linear_cross_entropy_backward(const cpu& device, const array& x, const array& weight,
                                   const array& target, const linear_cross_entropy_gradients& gradients,
                                   const linear_cross_entropy_options& options) {
  run_backward(device, x, weight, target, gradients, options);
}
void linear_cross_entropy_backward(const cuda& device, const array& x, const array& weight,
                                   const array& target, const linear_cross_entropy_gradients& gradients,
                                   const linear_cross_entropy_options& options) {
  run_backward(device, x, weight, target, gradients, options);
}
void linear_cross_entropy_backward(cuda_sizing& device, const array& x, const array& weight,
                                   const array& target, const linear_cross_entropy_gradients& gradients,
                                   const linear_cross_entropy_options& options) {
  run_backward(device, x, weight, target, gradients, options);
}

void scale_gradients(const cpu& device, const linear_cross_entropy_gradients& gradients, const array& by,
                     const std::optional<array>& pending) {
  check_scaling(gradients, by, pending);
  for_each_gradient(gradients, [&](const array& each) {
    scale_on_cpu(device, column_of(each), by.data, pending ? pending->data : nullptr);
  });
}
void scale_gradients(const cuda& device, const linear_cross_entropy_gradients& gradients, const array& by,
                     const std::optional<array>& pending) {
  check_scaling(gradients, by, pending);
  for_each_gradient(gradients, [&](const array& each) {
    scale(device, all_of(each), by.data, pending ? pending->data : nullptr);
  });
}

linear_cross_entropy_plan plan_linear_cross_entropy(const cpu&, const array& x, const array& weight,
                                                    const linear_cross_entropy_gradients& gradients,
                                                    const linear_cross_entropy_options& options) {
  const call_arguments call = planned_call(x, weight, gradients, options);
  const chunk_choice chunk = cpu_chunk(call);
  arena counted;
  const call_memory held(counted, call, chunk.tokens, takes_any);
  return describe_call(call, "the CPU", held, chunk.bytes);
}
linear_cross_entropy_plan plan_linear_cross_entropy(cuda_sizing& device, const array& x, const array& weight,
                                                    const linear_cross_entropy_gradients& gradients,
                                                    const linear_cross_entropy_options& options) {
  const call_arguments call = planned_call(x, weight, gradients, options);
  const chunk_choice chunk = cuda_chunk_of_device(call);
  arena counted;
  const call_memory held(counted, call, chunk.tokens, has_unit_stride);
  device.bytes = chunk.bytes;
  return describe_call(call, "the GPU", held, device.bytes);
}

std::string explain(const linear_cross_entropy_plan& plan) {
  using scandsl::detail::joined;
  using scandsl::detail::size_text;
  std::string text =
      joined("linear_cross_entropy on ", plan.device, ": ", plan.tokens, " tokens, ", plan.classes,
             " classes, ", plan.features, " features, ", name_of(plan.type), "\n");
  text += joined("  ", plan.chunks, plan.chunks == 1 ? " chunk of " : " chunks of ", plan.tokens_a_chunk,
                 " tokens: logits ", size_text(plan.logits_bytes), "; all of them would be ",
                 size_text(plan.all_logits_bytes), "\n");
  text += plan.with_gradients
              ? joined("  a chunk: logits; loss and gradient in place; x's gradient; weight's, summed in ",
                       name_of(plan.accumulate), "\n")
              : std::string("  a chunk: logits; loss\n");
  if (plan.keeps_logits_gradient)
    text += joined("  or in two passes: kept for the products of the second, the logits' gradient",
                   plan.chunks > 1 ? " of the last chunk, " : ", ", size_text(plan.logits_bytes), "\n");
  if (plan.copied_bytes > 0) text += joined("  copies of operands: ", size_text(plan.copied_bytes), "\n");
  return text + joined("  memory beside the operands: ", size_text(plan.memory_bytes), "\n");
}

}  // namespace scandsl::ops
