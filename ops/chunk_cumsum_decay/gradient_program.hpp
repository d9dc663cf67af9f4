#pragma once
#include "program.hpp"
#include "scandsl/pass/gradient.hpp"

namespace scandsl::ops::chunk_cumsum_decay_program {

inline constexpr tensor<"dlog_decay"> dlog_decay;
inline constexpr auto gradient_program = gradient(program);

}  // namespace scandsl::ops::chunk_cumsum_decay_program
