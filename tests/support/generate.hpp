#pragma once
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "scandsl/expr/activations.hpp"
#include "scandsl/ir/lower.hpp"
#include "scandsl/ir/oracle.hpp"

/// Random programs, drawn at compile time from the language's own grammar, and random inputs for them.
///
/// For inputs in [-2, 2] every value inside a program is tame: no function leaves its domain, no scan
/// overflows float32 up to a length of a thousand, values that are compared are exact in every element type.
/// So float32 and float64 results may be compared. Every function of the language, every standard operator
/// and one with three components come up, with every way to walk an axis.
namespace generate {

using namespace scandsl;

inline constexpr axis<"b"> b;
inline constexpr axis<"n"> n;
inline constexpr axis<"d"> d;
inline constexpr axis<"s"> s;  ///< packed sequences along n
inline constexpr tensor<"offsets"> offsets;
inline constexpr scalar<"t"> t;
inline constexpr scalar<"chunk"> chunk;
inline constexpr scalar<"flip"> flip;
inline constexpr scalar<"before"> before;
inline constexpr auto interval = value_or(scalar<"interval">{}, 0.0);
inline constexpr auto turned = value_or(scalar<"turned">{}, 1.0);

// ---- chance

/// lowbias32 of Chris Wellons' hash-prospector: every bit of the result depends on every bit of x.
constexpr unsigned mix(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}
template <unsigned Seed, unsigned Child> inline constexpr unsigned child = mix(Seed * 31 + Child + 1);
/// One of 0 ... Count - 1.
template <unsigned Seed, std::size_t Count> inline constexpr std::size_t draw = mix(Seed) % Count;
template <unsigned Seed, class... T> constexpr auto one_of(const std::tuple<T...>& choices) {
  return std::get<draw<Seed, sizeof...(T)>>(choices);
}

// ---- elementwise expressions

inline constexpr auto leaves =
    std::make_tuple(tensor<"x">{}(b, n, d), tensor<"g">{}(b, n, d), tensor<"w">{}(b, n), tensor<"u">{}(b, d),
                    tensor<"v">{}(n), tensor<"a">{}(d), value_or(tensor<"c">{}(d), 0.5), t,
                    value_or(scalar<"r">{}, -0.75), literal{{}, 1.25});

/// The leaves that vary along the axis (or, Along being false, that do not).
template <bool Along, class Axis> constexpr auto leaves_by_axis(Axis) {
  return std::apply(
      [](auto... each) {
        return std::tuple_cat([](auto one) {
          if constexpr (decltype(one)::axes.has(Axis::id) == Along)
            return std::make_tuple(one);
          else
            return std::tuple<>{};
        }(each)...);
      },
      leaves);
}

inline constexpr auto soft_sign = fn([](auto z) { return z / (1.0 + abs(z)); });
inline constexpr auto bump = fn([](auto z) { return z / (1.0 + z * z); }).derivative([](auto z, auto y) {
  return (1.0 - 2.0 * (z * y)) / (1.0 + z * z);
});
inline constexpr auto gate =
    fn([](auto p, auto q) { return p * sigmoid(q); }).derivative([](auto, auto q, auto y) {
      return partials(sigmoid(q), y * sigmoid(-q));
    });

/// Each keeps [-4, 4] within [-4.1, 4.1].
inline constexpr auto unary_functions = std::make_tuple(
    [](auto z) { return -z; }, [](auto z) { return abs(z); }, [](auto z) { return sin(z); },
    [](auto z) { return cos(z); }, [](auto z) { return tanh(z); }, [](auto z) { return sigmoid(z); },
    [](auto z) { return softplus(z); }, [](auto z) { return exp(-abs(z)); },
    [](auto z) { return expm1(-abs(z)); }, [](auto z) { return log(1.0 + square(z)); },
    [](auto z) { return log1p(abs(z)); }, [](auto z) { return sqrt(softplus(z)); },
    [](auto z) { return stop_gradient(silu_derivative(z)); }, activation::silu, activation::mish,
    activation::relu, soft_sign, bump);
inline constexpr auto binary_functions = std::make_tuple(
    [](auto p, auto q) { return 0.5 * (p + q); }, [](auto p, auto q) { return 0.5 * (p - q); },
    [](auto p, auto q) { return 0.25 * p * q; }, [](auto p, auto q) { return p / (1.0 + q * q); },
    [](auto p, auto q) { return pow(0.5 + softplus(p), tanh(q)); }, [](auto p, auto q) { return max(p, q); },
    [](auto p, auto q) { return min(p, q); }, [](auto p, auto q) { return 0.5 * logaddexp(p, q); },
    [](auto p, auto q) { return exp_difference(min(p, q), max(p, q)); }, gate);
/// Of leaves only: a comparison of rounded values may fall either way.
inline constexpr auto conditions = std::make_tuple(
    [](auto p, auto q) { return p < q; }, [](auto p, auto q) { return p <= q; },
    [](auto p, auto q) { return p > q; }, [](auto p, auto q) { return p >= q; },
    [](auto p, auto q) { return p == q; }, [](auto p, auto q) { return p != q; },
    [](auto p, auto q) { return p < q && q < 1.0; }, [](auto p, auto q) { return p < q || q < -1.0; },
    [](auto p, auto q) { return !(p < q); });

/// A value in [-4.1, 4.1] of leaves and of `earlier` values, which have that range too.
template <unsigned Seed, int Depth, class... Earlier> constexpr auto random_expression(Earlier... earlier) {
  if constexpr (Depth == 0) {
    // Earlier values come first: a scan that nothing reads is no test.
    if constexpr (sizeof...(Earlier) > 0 && draw<child<Seed, 0>, 2> == 0)
      return one_of<child<Seed, 1>>(std::make_tuple(earlier...));
    else
      return one_of<child<Seed, 1>>(leaves);
  } else {
    constexpr unsigned left = child<Seed, 1>, right = child<Seed, 2>, pick = child<Seed, 3>;
    if constexpr (draw<Seed, 8> < 4) {
      return one_of<pick>(unary_functions)(random_expression<left, Depth - 1>(earlier...));
    } else if constexpr (draw<Seed, 8> < 7) {
      return one_of<pick>(binary_functions)(random_expression<left, Depth - 1>(earlier...),
                                            random_expression<right, Depth - 1>(earlier...));
    } else {
      return select(one_of<pick>(conditions)(one_of<child<Seed, 4>>(leaves), one_of<child<Seed, 5>>(leaves)),
                    random_expression<left, Depth - 1>(earlier...),
                    random_expression<right, Depth - 1>(earlier...));
    }
  }
}

// ---- scans

/// The mean of the elements so far, weighted by how much of each was kept: three components, not commutative.
inline constexpr auto kept_mean = scan_op(
    state(1.0, 0.0, 0.0), [](auto keep, auto x, auto weight) { return state(keep, weight * x, weight); },
    [](auto l, auto r) {
      auto [keep, total, weight] = l;
      auto [c, k, w] = r;
      return state(keep * c, c * total + k, c * weight + w);
    },
    [](auto state_) {
      auto [keep, total, weight] = state_;
      return total / (1.0 + weight);
    });

/// A scan operator with operands that suit it (z and y in [-4, 4]), an initial state from an initial value,
/// and a function that brings the scan's value back to [-4, 4], the identity included.
template <class Scan, class Start, class Tame> struct scan_kind {
  Scan scan;
  Start start;
  Tame tame;
};
template <class Scan, class Start, class Tame> scan_kind(Scan, Start, Tame) -> scan_kind<Scan, Start, Tame>;

inline constexpr auto from_value = [](auto over_, auto h) { return over_.starting_from(h); };
inline constexpr auto soften = [](auto y) { return soft_sign(y); };
inline constexpr auto halve_log = [](auto y) { return 0.4 * max(y, -5.0); };

inline constexpr auto scan_kinds = std::make_tuple(
    scan_kind{[](auto o, auto z, auto) { return scan(plain_sum, o, 0.25 * z); }, from_value, soften},
    scan_kind{[](auto o, auto z, auto) { return scan(product, o, 1.0 + 0.03125 * tanh(z)); },
              [](auto o, auto h) { return o.starting_from(1.0 + 0.25 * h); }, soften},
    scan_kind{[](auto o, auto z, auto) { return scan(maximum, o, z); }, from_value,
              [](auto y) { return max(y, -3.0); }},
    scan_kind{[](auto o, auto z, auto) { return scan(minimum, o, z); }, from_value,
              [](auto y) { return min(y, 3.0); }},
    scan_kind{[](auto o, auto z, auto) { return scan(log_add_exp, o, z); }, from_value, halve_log},
    scan_kind{[](auto o, auto z, auto y) { return scan(decayed_sum, o, sigmoid(y), z); }, from_value, soften},
    scan_kind{[](auto o, auto z, auto) { return scan(running_max_sum, o, z); },
              [](auto o, auto h) { return o.starting_from(h, 1.0 + sigmoid(h)); }, halve_log},
    scan_kind{[](auto o, auto z, auto) { return scan(welford, o, z); },
              [](auto o, auto h) { return o.starting_from(2.0, h, sigmoid(h)); },
              [](auto y) { return sqrt(0.0625 + y); }},
    scan_kind{[](auto o, auto z, auto y) { return scan(kept_mean, o, sigmoid(y), z, sigmoid(z)); },
              [](auto o, auto h) { return o.starting_from(1.0, h, 0.5); }, [](auto y) { return 1.0 * y; }});

/// over(axis) with a direction, exclusion and restarts.
template <unsigned Seed, class Axis> constexpr auto random_walk(Axis along) {
  constexpr auto same = [](auto o) { return o; };
  const auto directions = std::make_tuple(
      same, [](auto o) { return o.reversed(); }, [](auto o) { return o.reversed(flip); },
      [](auto o) { return o.reversed().reversed(turned); });
  const auto exclusions = std::make_tuple(
      same, same, [](auto o) { return o.exclusive(); }, [](auto o) { return o.exclusive(before); });
  const auto restarts = std::make_tuple(
      same, same, [](auto o) { return o.restart_every(chunk); },
      [](auto o) { return o.restart_every(interval); }, [](auto o) { return o.restart_every(4); });
  const auto walk = one_of<child<Seed, 3>>(restarts)(
      one_of<child<Seed, 2>>(exclusions)(one_of<child<Seed, 1>>(directions)(over(along))));
  if constexpr (std::is_same_v<Axis, axis<"n">> && draw<child<Seed, 4>, 3> == 0)
    return walk.restart_at(offsets(s));
  else
    return walk;
}

/// The walk with an initial state, or without one.
template <unsigned Seed, class Kind, class Walk> constexpr auto random_start(Kind kind, Walk walk) {
  if constexpr (draw<child<Seed, 0>, 2> == 0)
    return walk;
  else if constexpr (Walk::segment_axis == s.id && draw<child<Seed, 1>, 2> == 0)
    return kind.start(walk, 0.5 * tensor<"z">{}(s, d));
  else
    return kind.start(walk, 0.5 * one_of<child<Seed, 2>>(leaves_by_axis<false>(typename Walk::axis_type{})));
}

template <class Scan, class Kind> struct random_scan_result {
  Scan scan;
  Kind kind;

  constexpr auto value() const { return kind.tame(scan); }
  constexpr auto last_value() const { return kind.tame(last(scan)); }
};

/// A scan of `earlier` values, mostly over n, along a random walk.
template <unsigned Seed, class... Earlier> constexpr auto random_scan(Earlier... earlier) {
  const auto along = one_of<child<Seed, 0>>(std::make_tuple(n, n, n, n, b, d));
  const auto kind = one_of<child<Seed, 1>>(scan_kinds);
  const auto walk = random_start<child<Seed, 3>>(kind, random_walk<child<Seed, 2>>(along));
  const auto carrier = one_of<child<Seed, 4>>(leaves_by_axis<true>(along));
  const auto element = 0.5 * (random_expression<child<Seed, 5>, 1>(earlier...) + carrier);
  const auto scanned_ = kind.scan(walk, element, random_expression<child<Seed, 6>, 1>(earlier...));
  return random_scan_result<decltype(scanned_), decltype(kind)>{scanned_, kind};
}

/// The scan's value at every position: the running one, or the last one broadcast back.
template <unsigned Seed, class Result> constexpr auto random_value(Result result) {
  constexpr bool packed = !(decltype(result.scan.over)::segment_axis == name{});
  if constexpr (packed || draw<Seed, 4> != 0)
    return result.value();
  else
    return result.last_value();
}

// ---- programs

/// out<"last">: the scan's final value, over the axes that it may have.
template <class Result> constexpr auto last_equation(Result result) {
  using over_type = decltype(result.scan.over);
  if constexpr (over_type::segment_axis == s.id)
    return out<"last">(s, b, d).optional() = result.last_value();
  else if constexpr (over_type::axis_type::id == n.id)
    return out<"last">(d, b).optional() = result.last_value();
  else if constexpr (over_type::axis_type::id == b.id)
    return out<"last">(n, d).optional() = result.last_value();
  else
    return out<"last">(b, n).optional() = result.last_value();
}

template <unsigned Seed, class Result, class... Value>
constexpr program random_equations(Result newest, Value... values) {
  const auto y = out<"y">(b, n, d) = random_expression<child<Seed, 0>, 1>(values...) + 0.5 * (values + ...);
  if constexpr (draw<child<Seed, 1>, 3> == 0)
    return op<"random">(y);
  else if constexpr (draw<child<Seed, 1>, 3> == 1)
    return op<"random">(y, last_equation(newest));
  else
    return op<"random">(out<"second">(n, d, b) = random_expression<child<Seed, 2>, 2>(values...), y,
                        last_equation(newest));
}

/// One to three scans, each of the values before it.
template <unsigned Seed> constexpr program make_random_program() {
  const auto start = random_expression<child<Seed, 0>, 2>();
  const auto one = random_scan<child<Seed, 1>>(start);
  const auto p = random_value<child<Seed, 2>>(one);
  if constexpr (draw<Seed, 5> < 2) {
    return random_equations<Seed>(one, p);
  } else {
    const auto two = random_scan<child<Seed, 3>>(p);
    const auto q = random_value<child<Seed, 4>>(two);
    if constexpr (draw<Seed, 5> < 4) {
      return random_equations<Seed>(two, p, q);
    } else {
      const auto three = random_scan<child<Seed, 5>>(p, q);
      return random_equations<Seed>(three, q, random_value<child<Seed, 6>>(three));
    }
  }
}

// ---- softmaxes, and what else no scan needs

/// Positions, small enough for every element type.
inline constexpr auto positions =
    std::make_tuple(index(n) % 7, (index(b) + index(d)) / 2 % 5, index(d) % 3 - 1);
/// Each keeps [-4, 4] within [-4.1, 4.1].
inline constexpr auto more_functions = std::make_tuple(
    activation::gelu, [](auto z) { return normal_cdf(z); },
    [](auto z) { return cos_of_product(std::get<0>(positions), z); },
    [](auto z) { return sin_of_product(std::get<1>(positions), z); },
    [](auto z) { return angle_of_product(std::get<2>(positions), 0.5 * z); },
    [](auto z) { return 0.5 * z + 0.25 * std::get<0>(positions); },
    [](auto z) { return select(std::get<1>(positions) < 2, z, 0.5 * std::get<1>(positions)); });
inline constexpr std::size_t more_functions_count = std::tuple_size_v<decltype(more_functions)>;

/// Shares along a random axis, and the mean that has them as weights.
template <unsigned Seed> constexpr program make_random_softmax() {
  const auto along = one_of<child<Seed, 0>>(std::make_tuple(n, n, b, d));
  const auto carrier = one_of<child<Seed, 1>>(leaves_by_axis<true>(along));
  const auto inner = std::get<Seed % more_functions_count>(more_functions)(carrier);
  const auto shares = softmax(over(along), inner + random_expression<child<Seed, 2>, 1>());
  const auto weight = one_of<child<Seed, 3>>(more_functions)(random_expression<child<Seed, 4>, 1>());
  const auto mean = sum(over(along), shares * weight);
  if constexpr (draw<Seed, 3> == 0)
    return op<"random">(out<"y">(b, n, d) = random_expression<child<Seed, 5>, 1>(mean) + 0.5 * mean);
  else if constexpr (draw<Seed, 3> == 1)
    return op<"random">(out<"y">(b, n, d) = 4.0 * shares, out<"second">(n, d, b) = 0.5 * (weight + mean));
  else
    return op<"random">(out<"y">(b, n, d) = 4.0 * (shares * weight) - mean);
}

/// From this seed on programs are softmaxes.
inline constexpr unsigned first_softmax = 1000;
template <unsigned Seed> constexpr program make_program() {
  if constexpr (Seed < first_softmax)
    return make_random_program<Seed>();
  else
    return make_random_softmax<Seed>();
}
template <unsigned Seed> inline constexpr program random_program = make_program<Seed>();

// ---- inputs

struct sizes {
  std::int64_t batch = 2, length = 24, width = 3, sequences = 4;
};

/// What a run of a program is given.
struct random_case {
  std::map<std::string, oracle_tensor> inputs;
  std::map<std::string, double> scalars;
  std::map<std::string, std::int64_t> extents;

  std::map<std::string, oracle_tensor> expected(const program& p) const {
    return oracle(p, inputs, scalars, extents);
  }
};

/// Multiples of 1/64 in [-2, 2]: exact in every element type, and equal ones are common.
inline double random_number(std::mt19937& random) {
  return std::uniform_int_distribution<int>(-128, 128)(random) / 64.0;
}

inline double random_integer_number(std::mt19937& random) {
  return std::uniform_int_distribution<int>(-3, 8)(random);
}

/// `sequences` packed sequences in `length` positions, at multiples of `unit`; some are empty.
inline std::vector<double> random_offsets(std::mt19937& random, std::int64_t length, std::int64_t sequences,
                                          std::int64_t unit) {
  std::vector<double> result{0, static_cast<double>(length)};
  for (std::int64_t i = 1; i < sequences; ++i)
    result.push_back(
        static_cast<double>(std::uniform_int_distribution<std::int64_t>(0, length / unit)(random) * unit));
  std::sort(result.begin(), result.end());
  return result;
}

/// Inputs for a program of this grammar. Optional ones are bound or not by chance. Restart intervals divide
/// 4, and packed sequences start at multiples of `unit`.
inline random_case make_case(const program& p, const sizes& size, unsigned seed, std::int64_t unit = 1) {
  std::mt19937 random(seed * 1000 + static_cast<unsigned>(p.nodes.count));  // programs choose differently
  const auto chance = [&](int percent) {
    return std::uniform_int_distribution<int>(1, 100)(random) <= percent;
  };
  random_case result;
  std::map<std::string, std::int64_t> extent{{"b", size.batch}, {"n", size.length}, {"d", size.width},
                                             {"s", 1},          {"m", 5},           {"k", 3},
                                             {"part", 2},       {"which", 2}};
  for (int a = 0; a < p.axes.count; ++a)
    if (p.parts[a] > 0) extent[std::string(p.axes[a].view())] = p.parts[a];
  if (p.find_tensor(offsets.id) >= 0 && chance(80)) {
    result.inputs["offsets"] = {random_offsets(random, size.length, size.sequences, unit),
                                {size.sequences + 1}};
    extent["s"] = size.sequences;
  }
  for (const name& axis : p.axes)
    result.extents[std::string(axis.view())] = extent.at(std::string(axis.view()));
  for (const tensor_decl& declared : p.tensors) {
    const bool given = declared.role == tensor_role::input || declared.role == tensor_role::table;
    if (!given || (declared.optional && chance(30))) continue;
    oracle_tensor& values = result.inputs[std::string(declared.id.view())];
    std::int64_t count = 1;
    for (const std::int16_t axis : declared.axes) {
      values.extents.push_back(extent.at(std::string(p.axes[axis].view())));
      count *= values.extents.back();
    }
    while (static_cast<std::int64_t>(values.values.size()) < count)
      values.values.push_back(holds_integers(declared) ? random_integer_number(random)
                                                       : random_number(random));
  }
  for (const parameter_decl& declared : p.parameters) {
    if (declared.optional && chance(30)) continue;
    const bool divides = declared.id == chunk.id || declared.id == make_name("interval");
    const bool flag =
        declared.id == flip.id || declared.id == before.id || declared.id == make_name("turned");
    const int exponent = std::uniform_int_distribution<int>(0, 2)(random);
    result.scalars[std::string(declared.id.view())] = divides ? 1 << exponent
                                                      : flag  ? chance(50)
                                                      : declared.kind == value_kind::integer
                                                          ? random_integer_number(random)
                                                          : random_number(random);
  }
  return result;
}

/// The greatest difference of two sets of outputs, relative where values are above 1; infinite where names,
/// extents, NaN or infinities differ.
inline double worst_difference(const std::map<std::string, oracle_tensor>& expected,
                               const std::map<std::string, oracle_tensor>& got) {
  double worst = expected.size() == got.size() ? 0 : inf;
  for (const auto& [id, want] : expected) {
    const auto found = got.find(id);
    if (found == got.end() || found->second.extents != want.extents) return inf;
    for (std::size_t i = 0; i < want.values.size(); ++i) {
      const double x = want.values[i], y = found->second.values[i];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double difference = std::fabs(x - y) / std::max(1.0, std::fabs(x));
      worst = std::isfinite(difference) ? std::max(worst, difference) : inf;
    }
  }
  return worst;
}

}  // namespace generate
