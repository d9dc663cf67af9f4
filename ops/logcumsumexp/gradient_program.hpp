#pragma once
#include "program.hpp"
#include "scandsl/pass/gradient.hpp"

namespace scandsl::ops::logcumsumexp_gradient {

inline constexpr auto program = gradient(logcumsumexp_program::program);

}  // namespace scandsl::ops::logcumsumexp_gradient
