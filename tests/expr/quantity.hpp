#pragma once
#include <utility>

#include "scandsl/expr/functions.hpp"

namespace scandsl {

/// A number that the language's operators take: generic code (pullbacks, functions, scan operators) can be
/// evaluated without a program. A condition is 1 or 0.
struct quantity {
  using symbolic_tag = void;
  double value = 0;

  quantity() = default;
  constexpr quantity(double v) : value(v) {}

  template <class P, class... A> static quantity apply(const A&... arguments) {
    const double x[] = {quantity(arguments).value...};
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return quantity(static_cast<double>(P::value(as_argument<P, static_cast<int>(I)>(x[I])...)));
    }(std::index_sequence_for<A...>{});
  }

private:
  template <class P, int I> static auto as_argument(double x) {
    if constexpr (primitive::argument_kind<P>(I) == value_kind::truth)
      return x != 0;
    else
      return x;
  }
};

}  // namespace scandsl
