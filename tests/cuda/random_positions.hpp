#pragma once
#include <vector>

#include "scandsl/pass/gradient.hpp"
#include "scandsl/pass/problem.hpp"
#include "support/generate_positions.hpp"

/// Random programs of integers (support/generate_positions.hpp), compiled for the GPU in one file and drawn
/// for in another: of gathers and a scan, of angles and a sum, of a stack; and the gradient of one with
/// gathers, which adds up what was picked.
namespace random_positions {

using namespace scandsl;

inline constexpr program gradient_of_gathers = along_rows(gradient(generate::program_of_positions<6>));

struct compiled {
  const program* p;
  void (*run)(const problem& host);  ///< on the GPU, in float32, over copies of operands in host memory
};
std::vector<compiled> programs(), gradients();

}  // namespace random_positions
