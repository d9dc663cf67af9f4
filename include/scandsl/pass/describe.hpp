#pragma once
#include <string>

#include "scandsl/pass/describe_writer.hpp"

namespace scandsl {

/// The program as readable mathematics, one line for every recurrence, shared value and output:
///
///     logcumsumexp:
///       s(b,n,d) = logaddexp(s(b,n-1,d), x(b,n,d)),  starting from -inf
///       y(b,n,d) = s(b,n,d)
///
/// A scan is s (r where it runs from the back), numbered where several of its components are read; s(b,n-1,d)
/// is its carry and s(b,last n,d) its last value. v1, v2, ... are values that are read more than once.
inline std::string describe(const program& p) {
  const program live = prune(p);
  return detail::program_writer<detail::text_notation>(live).write();
}

/// The same as a LaTeX align* environment (it needs amsmath).
inline std::string describe_latex(const program& p) {
  const program live = prune(p);
  return detail::program_writer<detail::latex_notation>(live).write();
}

}  // namespace scandsl
