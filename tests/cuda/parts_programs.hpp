#pragma once
#include "scandsl/expr/operators.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/prepare.hpp"
#include "scandsl/pass/problem.hpp"

/// Reductions of lanes that lie side by side, compiled for the GPU in one file and for the CPU in another.
namespace parts {

using namespace scandsl;

inline constexpr axis<"b"> b;
inline constexpr axis<"n"> n;
inline constexpr axis<"d"> d;
inline constexpr tensor<"x"> x;
inline constexpr tensor<"decay"> decay;

/// Elements in the frame of one, or not.
inline constexpr auto log_total = op<"log_total">(out<"y">(b, d) = reduce(log_add_exp, over(n), x(b, n, d)));
/// In order, with states that may overflow where the whole does not.
inline constexpr auto faded =
    op<"faded">(out<"y">(b, d) = last(scan(decayed_sum, over(n).reversed(), decay(b, n, d), x(b, n, d))));
/// Beside what is written at every step.
inline constexpr auto squares =
    op<"squares">(out<"z">(b, n, d) = x(b, n, d) * x(b, n, d), out<"y">(b, d) = sum(over(n), x(b, n, d)));
/// Of which another kernel adds up the parts.
inline constexpr auto of_all = op<"of_all">(out<"y">(d) = sum(over(b), sum(over(n), x(b, n, d))),
                                            out<"z">(b, n, d) = x(b, n, d) * x(b, n, d));
static_assert(summed_parts_of<of_all, 1>.producer == 0);
static_assert(kernel_program<of_all, 0>.axes[kernel_program<of_all, 0>.scans[0].axis] == n.id);
/// Of whose kernels the third adds up at once what the second would have, where b is one long.
inline constexpr axis<"m"> m;
inline constexpr auto of_three =
    op<"of_three">(out<"y">(d) = sum(over(b), sum(over(n), sum(over(m), x(b, n, m, d)))));
static_assert(kernels_of<of_three>.programs.count == 3 && summed_parts_of<of_three, 2>.before >= 0);
/// ... of which the second would have taken the first one's parts. (The first output says in which order axes
/// come in scratch.)
inline constexpr tensor<"w"> w;
inline constexpr auto of_parts = op<"of_parts">(
    out<"z">(n) = 2.0 * w(n), out<"y">(d) = sum(over(b), sum(over(n), sum(over(m), x(n, b, m, d)))));
static_assert(summed_parts_of<of_parts, 1>.parts && summed_parts_of<of_parts, 2>.before >= 0);
/// ... along an inner axis.
inline constexpr auto of_inner = op<"of_inner">(
    out<"z">(d) = 2.0 * w(d), out<"y">(d) = sum(over(b), sum(over(n), sum(over(m), x(d, n, b, m)))));
static_assert(!summed_parts_of<of_inner, 2>.parts && summed_parts_of<of_inner, 2>.before >= 0);
// [doc:apart]
/// A kernel that reduces, and one for what follows.
inline constexpr program shares =
    reductions_apart(op<"shares">(out<"z">(b, n, d) = softmax(over(n), x(b, n, d))));
static_assert(kernels_of<shares>.programs.count == 2 && kernels_of<squares>.programs.count == 1);
// [/doc:apart]

/// Runs P on the GPU with the kernels for elements T, over copies of operands in host memory, as planned for
/// the GPU, or for so many multiprocessors. Of how many lengths the first kernel's parts are.
template <const program& P, class T> int run_on_gpu(const problem& host, int multiprocessors);

}  // namespace parts
