#pragma once
#include "support/generate.hpp"

/// Random programs of integers: positions along axes, integer operands, arithmetic on them, and what they are
/// for: elements at computed positions, angles, choices, stacks. (Apart from the others, which obey laws of
/// their own: turned round or cut, they are the same.)
namespace generate {

inline constexpr axis<"m"> m;  ///< of tensors that are read at computed positions
inline constexpr axis<"k"> k;
inline constexpr axis<"part"> part;
inline constexpr integer_tensor<"i"> i;
inline constexpr integer_tensor<"j"> j;
inline constexpr integer_scalar<"shift"> shift;
inline constexpr table<"sizes"> table_of_sizes;
inline constexpr axis<"which"> which;

inline constexpr auto still_integers =
    std::make_tuple(index(b), index(d), extent(d), extent(m), j(d), shift,
                    value_or(integer_scalar<"skip">{}, 2), whole_literal{{{}, 3}}, extent(n) - 1 - index(d),
                    table_of_sizes(which[index(d)]), value_or(integer_tensor<"l">{}(b), 1));
inline constexpr auto integers =
    std::tuple_cat(std::make_tuple(index(n), index(n), i(b, n), extent(n)), still_integers);

/// Small factors, so that products of products stay within 32 bits.
inline constexpr auto integer_functions = std::make_tuple(
    [](auto p, auto q) { return p + q; }, [](auto p, auto q) { return p - q; },
    [](auto p, auto q) { return p / q; }, [](auto p, auto q) { return p % q; },
    [](auto p, auto q) { return p * (q % 4); }, [](auto p, auto q) { return min(p, q); },
    [](auto p, auto q) { return max(p, q); }, [](auto p, auto q) { return select(p < q && q != 2, p, -q); },
    [](auto p, auto) { return p / 2 - 1; }, [](auto p, auto) { return (p + 1) % 3; });

/// An integer of `from`, a tuple of integers.
template <unsigned Seed, int Depth, class From> constexpr auto random_integer(From from) {
  if constexpr (Depth == 0)
    return one_of<Seed>(from);
  else
    return one_of<child<Seed, 0>>(integer_functions)(random_integer<child<Seed, 1>, Depth - 1>(from),
                                                     random_integer<child<Seed, 2>, Depth - 1>(from));
}

/// A value in [-4, 4] that integers decide.
template <unsigned Seed> constexpr auto value_of_integers() {
  const auto p = random_integer<child<Seed, 1>, 2>(integers);
  const auto q = random_integer<child<Seed, 2>, 1>(integers);
  const auto leaf = one_of<child<Seed, 3>>(leaves);
  constexpr std::size_t kind = draw<Seed, 9>;
  if constexpr (kind == 0)
    return 0.25 * (p % 9);
  else if constexpr (kind == 1)
    return tensor<"e">{}(m[p % extent(m)]);
  else if constexpr (kind == 2)
    return tensor<"e">{}(m[q]);  // 0 outside
  else if constexpr (kind == 3)
    return tensor<"f">{}(d, m[p - 2]);
  else if constexpr (kind == 4)
    return tensor<"p">{}(k[q % 4], b, m[p % 7]);
  else if constexpr (kind == 5)
    return cos_of_product(p % 64, 0.5 * leaf);
  else if constexpr (kind == 6)
    return select(p <= q, leaf, tensor<"e">{}(m[index(d)]));
  else if constexpr (kind == 7)
    return tensor<"x">{}(b, n[random_integer<child<Seed, 4>, 1>(still_integers)], d);
  else
    return value_or(tensor<"o">{}(m[p % extent(m)]), 0.75);
}

template <unsigned Seed> constexpr auto expression_of_integers() {
  const auto p = value_of_integers<child<Seed, 1>>();
  const auto q = value_of_integers<child<Seed, 2>>();
  if constexpr (draw<Seed, 3> == 0)
    return one_of<child<Seed, 3>>(unary_functions)(p);
  else
    return one_of<child<Seed, 3>>(binary_functions)(p, q);
}

template <unsigned Seed> constexpr program make_program_of_positions() {
  const auto value = expression_of_integers<child<Seed, 0>>();
  const auto other = expression_of_integers<child<Seed, 1>>();
  const auto x = tensor<"x">{}(b, n, d);
  if constexpr (draw<Seed, 3> == 0) {
    return op<"positions">(out<"y">(b, n, d) = value + x,
                           out<"total">(b, d).optional() = 0.0625 * sum(over(n), x * other));
  } else if constexpr (draw<Seed, 3> == 1) {
    const auto scanned_ = scan(decayed_sum, random_walk<child<Seed, 2>>(n), sigmoid(other), value + 0.5 * x);
    return op<"positions">(out<"y">(n, b, d) = soft_sign(scanned_));
  } else {
    const auto running = scan(plain_sum, over(n), 0.125 * (value + x));
    return op<"positions">(out<"pair">(b, n, part, d) =
                               stack(part, x * value, soft_sign(running + x) + other),
                           out<"y">(b, n, d).optional() = other);
  }
}

template <unsigned Seed> inline constexpr program program_of_positions = make_program_of_positions<Seed>();

}  // namespace generate
