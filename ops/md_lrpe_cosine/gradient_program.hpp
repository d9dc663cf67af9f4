#pragma once
#include "program.hpp"
#include "scandsl/pass/gradient.hpp"

namespace scandsl::ops::md_lrpe_cosine_program {

inline constexpr auto dx_alone = contiguous_along(gradient(program, x), d);
inline constexpr auto dx_dtheta = contiguous_along(gradient(program), d);
inline constexpr auto dx_from_angles = contiguous_along(gradient(from_angles, x), d);

}  // namespace scandsl::ops::md_lrpe_cosine_program
