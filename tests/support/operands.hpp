#pragma once
#include <map>
#include <string>

#include "scandsl/ir/oracle.hpp"

/// Operands of the interpreter, by name.
using tensors = std::map<std::string, scandsl::oracle_tensor>;

/// Those that a program has among its tensors.
inline tensors operands_of(const scandsl::program& p, const tensors& given) {
  tensors result;
  for (const auto& [id, values] : given)
    if (p.find_tensor(scandsl::make_name(id)) >= 0) result.emplace(id, values);
  return result;
}
