#pragma once
#include <utility>
#include <vector>

#include "support/generate.hpp"

/// The random programs that the laws are checked on. They are drawn in two files, so that no compilation is
/// large.
namespace property {

using programs = std::vector<const scandsl::program*>;

programs first_programs();
programs second_programs();

/// The programs of the seeds First ... First + sizeof...(I) - 1.
template <unsigned First, unsigned... I> programs drawn(std::integer_sequence<unsigned, I...>) {
  return {&generate::random_program<First + I>...};
}

inline const programs& all_programs() {
  static const programs all = [] {
    programs joined = first_programs(), second = second_programs();
    joined.insert(joined.end(), second.begin(), second.end());
    return joined;
  }();
  return all;
}

}  // namespace property
