#pragma once
#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/problem.hpp"

/// Programs whose rows are long, compiled for the GPU in some files (rows_on_gpu.cuh) and for the CPU in
/// another.
namespace rows {

using namespace scandsl;

inline constexpr axis<"b"> b;
inline constexpr axis<"n"> n;
inline constexpr tensor<"x"> x;
inline constexpr tensor<"decay"> decay;
inline constexpr scalar<"back"> back;

inline constexpr auto along = over(n).reversed(back);
inline constexpr auto long_log = op<"long_log">(out<"y">(b, n) = scan(log_add_exp, along, x(b, n)));
inline constexpr auto long_decay =
    op<"long_decay">(out<"y">(b, n) = scan(decayed_sum, along, decay(b, n), x(b, n)));
/// Every option that matters to a scan whose lanes are cut into pieces.
inline constexpr tensor<"start"> start;
inline constexpr scalar<"before"> before;
inline constexpr scalar<"chunk"> chunk;
inline constexpr auto options =
    over(n).reversed(back).exclusive(before).restart_every(value_or(chunk, 0)).starting_from(start(b));
inline constexpr auto carried_log = scan(log_add_exp, options, x(b, n));
inline constexpr auto long_carried =
    op<"long_carried">(out<"y">(b, n) = carried_log, out<"end">(b).optional() = last(carried_log));
/// Without last values, whose chunks are lanes of their own.
inline constexpr auto long_chunks = op<"long_chunks">(
    out<"y">(b, n) =
        scan(decayed_sum, over(n).reversed(back).restart_every(value_or(chunk, 0)), decay(b, n), x(b, n)));
inline constexpr auto log_chunks = op<"log_chunks">(
    out<"y">(b, n) = scan(log_add_exp, over(n).reversed(back).restart_every(value_or(chunk, 0)), x(b, n)));
/// With one decay for a lane, whose gradient is a sum along it: where there are no chunks, a tally.
inline constexpr auto lane_decay =
    op<"lane_decay">(out<"y">(b, n) = scan(decayed_sum, along, decay(b), x(b, n)));
inline constexpr auto started_lane_decay = op<"started_lane_decay">(
    out<"y">(b, n) = scan(decayed_sum, along.starting_from(start(b)), decay(b), x(b, n)));
inline constexpr auto lane_decay_in_chunks = op<"lane_decay_in_chunks">(
    out<"y">(b, n) = scan(decayed_sum, along.restart_every(chunk), decay(b), x(b, n)));
/// A second scan whose elements, and what is written behind it, wait for the first one's end.
inline constexpr auto first_decay = scan(decayed_sum, along, decay(b, n), x(b, n));
inline constexpr auto second_decay =
    scan(decayed_sum, along, decay(b, n), first_decay / (1.0 + abs(last(first_decay))));
inline constexpr auto two_decays =
    op<"two_decays">(out<"y">(b, n) = second_decay, out<"z">(b) = last(second_decay) * last(first_decay));
/// With one weight for a lane, whose gradient is a tally beside a log-sum's.
inline constexpr tensor<"weight"> weight;
inline constexpr auto weighted_log =
    op<"weighted_log">(out<"y">(b, n) = scan(log_add_exp, along, x(b, n) + weight(b)));
inline constexpr auto long_total = op<"long_total">(out<"y">(b) = sum(over(n), x(b, n)));
inline constexpr auto long_softmax = op<"long_softmax">(out<"y">(b, n) = softmax(over(n), x(b, n)));
inline constexpr auto long_shift =
    op<"long_shift">(out<"y">(b, n) = x(b, n) - reduce(log_add_exp, over(n), x(b, n)),
                     out<"total">(b) = sum(over(n), x(b, n)));
inline constexpr auto log_gradient = gradient(long_log, x);
inline constexpr auto log_chunks_gradient = gradient(log_chunks, x);
inline constexpr auto decay_gradient = gradient(long_decay, x, decay);
inline constexpr auto lane_decay_gradient = gradient(lane_decay, x, decay);
inline constexpr auto started_lane_decay_gradient = gradient(started_lane_decay, x, decay, start);
inline constexpr auto weighted_log_gradient = gradient(weighted_log, x, weight);
inline constexpr auto gradient_in_chunks = gradient(lane_decay_in_chunks, x, decay);
inline constexpr auto carried_gradient = gradient(long_carried, x, start);
inline constexpr auto softmax_gradient = gradient(long_softmax, x);
/// Which have no kernels for lanes that lie side by side.
inline constexpr program carried_along_rows = along_rows(long_carried);
inline constexpr program gradient_along_rows = along_rows(log_gradient);
/// ... and which have none for rows.
inline constexpr program carried_along_lanes = contiguous_along(long_carried, b);
inline constexpr program gradient_along_lanes = contiguous_along(log_gradient, b);

/// Runs P on the GPU with the kernels for elements T, over copies of operands in host memory.
template <const program& P, class T> void run_on_gpu(const problem& host);
/// long_decay with decays in float32 beside bfloat16.
void run_mixed_on_gpu(const problem& host);
/// decay_gradient in float32 with no more memory than a walk of one block a lane needs. Returns whether it
/// would take more where there is.
bool run_with_little_memory(const problem& host);

}  // namespace rows
