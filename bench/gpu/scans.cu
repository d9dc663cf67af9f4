#include <scandsl/ops/chunk_cumsum_decay.hpp>
#include <scandsl/ops/decayed_sum.hpp>
#include <scandsl/ops/logcumsumexp.hpp>

#include "scan_calls.hpp"
#include "scandsl/cuda.cuh"

namespace bench {
namespace {

template <class T> void add_logcumsumexp(const char* dtype, std::vector<std::int64_t> shape, int axis) {
  measure({"logcumsumexp", "none", dtype, shape, axis,
           2 * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_workspace(call_logcumsumexp<T>(shape, axis))});
}
template <class T> int parts_for(const std::vector<std::int64_t>& shape) {
  return parts_of_pool(count_of(shape) * static_cast<std::int64_t>(sizeof(T)));
}
/// A call that leaves carries, as it does where a gradient will be asked for.
template <class Call> auto leaving(Call call, std::int64_t bytes) {
  return [=, memory = static_cast<void*>(nullptr)](auto& device, int number) mutable {
    if constexpr (requires { device.with_carries; }) {
      device.with_carries = true;
    } else {
      if (memory == nullptr && bytes > 0) check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
      device.carries = {memory, bytes};
    }
    call(device, number);
  };
}
template <class T>
void add_logcumsumexp_leaving(const char* dtype, std::vector<std::int64_t> shape, int axis) {
  const auto call = call_logcumsumexp<T>(shape, axis);
  cuda_sizing sizing{.with_carries = true};
  call(sizing, 0);
  measure({"logcumsumexp", "leaving_carries", dtype, shape, axis,
           2 * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_workspace(leaving(call, sizing.carry_bytes))});
}
template <class T> auto call_decayed_sum(std::vector<std::int64_t> shape, int axis, bool scalar) {
  return [=](auto& device, int call) {
    ops::decayed_sum(device, operand<T>(pool_x, shape, call),
                     scalar ? operand<T>(pool_decay, {}, 0) : operand<T>(pool_decay, shape, call), axis,
                     operand<T>(pool_y, shape, call));
  };
}
template <class T>
void add_decayed_sum(const char* dtype, std::vector<std::int64_t> shape, int axis, bool scalar) {
  measure({"decayed_sum", scalar ? "scalar_decay" : "element_decay", dtype, shape, axis,
           (scalar ? 2 : 3) * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_workspace(call_decayed_sum<T>(shape, axis, scalar))});
}
template <class T> void add_chunk_cumsum(const char* dtype, std::vector<std::int64_t> shape, bool reverse) {
  ops::chunk_cumsum_options options;
  options.reverse = reverse;
  measure({"chunk_cumsum_decay", reverse ? "reverse" : "forward", dtype, shape, 1,
           2 * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_workspace([=](auto& device, int call) {
             ops::chunk_cumsum_decay(device, operand<T>(pool_x, shape, call), operand<T>(pool_y, shape, call),
                                     options);
           })});
}

// Backward: of x and of decay.
template <class T>
void add_logcumsumexp_backward(const char* dtype, std::vector<std::int64_t> shape, int axis) {
  measure({"logcumsumexp", "none", dtype, shape, axis,
           3 * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_carries(parts_for<T>(shape), call_logcumsumexp<T>(shape, axis),
                        call_logcumsumexp_backward<T>(shape, axis)),
           "backward"});
}
template <class T>
void add_decayed_sum_backward(const char* dtype, std::vector<std::int64_t> shape, int axis,
                              bool scalar = false) {
  const std::vector<std::int64_t> decays = scalar ? std::vector<std::int64_t>{} : shape;
  measure({"decayed_sum", scalar ? "scalar_decay" : "element_decay", dtype, shape, axis,
           (scalar ? 3 : 5) * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_carries(parts_for<T>(shape), call_decayed_sum<T>(shape, axis, scalar),
                        [=](auto& device, int call) {
                          ops::decayed_sum_gradients gradients;
                          static_cast<ops::scan_gradients&>(gradients) = gradients_of<T>(shape, call);
                          gradients.decay_gradient = operand<T>(pool_z, decays, call);
                          ops::decayed_sum_backward(device, operand<T>(pool_x, shape, call),
                                                    operand<T>(pool_decay, decays, scalar ? 0 : call), axis,
                                                    gradients);
                        }),
           "backward"});
}
template <class T> void add_chunk_cumsum_backward(const char* dtype, std::vector<std::int64_t> shape) {
  measure({"chunk_cumsum_decay", "forward", dtype, shape, 1,
           2 * count_of(shape) * static_cast<std::int64_t>(sizeof(T)),
           with_workspace([=](auto& device, int call) {
             ops::chunk_cumsum_decay_backward(device, operand<T>(pool_g, shape, call),
                                              operand<T>(pool_y, shape, call));
           }),
           "backward"});
}

constexpr axis<"n"> n;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
inline constexpr auto long_sum = op<"long_sum">(out<"y">(n) = scan(plain_sum, over(n), x(n)));
inline constexpr auto long_log = op<"long_log">(out<"y">(n) = scan(log_add_exp, over(n), x(n)));

template <const program& P> void add_long_row(const char* op_name, std::int64_t length) {
  const std::int64_t bytes = workspace_bytes<P>(x = shape<float>(length), y = shape<float>(length));
  void* memory = nullptr;
  if (bytes > 0) check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)));
  const cuda device{nullptr, {memory, bytes}};
  measure({op_name, "none", "f32", {1, length}, 1, 2 * length * 4, [=](int call) {
             run<P>(device, x = view(static_cast<const float*>(pool_x.part(length * 4, call)), length),
                    y = view(static_cast<float*>(pool_y.part(length * 4, call)), length));
           }});
}

/// [batch, rows, length], of lengths up to 65536: 100 to 1610 MB of bfloat16 numbers.
std::vector<std::int64_t> rows_of(std::int64_t length) {
  if (length <= 8192) return {12, 8192, length};
  return {12 * 16384 / length, 2048, length};
}

}  // namespace

void add_scans() {
  for (const std::int64_t length : {512, 2048, 8192, 16384, 32768, 65536})
    add_logcumsumexp<bfloat16>("bf16", rows_of(length), 2);
  for (const std::int64_t length : {512, 8192, 16384, 32768, 65536})
    add_decayed_sum<bfloat16>("bf16", rows_of(length), 2, false);
  add_logcumsumexp<bfloat16>("bf16", {12, 8192, 2048}, 1);
  add_logcumsumexp_leaving<bfloat16>("bf16", {12, 8192, 2048}, 1);
  add_logcumsumexp<bfloat16>("bf16", {1, 1 << 20, 64}, 1);
  add_logcumsumexp<bfloat16>("bf16", {1, 65536, 1024}, 1);
  // Rows that do not begin where vectors do.
  for (const int along : {2, 1}) {
    add_logcumsumexp<bfloat16>("bf16", {12, 8192, 2047}, along);
    add_decayed_sum<bfloat16>("bf16", {12, 8192, 2047}, along, false);
  }
  for (const int along : {2, 1})
    for (const bool scalar : {false, true})
      add_decayed_sum<bfloat16>("bf16", {12, 8192, 2048}, along, scalar);
  for (const bool reverse : {false, true})
    for (const std::int64_t width : {128, 1})
      for (const std::int64_t length : {8192, 32768})
        add_chunk_cumsum<bfloat16>("bf16", {16, length, 16, width}, reverse);
}
void add_scan_gradients() {
  for (const int along : {2, 1}) {
    add_logcumsumexp_backward<bfloat16>("bf16", {12, 8192, 2048}, along);
    for (const bool scalar : {false, true})
      add_decayed_sum_backward<bfloat16>("bf16", {12, 8192, 2048}, along, scalar);
  }
  for (const std::int64_t length : {512, 8192, 16384, 32768, 65536}) {
    add_logcumsumexp_backward<bfloat16>("bf16", rows_of(length), 2);
    add_decayed_sum_backward<bfloat16>("bf16", rows_of(length), 2);
  }
  add_decayed_sum_backward<bfloat16>("bf16", rows_of(65536), 2, true);
  add_logcumsumexp_backward<bfloat16>("bf16", {12, 8192, 2047}, 2);
  add_logcumsumexp_backward<bfloat16>("bf16", {1, 1 << 20, 64}, 1);
  add_decayed_sum_backward<bfloat16>("bf16", {1, 1 << 20, 64}, 1);
  add_chunk_cumsum_backward<bfloat16>("bf16", {16, 32768, 16, 128});
}
void add_float32() {
  add_logcumsumexp<float>("f32", {12, 8192, 2048}, 2);
  add_logcumsumexp<float>("f32", {12, 8192, 2048}, 1);
  for (const int power : {26, 28, 30}) {
    add_long_row<long_sum>("plain_sum", std::int64_t{1} << power);
    add_long_row<long_log>("log_add_exp", std::int64_t{1} << power);
  }
  // The other pools' pairs of bfloat16 numbers are float32 numbers of the same range.
  add_logcumsumexp_backward<float>("f32", {1, 1 << 26, 1}, 1);
  add_decayed_sum_backward<float>("f32", {1, 1 << 26, 1}, 1);
}

}  // namespace bench
