#pragma once
#include "program.hpp"
#include "scandsl/pass/gradient.hpp"

namespace scandsl::ops::logcumsumexp_program {

inline constexpr auto gradient_program = gradient(program);
inline constexpr auto second_gradient = gradient(gradient_program);

}  // namespace scandsl::ops::logcumsumexp_program
