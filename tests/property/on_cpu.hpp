#pragma once
#include "property/against_oracle.hpp"
#include "scandsl/exec/cpu/run.hpp"

namespace property {

/// Executes a program on the CPU, in the arithmetic that its operands ask for.
struct on_cpu {
  int threads = 0;

  template <const program& P, class T>
  void operator()(operands<T>& memory, const std::map<std::string, double>& scalars) const {
    problem bound = unbound_problem(P);
    for (int i = 0; i < P.tensors.count; ++i)
      if (memory.bound(i)) bound.tensors[static_cast<std::size_t>(i)] = {true, memory.view_of(i)};
    for (int i = 0; i < P.parameters.count; ++i) {
      const auto given = scalars.find(std::string(P.parameters[i].id.view()));
      if (given != scalars.end()) bound.parameters[static_cast<std::size_t>(i)] = given->second;
    }
    // One arithmetic a program, to compile each program once.
    const iteration_space space = cpu_detail::validated<P>(bound);
    cpu_detail::run_as<P, std::conditional_t<std::is_same_v<T, double>, double, float>>(cpu{threads}, bound,
                                                                                        space);
  }
};

/// RANDOM_PROGRAMS, the number of programs that are compiled, split over three files.
inline constexpr unsigned third = (RANDOM_PROGRAMS + 2) / 3;
template <unsigned Count> using seeds = std::make_integer_sequence<unsigned, Count>;

/// Shapes that reach the executor's paths: few steps, many lanes; lanes that fill no pack; long rows.
inline constexpr generate::sizes small{2, 24, 3, 4}, wide{2, 65, 70, 4}, long_rows{3, 1000, 2, 9};

}  // namespace property
