#pragma once
#include <map>
#include <set>
#include <string>

#include "scandsl/exec/cpu/run.hpp"
#if defined(SCANDSL_TEST_CUDA) && defined(__CUDACC__)
#include "cuda/on_gpu.cuh"
#endif
#include "scandsl/ir/oracle.hpp"
#include "support/memory.hpp"

namespace exec_test {

using namespace scandsl;
using namespace support;

/// A program compiled for the CPU. Programs are template arguments; what follows from here on is not a
/// template.
struct compiled {
  const program* p = nullptr;
  void (*in_float)(const cpu&, const problem&) = nullptr;
  void (*in_double)(const cpu&, const problem&) = nullptr;
};

template <const program& P, class C> void execute([[maybe_unused]] const cpu& device, const problem& bound) {
#if defined(SCANDSL_TEST_CUDA) && defined(__CUDACC__)  // the same tests, with CUDA's executor for the CPU's
  gpu::execute<P, C>(bound);
#else
  const iteration_space space = cpu_detail::validated<P>(bound);
  cpu_detail::run_as<P, C>(device, bound, space);
#endif
}
/// Whether the executor adds a stretch on its own before it adds what precedes the stretch: a sum then rounds
/// differently where stretches begin elsewhere. The CPU walks short rows in order.
#ifdef SCANDSL_TEST_CUDA
inline constexpr bool sums_by_stretches = true;
#else
inline constexpr bool sums_by_stretches = false;
#endif
/// Sanitizers multiply the time that a program takes to compile; float64 differs by a type alone.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool tests_double = false;
#else
inline constexpr bool tests_double = true;
#endif

/// The floating-point element types that programs are tested with.
inline std::vector<dtype> tested_types() {
  std::vector<dtype> types{dtype::float32, dtype::bfloat16, dtype::float16};
  if (tests_double) types.push_back(dtype::float64);
  return types;
}

/// Each compute type costs its own compilation.
template <const program& P> constexpr compiled compile_float() { return {&P, execute<P, float>, nullptr}; }
template <const program& P> constexpr compiled compile_both() {
  compiled result = compile_float<P>();
  if constexpr (tests_double) result.in_double = execute<P, double>;
  return result;
}

using tensors = std::map<std::string, oracle_tensor>;

/// What a run is given: values, and how they lie in memory.
struct operands {
  tensors inputs;
  std::map<std::string, double> scalars;
  std::map<std::string, std::int64_t> extents;  ///< of axes that no bound input has
  std::map<std::string, dtype> types;           ///< of tensors; float32, and int64 for offsets, if not given
  std::map<std::string, layout> layouts;
  std::map<std::string, std::string> in_place;  ///< output: the input whose memory it gets
  std::set<std::string> unbound;                ///< optional outputs that are left out
  dtype usual = dtype::float32;
};

struct outcome {
  tensors inputs;  ///< as rounded to their element types
  tensors outputs;
  bool intact = true;  ///< nothing was written but the outputs' elements
};

/// Runs the program on the CPU, in float64 where a tensor is float64.
outcome run_on_cpu(const compiled& program_, const operands& given, const cpu& device = {});

/// The oracle's outputs for the rounded inputs.
tensors expected_of(const compiled& program_, const operands& given, const outcome& got);

/// The first output element that is off by more than `tolerance`, relative to the greater of its value and 1,
/// and past what rounding to its element type accounts for; empty where all are right.
std::string mismatch(const operands& given, const tensors& expected, const tensors& got, double tolerance);

/// As mismatch, relative to the greatest value of the tensor: a gradient's own size.
std::string gradient_mismatch(const operands& given, const tensors& expected, const tensors& got,
                              double tolerance);
std::string gradient_mismatch(const compiled& program_, const operands& given, double tolerance,
                              const cpu& device = {});

/// The three in one: runs and compares with the oracle.
std::string mismatch(const compiled& program_, const operands& given, double tolerance,
                     const cpu& device = {});

oracle_tensor random_tensor(std::mt19937& random, std::vector<std::int64_t> extents, double low = -2,
                            double high = 2);

/// Whether the outputs are the same bits.
bool same_bits(const tensors& left, const tensors& right);

}  // namespace exec_test
