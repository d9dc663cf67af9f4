#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scandsl/core/view.hpp"
#include "support/catch.hpp"
#include "support/generate.hpp"

/// Executors on random programs: dense memory for a random case, and the comparison with the oracle.
namespace property {

using namespace scandsl;

/// The tensors of a random case in memory, dense, values as T, integers and offsets as int64. Optional inputs
/// that the case leaves out have no memory: `view_of` is empty.
template <class T> class operands {
public:
  operands(const program& p, const generate::random_case& c) : program_(p) {
    for (const tensor_decl& declared : p.tensors) {
      held& each = tensors_.emplace_back();
      const auto given = c.inputs.find(std::string(declared.id.view()));
      each.bound = given != c.inputs.end() || declared.role == tensor_role::output;
      if (!each.bound) continue;
      if (declared.role == tensor_role::output) {
        std::int64_t count = 1;
        for (const std::int16_t axis : declared.axes) {
          each.extents.push_back(c.extents.at(std::string(p.axes[axis].view())));
          count *= each.extents.back();
        }
        each.values.assign(static_cast<std::size_t>(count), static_cast<T>(-99.0f));
        continue;
      }
      each.extents = given->second.extents;
      for (const double value : given->second.values) {
        each.values.push_back(static_cast<T>(static_cast<float>(value)));
        each.integers.push_back(static_cast<std::int64_t>(value));
      }
    }
  }

  bool bound(int tensor) const { return tensors_[static_cast<std::size_t>(tensor)].bound; }

  /// The memory of a bound tensor of the program.
  erased_view view_of(int tensor) {
    held& each = tensors_[static_cast<std::size_t>(tensor)];
    const bool integers = holds_integers(program_.tensors[tensor]);
    erased_view result;
    result.data =
        integers ? static_cast<void*>(each.integers.data()) : static_cast<void*>(each.values.data());
    result.type = integers ? dtype::int64 : dtype_of<T>;
    result.writable = program_.tensors[tensor].role == tensor_role::output;
    result.rank = static_cast<int>(each.extents.size());
    std::int64_t stride = 1;
    for (int i = result.rank; i-- > 0;) {
      const std::int64_t extent = each.extents[static_cast<std::size_t>(i)];
      result.axis[i] = dims{{extent, stride}};
      stride *= extent;
    }
    return result;
  }

  std::map<std::string, oracle_tensor> outputs() const {
    std::map<std::string, oracle_tensor> result;
    for (int i = 0; i < program_.tensors.count; ++i) {
      if (program_.tensors[i].role != tensor_role::output) continue;
      const held& each = tensors_[static_cast<std::size_t>(i)];
      oracle_tensor& values = result[std::string(program_.tensors[i].id.view())];
      values.extents = each.extents;
      for (const T value : each.values)
        values.values.push_back(static_cast<double>(static_cast<float>(value)));
      if constexpr (std::is_same_v<T, double>) values.values.assign(each.values.begin(), each.values.end());
    }
    return result;
  }

private:
  struct held {
    bool bound = false;
    std::vector<std::int64_t> extents;
    std::vector<T> values;
    std::vector<std::int64_t> integers;
  };
  const program& program_;
  std::vector<held> tensors_;  ///< by program::tensors
};

/// The largest error of outputs, relative to the greatest value of a tensor, and at least to `least`; 1e30
/// where one is not finite.
inline double relative_error(const std::map<std::string, oracle_tensor>& expected,
                             const std::map<std::string, oracle_tensor>& got, double least) {
  double worst = 0;
  for (const auto& [id, want] : expected) {
    double size = least;
    for (const double value : want.values) size = std::max(size, std::fabs(value));
    for (std::size_t at = 0; at < want.values.size(); ++at)
      if (const double off = std::fabs(want.values[at] - got.at(id).values[at]); !(off <= 0))
        worst = std::max(worst, std::isfinite(off) ? off / size : 1e30);
  }
  return worst;
}

/// Runs the programs of the seeds First ... on `cases` inputs each: run.operator()<P>(operands<T>&, scalars)
/// executes P.
template <unsigned First, class T, class Run, unsigned... I>
void against_oracle(std::integer_sequence<unsigned, I...>, const generate::sizes& size, unsigned cases,
                    double tolerance, Run run) {
  const auto one = [&]<unsigned Seed>(std::integral_constant<unsigned, Seed>) {
    constexpr const program& p = generate::random_program<Seed>;
    for (unsigned seed = 0; seed < cases; ++seed) {
      const generate::random_case c = generate::make_case(p, size, seed);
      operands<T> memory(p, c);
      run.template operator()<generate::random_program<Seed>>(memory, c.scalars);
      INFO("random_program<" << Seed << ">, case " << seed);
      CHECK(generate::worst_difference(c.expected(p), memory.outputs()) <= tolerance);
    }
  };
  (one(std::integral_constant<unsigned, First + I>{}), ...);
}

}  // namespace property
