#pragma once
#include <tuple>

#include "scandsl/expr/scan.hpp"

namespace support {

using scandsl::state;

/// Two rotations that decay, of which one part shows: four components.
inline constexpr auto resonator = scandsl::scan_op(
    state(1.0, 0.0, 0.0, 0.0), [](auto w_re, auto w_im, auto input) { return state(w_re, w_im, input, 0.0); },
    [](auto left, auto right) {
      auto [u_re, u_im, j_re, j_im] = left;
      auto [w_re, w_im, k_re, k_im] = right;
      return state(w_re * u_re - w_im * u_im, w_re * u_im + w_im * u_re, w_re * j_re - w_im * j_im + k_re,
                   w_re * j_im + w_im * j_re + k_im);
    },
    [](auto whole) { return std::get<2>(whole); });

}  // namespace support
