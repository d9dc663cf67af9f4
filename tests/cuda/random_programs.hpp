#pragma once
#include <utility>
#include <vector>

#include "exec/executed.hpp"
#include "scandsl/pass/gradient.hpp"
#include "support/generate.hpp"

/// Random programs (support/generate.hpp), each compiled for the GPU by nvcc and for the CPU by the C++
/// compiler, for operands of one element type.
namespace random_programs {

using namespace scandsl;
using runs = std::vector<exec_test::compiled>;
template <unsigned... Seed> using seeds = std::integer_sequence<unsigned, Seed...>;

// nvcc takes some twenty seconds for each, so these are few. Among them are one scan and two, of one
// component and two, forwards and backwards, along a row and across rows, chunks, packed sequences, initial
// and final states; one kernel and two; one sweep and two; and some that look back.
using float_seeds = seeds<5, 15, 20, 24>;
using double_seeds = seeds<12, 13, 26>;
using bfloat16_seeds = seeds<24>;
using float16_seeds = seeds<24>;
// Gradients take twice as long, for rows alone half of that: of a decayed sum with an initial state and a
// last value, and of a log-add-exp. (Not templates: nvcc cannot name kernels of a template's gradient.)
inline constexpr program gradient_of_decayed_sum = along_rows(gradient(generate::random_program<12>));
inline constexpr program gradient_of_log_sum = along_rows(gradient(generate::random_program<24>));

/// Runs on the GPU, since it was last set to 0, of which some kernel looks back.
inline int look_backs = 0;

runs float_on_gpu(), double_on_gpu(), bfloat16_on_gpu(), float16_on_gpu();
runs float_on_cpu(), double_on_cpu(), bfloat16_on_cpu(), float16_on_cpu();
runs gradients_on_gpu();  ///< of the two above, in float32

}  // namespace random_programs
