#pragma once
#include <utility>
#include <vector>

#include "support/generate.hpp"

/// The random programs that the laws are checked on. They are drawn in three files, so that no compilation is
/// large.
namespace property {

using programs = std::vector<const scandsl::program*>;

programs first_programs();
programs second_programs();
programs softmax_programs();

/// The programs of the seeds First ... First + sizeof...(I) - 1.
template <unsigned First, unsigned... I> programs drawn(std::integer_sequence<unsigned, I...>) {
  return {&generate::random_program<First + I>...};
}

inline const programs& all_programs() {
  static const programs all = [] {
    programs joined = first_programs();
    for (const programs& more : {second_programs(), softmax_programs()})
      joined.insert(joined.end(), more.begin(), more.end());
    return joined;
  }();
  return all;
}

}  // namespace property
