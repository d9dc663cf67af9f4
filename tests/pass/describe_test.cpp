#include <string>

#include "scandsl/ir/lower.hpp"
#include "scandsl/pass/describe.hpp"
#include "support/catch.hpp"

namespace {

using namespace scandsl;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr axis<"seq"> seq;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"z"> z;
constexpr tensor<"a"> decay;
constexpr tensor<"h0"> h0;
constexpr tensor<"cu_seqlens"> cu_seqlens;
constexpr scalar<"chunk"> chunk;
constexpr scalar<"reverse"> reverse;
constexpr scalar<"exclusive"> exclusive;

constexpr program logcumsumexp =
    op<"logcumsumexp">(out<"y">(b, n, d) = scan(log_add_exp, over(n), x(b, n, d)));
constexpr program gated =
    op<"gated">(out<"y">(b, n, d) =
                    silu(scan(decayed_sum, over(n).reversed(), sigmoid(tensor<"g">{}(b, n, d)), x(b, n, d))));
constexpr program chunk_cumsum =
    op<"chunk_cumsum">(out<"y">(b, n, d) = scan(plain_sum, over(n).restart_every(chunk), x(b, n, d)));
constexpr program softmax =
    op<"softmax">(out<"y">(b, n) = exp(x(b, n) - last(scan(log_add_exp, over(n), x(b, n)))));

constexpr auto running_variance = scan(welford, over(n), x(b, n));
constexpr program variance =
    op<"variance">(out<"y">(b, n) = running_variance, out<"z">(b, n).optional() = mish(running_variance));

constexpr auto packed_scan =
    scan(decayed_sum, over(n).restart_at(cu_seqlens(seq)).starting_from(h0(seq, d)), decay(n, d), x(n, d));
constexpr program packed =
    op<"packed">(out<"y">(n, d) = packed_scan, out<"final">(seq, d).optional() = last(packed_scan));

TEST_CASE("describe: a scan is a recurrence and its start", "[describe]") {
  CHECK(describe(logcumsumexp) == R"(logcumsumexp:
  s(b,n,d) = logaddexp(s(b,n-1,d), x(b,n,d)),  starting from -inf
  y(b,n,d) = s(b,n,d))");
  CHECK(describe(op<"sum">(out<"y">(b, n, d) = scan(decayed_sum, over(n), decay(b, n, d), x(b, n, d)))) ==
        R"(sum:
  s(b,n,d) = a(b,n,d) * s(b,n-1,d) + x(b,n,d),  starting from 0
  y(b,n,d) = s(b,n,d))");
}

TEST_CASE("describe: functions of a product show the product", "[describe]") {
  constexpr auto turned = op<"turned">(out<"y">(n, d) = x(n, d) * cos_of_product(z(n) + 1.0, decay(d)) -
                                                        sin_of_product(z(n), -decay(d)));
  CHECK(describe(turned) == R"(turned:
  y(n,d) = x(n,d) * cos((z(n) + 1) * a(d)) - sin(z(n) * (-a(d))))");
  CHECK(describe_latex(turned) == R"(\begin{align*}
  y_{n,d} &= x_{n,d} \, \cos((z_{n} + 1) \, a_{d}) - \sin(z_{n} \, (-a_{d}))
\end{align*})");
}

TEST_CASE("describe: a reversed scan is called r and reads n+1", "[describe]") {
  CHECK(describe(gated) == R"(gated:
  r(b,n,d) = sigmoid(g(b,n,d)) * r(b,n+1,d) + x(b,n,d),  starting from 0
  y(b,n,d) = silu(r(b,n,d)))");
}

TEST_CASE("describe: restarts", "[describe]") {
  CHECK(describe(chunk_cumsum) == R"(chunk_cumsum:
  s(b,n,d) = s(b,n-1,d) + x(b,n,d),  starting from 0, restarting every chunk
  y(b,n,d) = s(b,n,d))");
  CHECK(describe(packed) == R"(packed:
  s(n,d) = a(n,d) * s(n-1,d) + x(n,d),  starting from h0(seq,d), restarting at cu_seqlens(seq) if bound
  y(n,d) = s(n,d)
  final(seq,d) = s(last n of seq,d),  written if bound)");
}

TEST_CASE("describe: a reduction is a last value", "[describe]") {
  CHECK(describe(softmax) == R"(softmax:
  s(b,n) = logaddexp(s(b,n-1), x(b,n)),  starting from -inf
  y(b,n) = exp(x(b,n) - s(b,last n)))");
  CHECK(describe(op<"sum">(out<"y">(b) = sum(over(n).reversed(), x(b, n)))) == R"(sum:
  r(b,n) = r(b,n+1) + x(b,n),  starting from 0
  y(b) = r(b,first n))");
}

TEST_CASE("describe: run-time flags", "[describe]") {
  CHECK(describe(op<"flags">(out<"y">(b, n) = scan(plain_sum, over(n).reversed(reverse).exclusive(exclusive),
                                                   x(b, n)))) == R"(flags:
  s(b,n) = s(b,n-1) + x(b,n),  starting from 0, with n+1 for n-1 if reverse
  y(b,n) = s(b,n-1) if exclusive else s(b,n))");
  CHECK(describe(op<"fixed">(out<"y">(b, n) = scan(plain_sum, over(n).exclusive(), x(b, n)))) == R"(fixed:
  s(b,n) = s(b,n-1) + x(b,n),  starting from 0
  y(b,n) = s(b,n-1))");
  CHECK(describe(op<"last">(out<"y">(b) = sum(over(n).reversed().reversed(reverse), x(b, n)))) == R"(last:
  r(b,n) = r(b,n+1) + x(b,n),  starting from 0, with n-1 for n+1 if reverse
  y(b) = r(b,final n))");
}

TEST_CASE("describe: a state of several components, and values that are read twice", "[describe]") {
  CHECK(describe(variance) == R"(variance:
  s1(b,n) = s1(b,n-1) + 1,  starting from 0
  v1(b,n) = x(b,n) - s2(b,n-1)
  v2(b,n) = max(s1(b,n), 1)
  s2(b,n) = s2(b,n-1) + v1(b,n) * (1 / v2(b,n)),  starting from 0
  s3(b,n) = s3(b,n-1) + v1(b,n) * v1(b,n) * (s1(b,n-1) / v2(b,n)),  starting from 0
  y(b,n) = s3(b,n) / v2(b,n)
  z(b,n) = mish(y(b,n)),  written if bound)");
  CHECK(describe(op<"online">(out<"y">(b, n) = scan(running_max_sum, over(n), x(b, n)))) == R"(online:
  s1(b,n) = max(s1(b,n-1), x(b,n)),  starting from -inf
  s2(b,n) = s2(b,n-1) * exp_difference(s1(b,n-1), s1(b,n)) + exp_difference(x(b,n), s1(b,n)),  starting from 0
  y(b,n) = s1(b,n) + log(s2(b,n)))");
}

TEST_CASE("describe: scans of scans stand in order, with names of their own", "[describe]") {
  constexpr auto scale = exp(tensor<"s">{}(d));
  CHECK(describe(op<"twice">(out<"y">(b, n, d) = scan(decayed_sum, over(n), scale,
                                                      scan(decayed_sum, over(n), scale, x(b, n, d))))) ==
        R"(twice:
  v1(d) = exp(s(d))
  h(b,n,d) = v1(d) * h(b,n-1,d) + x(b,n,d),  starting from 0
  c(b,n,d) = v1(d) * c(b,n-1,d) + h(b,n,d),  starting from 0
  y(b,n,d) = c(b,n,d))");
}

TEST_CASE("describe: an initial state is written out", "[describe]") {
  CHECK(describe(op<"seeded">(out<"y">(n) =
                                  scan(running_max_sum, over(n).starting_from(h0(), exp(h0())), x(n)))) ==
        R"(seeded:
  s1(n) = max(s1(n-1), x(n)),  starting from h0
  s2(n) = s2(n-1) * exp_difference(s1(n-1), s1(n)) + exp_difference(x(n), s1(n)),  starting from exp(h0)
  y(n) = s1(n) + log(s2(n)))");
}

TEST_CASE("describe: a component whose step is a plain operand", "[describe]") {
  constexpr auto latest = scan_op(
      state(0.0), [](auto v) { return state(v); }, [](auto, auto r) { return r; },
      [](auto s) { return std::get<0>(s); });
  CHECK(describe(op<"latest">(out<"y">(n) = scan(latest, over(n), x(n)),
                              out<"z">(n) = scan(latest, over(n).exclusive(), x(n)))) == R"(latest:
  s(n) = x(n),  starting from 0
  y(n) = s(n)
  z(n) = s(n-1))");
}

TEST_CASE("describe: optional operands", "[describe]") {
  CHECK(describe(op<"shifted">(out<"y">(b, d) = x(b, d) + value_or(tensor<"bias">{}(d), 0.0) -
                                                value_or(scalar<"epsilon">{}, 1e-5))) == R"(shifted:
  y(b,d) = x(b,d) + bias(d) - epsilon
  bias(d) = 0 unless bound
  epsilon = 1e-05 unless bound)");
}

TEST_CASE("describe: derivatives that a user gave", "[describe]") {
  constexpr auto clip = fn([](auto v) { return max(v, 0.0); }).derivative([](auto v, auto value) {
    return sigmoid(v) * value;
  });
  CHECK(describe(op<"clip">(out<"y">(n) = clip(x(n)))) == R"(clip:
  y(n) = max(x(n), 0)
  d y(n) / d x(n) = sigmoid(x(n)) * y(n),  as given)");
  CHECK(describe(op<"clip">(out<"y">(n) = 2.0 * clip(exp(x(n))))) == R"(clip:
  v1(n) = exp(x(n))
  v2(n) = max(v1(n), 0)
  d v2(n) / d v1(n) = sigmoid(v1(n)) * v2(n),  as given
  y(n) = 2 * v2(n))");

  constexpr auto straight_through =
      fn([](auto v, auto) { return v; }).derivative([](auto, auto w, auto value) {
        return partials(square(exp(w)), tanh(value));
      });
  CHECK(describe(op<"straight">(out<"o">(n) = -straight_through(x(n), y(n)))) == R"(straight:
  v1(n) = x(n)
  v2(n) = exp(y(n))
  d v1(n) / d x(n) = v2(n) * v2(n),  as given
  d v1(n) / d y(n) = tanh(x(n)),  as given
  o(n) = -v1(n))");
}

TEST_CASE("describe: what an output does not read is left out", "[describe]") {
  constexpr program p = [] {
    program both = softmax;
    both.stores[0].value = 0;
    return both;
  }();
  CHECK(describe(p) == "softmax:\n  y(b,n) = x(b,n)");
}

constexpr auto u = x(n);
constexpr auto v = y(n);
constexpr auto w = z(n);

/// What stands on the right of the only line.
template <class E> std::string text(E e) {
  const std::string described = describe(op<"p">(out<"o">(n) = e));
  return described.substr(described.find(" = ") + 3);
}

TEST_CASE("describe: parentheses stand where precedence needs them", "[describe]") {
  CHECK(text(u + v * w) == "x(n) + y(n) * z(n)");
  CHECK(text((u + v) * w) == "(x(n) + y(n)) * z(n)");
  CHECK(text(u - v - w) == "x(n) - y(n) - z(n)");
  CHECK(text(u - (v - w)) == "x(n) - (y(n) - z(n))");
  CHECK(text(u + (v + w)) == "x(n) + (y(n) + z(n))");
  CHECK(text(u / v / w) == "x(n) / y(n) / z(n)");
  CHECK(text(u / (v * w)) == "x(n) / (y(n) * z(n))");
  CHECK(text(-(u + v)) == "-(x(n) + y(n))");
  CHECK(text(-(u * v)) == "-x(n) * y(n)");
  CHECK(text(-(-u)) == "-(-x(n))");
  CHECK(text(u - (-v)) == "x(n) - (-y(n))");
  CHECK(text(u * -2.0) == "x(n) * (-2)");
  CHECK(text(exp(-u)) == "exp(-x(n))");
  CHECK(text(max(u + v, -inf)) == "max(x(n) + y(n), -inf)");
  CHECK(text(0.1 * u + 1e-20) == "0.1 * x(n) + 1e-20");
}

TEST_CASE("describe: conditions", "[describe]") {
  CHECK(text(select((u < v && !(v < w)) || u == w, u, v + 1.0)) ==
        "x(n) if x(n) < y(n) && !(y(n) < z(n)) || x(n) == z(n) else y(n) + 1");
  CHECK(text(select(u < v && (v < w || u == w), u, v)) ==
        "x(n) if x(n) < y(n) && (y(n) < z(n) || x(n) == z(n)) else y(n)");
  CHECK(text(2.0 * select(u != v, u, select(u <= 0.0, v, w))) ==
        "2 * (x(n) if x(n) != y(n) else y(n) if x(n) <= 0 else z(n))");
  CHECK(text(select(u < v, select(v < w, u, v), w)) ==
        "(x(n) if y(n) < z(n) else y(n)) if x(n) < y(n) else z(n)");
  CHECK(text(select(exclusive == 0.0, u, v)) == "y(n) if exclusive else x(n)");
}

TEST_CASE("describe: a program of the simplifier reads well", "[describe]") {
  CHECK(describe(simplify(op<"p">(out<"y">(n) = 1.0 + x(n) * 2.0 * (x(n) * chunk)))) ==
        "p:\n  y(n) = 2 * x(n) * (chunk * x(n)) + 1");
}

constexpr program with_sum = [] {
  builder made;
  made.result = op<"p">(out<"o">(b, n, d) = x(b, n, d) * y(b, n, d));
  made.result.tensors[made.result.stores[0].tensor].axes.count = 2;
  made.result.stores[0].value = made.apply(primitive::index<primitive::multiply_op>, made.constant(2.0),
                                           made.sum(made.result.stores[0].value, axis_bit(made.axis(d.id))));
  return made.result;
}();

TEST_CASE("describe: sums along axes", "[describe]") {
  CHECK(describe(with_sum) == "p:\n  o(b,n) = 2 * sum(over(d), x(b,n,d) * y(b,n,d))");
  CHECK(describe_latex(with_sum) ==
        "\\begin{align*}\n  o_{b,n} &= 2 \\, (\\sum_{d} x_{b,n,d} \\, y_{b,n,d})\n\\end{align*}");
}

TEST_CASE("describe_latex: an align* environment", "[describe]") {
  CHECK(describe_latex(logcumsumexp) == R"(\begin{align*}
  s_{b,n,d} &= \operatorname{logaddexp}(s_{b,n-1,d}, x_{b,n,d}), \quad \text{starting from }-\infty \\
  y_{b,n,d} &= s_{b,n,d}
\end{align*})");
  CHECK(describe_latex(gated) == R"(\begin{align*}
  r_{b,n,d} &= \sigma(g_{b,n,d}) \, r_{b,n+1,d} + x_{b,n,d}, \quad \text{starting from }0 \\
  y_{b,n,d} &= \operatorname{silu}(r_{b,n,d})
\end{align*})");
  CHECK(describe_latex(chunk_cumsum) == R"(\begin{align*}
  s_{b,n,d} &= s_{b,n-1,d} + x_{b,n,d}, \quad \text{starting from }0, \; \text{restarting every }\mathrm{chunk} \\
  y_{b,n,d} &= s_{b,n,d}
\end{align*})");
  CHECK(describe_latex(softmax) == R"(\begin{align*}
  s_{b,n} &= \operatorname{logaddexp}(s_{b,n-1}, x_{b,n}), \quad \text{starting from }-\infty \\
  y_{b,n} &= \exp(x_{b,n} - s_{b,\text{last }n})
\end{align*})");
}

TEST_CASE("describe_latex: names, numbers, fractions and cases", "[describe]") {
  constexpr tensor<"dtheta"> dtheta;
  CHECK(describe_latex(op<"p">(out<"o">(n) = exp(dtheta(n) / (x(n) * 1e-20)) * cu_seqlens(n))) ==
        R"(\begin{align*}
  o_{n} &= \exp\left(\frac{\mathrm{d}\theta_{n}}{x_{n} \cdot 10^{-20}}\right) \, \mathrm{cu\_seqlens}_{n}
\end{align*})");
  CHECK(
      describe_latex(op<"p">(out<"o">(n) = 2.0 * select(!(x(n) < 2.5e9) && y(n) != 0.0, x(n), 2.0 * y(n)))) ==
      R"(\begin{align*}
  o_{n} &= 2 \, \left(\begin{cases} x_{n} & \text{if } \neg (x_{n} < 2.5 \cdot 10^{9}) \wedge y_{n} \ne 0 \\ )"
      R"(2 \, y_{n} & \text{otherwise} \end{cases}\right)
\end{align*})");
  constexpr auto clip =
      fn([](auto t) { return max(t, 0.0); }).derivative([](auto t, auto) { return sigmoid(t); });
  CHECK(describe_latex(op<"p">(out<"o">(n) = clip(clip(x(n))))) == R"(\begin{align*}
  v^{(1)}_{n} &= \max(x_{n}, 0) \\
  \frac{\partial v^{(1)}_{n}}{\partial x_{n}} &= \sigma(x_{n}), \quad \text{as given} \\
  o_{n} &= \max(v^{(1)}_{n}, 0) \\
  \frac{\partial o_{n}}{\partial v^{(1)}_{n}} &= \sigma(v^{(1)}_{n}), \quad \text{as given}
\end{align*})");
}

}  // namespace
