#pragma once
#include "program.hpp"
#include "scandsl/pass/gradient.hpp"

namespace scandsl::ops::md_lrpe_cosine_program {

inline constexpr auto dx_alone = gradient(program, x);
inline constexpr auto dx_dtheta = gradient(program);
inline constexpr auto dx_from_angles = gradient(from_angles, x);

}  // namespace scandsl::ops::md_lrpe_cosine_program
