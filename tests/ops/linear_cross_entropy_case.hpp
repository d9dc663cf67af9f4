#pragma once
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "ops/op_case.hpp"
#include "scandsl/ops/linear_cross_entropy.hpp"

/// One call of linear_cross_entropy, and the textbook that its results are compared with.
namespace lce_test {

using namespace op_test;

/// One call and its random operands. Everything that a call takes or gives has memory, used or not.
struct lce_case {
  extent_list tokens = {7};  ///< the leading dimensions of x
  std::int64_t features = 5, classes = 11;
  dtype type = dtype::float32;
  bool has_bias = false, has_class_weight = false, ignores = false;
  double smoothing = 0, z_loss = 0, softcap = 0;
  ops::loss_reduction reduction = ops::loss_reduction::mean;
  std::int64_t chunk = 3;
  std::optional<dtype> accumulate = {};
  unsigned layout_seed = 0;
  double logit_scale = 1;

  std::int64_t count() const { return count_of(tokens); }
  bool is_reduced() const { return reduction != ops::loss_reduction::none; }
  dtype sums() const { return type == dtype::float64 ? dtype::float64 : dtype::float32; }
  extent_list with_features() const {
    extent_list all = tokens;
    all.push_back(features);
    return all;
  }
  extent_list losses() const { return is_reduced() ? extent_list{} : tokens; }
};

inline std::ostream& operator<<(std::ostream& out, const lce_case& c) {
  out << name_of(c.type) << " [";
  for (const std::int64_t extent : c.tokens) out << ' ' << extent;
  return out << " ] x " << c.features << " to " << c.classes << (c.has_bias ? " bias" : "")
             << (c.has_class_weight ? " class weights" : "") << (c.ignores ? " ignored tokens" : "")
             << " smoothing " << c.smoothing << " z " << c.z_loss << " cap " << c.softcap << " reduction "
             << static_cast<int>(c.reduction) << " chunk " << c.chunk << " layout " << c.layout_seed;
}

using numbers = std::vector<double>;
struct results {
  numbers loss, lse, x_gradient, weight_gradient, bias_gradient;
};

/// The textbook in float64: whole rows of logits, one token after the other. Cotangents as the case reduces.
inline results expect(const lce_case& c, const numbers& x, const numbers& weight, const numbers& bias,
                      const numbers& class_weight, const std::vector<std::int64_t>& target,
                      const numbers& loss_cotangent, const numbers& lse_cotangent) {
  const auto N = static_cast<std::size_t>(c.count()), D = static_cast<std::size_t>(c.features),
             V = static_cast<std::size_t>(c.classes);
  const auto w = [&](std::size_t v) { return c.has_class_weight ? class_weight[v] : 1.0; };
  results all{{}, numbers(N), numbers(N * D), numbers(V * D), numbers(V)};
  double divisor = c.reduction == ops::loss_reduction::mean ? 0.0 : 1.0;
  if (c.reduction == ops::loss_reduction::mean)
    for (const std::int64_t t : target) divisor += t < 0 ? 0.0 : w(static_cast<std::size_t>(t));
  double total = 0;
  for (std::size_t n = 0; n < N; ++n) {
    numbers raw(V), z(V), dz(V);
    double top = -HUGE_VAL, sum = 0;
    // By pointers: sanitizers look at every element that is read, but need not at every call of a vector's.
    const double* const token = x.data() + n * D;
    double* const of_token = all.x_gradient.data() + n * D;
    for (std::size_t v = 0; v < V; ++v) {
      const double* const of_class = weight.data() + v * D;
      for (std::size_t d = 0; d < D; ++d) raw[v] += token[d] * of_class[d];
      if (c.has_bias) raw[v] += bias[v];
      z[v] = c.softcap > 0 ? c.softcap * std::tanh(raw[v] / c.softcap) : raw[v];
      top = std::max(top, z[v]);
    }
    for (std::size_t v = 0; v < V; ++v) sum += std::exp(z[v] - top);
    const double lse = all.lse[n] = top + std::log(sum);
    const bool counts = target[n] >= 0;
    const double of_loss = !counts ? 0.0 : c.is_reduced() ? loss_cotangent[0] / divisor : loss_cotangent[n];
    double loss = counts ? c.z_loss * lse * lse : 0.0;
    double of_lse = lse_cotangent[n] + of_loss * 2 * c.z_loss * lse;
    for (std::size_t v = 0; counts && v < V; ++v) {
      double q = c.smoothing * w(v) / static_cast<double>(V);
      if (v == static_cast<std::size_t>(target[n])) q += (1 - c.smoothing) * w(v);
      if (q == 0) continue;
      loss += q * (lse - z[v]);
      of_lse += of_loss * q;
      dz[v] -= of_loss * q;
    }
    for (std::size_t v = 0; v < V; ++v) {
      dz[v] += of_lse * std::exp(z[v] - lse);
      if (c.softcap > 0) dz[v] *= 1 - (z[v] / c.softcap) * (z[v] / c.softcap);
      const double* const of_class = weight.data() + v * D;
      double* const gradient_of_class = all.weight_gradient.data() + v * D;
      const double slope = dz[v];
      for (std::size_t d = 0; d < D; ++d) {
        of_token[d] += slope * of_class[d];
        gradient_of_class[d] += slope * token[d];
      }
      all.bias_gradient[v] += dz[v];
    }
    total += loss;
    if (!c.is_reduced()) all.loss.push_back(loss);
  }
  if (c.is_reduced()) all.loss.push_back(total / divisor);
  return all;
}

/// The operands of a case in memory, and its results once an op has run.
class lce_operands {
public:
  lce_operands(const lce_case& what, unsigned seed)
      : c(what), random(seed), x(input(c.with_features(), c.logit_scale)),
        weight(input({c.classes, c.features}, 1, false)), bias(input({c.classes})),
        class_weight(block(dtype::float32, {c.classes}, true)), target(block(dtype::int64, c.tokens, true)),
        loss_cotangent(block(c.sums(), c.losses(), true)), lse_cotangent(block(c.sums(), c.tokens, true)),
        loss(block(c.sums(), c.losses(), false)), lse(block(c.sums(), c.tokens, false)),
        x_gradient(block(c.type, c.with_features(), false)),
        weight_gradient(block(c.type, {c.classes, c.features}, false)),
        bias_gradient(block(c.type, {c.classes}, false)), pending(block(c.sums(), {}, false)),
        kept(c.type, {c.count(), c.classes + 3}), factor(c.sums(), {}) {
    kept.write(numbers(static_cast<std::size_t>(c.count() * (c.classes + 3)), beside));
    class_weight.write(random_values(random, c.classes, 0.2, 3));
    loss_cotangent.write(random_values(random, count_of(c.losses()), -2, 2));
    lse_cotangent.write(random_values(random, c.count(), -2, 2));
    numbers targets;
    for (std::int64_t i = 0; i < c.count(); ++i)
      targets.push_back(
          c.ignores && i % 3 == 1 ? -100 : static_cast<double>(random() % static_cast<unsigned>(c.classes)));
    target.write(targets);
  }

  ops::linear_cross_entropy_options options() {
    ops::linear_cross_entropy_options o;
    if (c.has_bias) o.bias = bias.as_array(false);
    if (c.has_class_weight) o.class_weight = class_weight.as_array(false);
    o.label_smoothing = c.smoothing;
    o.z_loss = c.z_loss;
    if (c.softcap > 0) o.softcap = c.softcap;
    o.reduction = c.reduction;
    o.lse = lse.as_array(true);
    o.accumulate = c.accumulate;
    o.tokens_a_chunk = c.chunk;
    o.check_targets = checks_targets;
    return o;
  }
  ops::linear_cross_entropy_gradients gradients() {
    ops::linear_cross_entropy_gradients g;
    g.x_gradient = x_gradient.as_array(true);
    g.weight_gradient = weight_gradient.as_array(true);
    if (c.has_bias) g.bias_gradient = bias_gradient.as_array(true);
    return g;
  }
  void run() {
    run_on_device([&](auto& device) {
      ops::linear_cross_entropy(device, x.as_array(false), weight.as_array(false), target.as_array(false),
                                loss.as_array(true), options());
    });
  }
  void run_with_gradients(bool is_pending = false) {
    run_on_device(
        [&](auto& device) {
          ops::linear_cross_entropy_with_gradients(
              device, x.as_array(false), weight.as_array(false), target.as_array(false), loss.as_array(true),
              gradients(), options(), is_pending ? std::optional(pending.as_array(true)) : std::nullopt);
        },
        threads);
  }
  /// [N, V], or of a chunk, in longer rows, of whose ends nothing may be written.
  array logits_gradient(bool writable) {
    array result = kept.as_array(writable);
    result.extents[1] = c.classes;
    if (keeps_last_chunk) result.extents[0] = std::min(c.count(), c.chunk);
    return result;
  }
  bool is_intact_beside_logits_gradient() const {
    const numbers all = kept.read();
    const auto row = static_cast<std::size_t>(c.classes + 3);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (i % row >= row - 3 && all[i] != beside) return false;
    return true;
  }
  void run_with_logits_gradient() {
    run_on_device([&](auto& device) {
      ops::linear_cross_entropy_with_logits_gradient(
          device, x.as_array(false), weight.as_array(false), target.as_array(false), loss.as_array(true),
          logits_gradient(true), pending.as_array(true), options(), gradients());
    });
  }
  void run_products(double by, const ops::linear_cross_entropy_gradients& wanted) {
    factor.write({by});
    run_on_device([&](auto& device) {
      ops::linear_cross_entropy_products(device, x.as_array(false), weight.as_array(false),
                                         logits_gradient(false), wanted, factor.as_array(false),
                                         pending.as_array(false));
    });
  }
  void run_backward(bool of_loss, bool of_lse) {
    ops::linear_cross_entropy_gradients g = gradients();
    if (of_loss) g.loss_cotangent = loss_cotangent.as_array(false);
    if (of_lse) g.lse_cotangent = lse_cotangent.as_array(false);
    run_on_device([&](auto& device) {
      ops::linear_cross_entropy_backward(device, x.as_array(false), weight.as_array(false),
                                         target.as_array(false), g, options());
    });
  }

  results expected(const numbers& of_loss, const numbers& of_lse) const {
    std::vector<std::int64_t> targets;
    for (const double each : target.read()) targets.push_back(static_cast<std::int64_t>(each));
    return expect(c, x.read(), weight.read(), bias.read(), class_weight.read(), targets, of_loss, of_lse);
  }
  results expected_with_unit_cotangents() const { return expected_with_cotangents(1.0); }
  /// All of the loss alike.
  results expected_with_cotangents(double of_loss) const {
    return expected(numbers(static_cast<std::size_t>(std::max<std::int64_t>(c.count(), 1)), of_loss),
                    numbers(static_cast<std::size_t>(c.count()), 0.0));
  }

  lce_case c;
  bool checks_targets = false, keeps_last_chunk = false;
  int threads = 0;
  std::mt19937 random;
  memory_block x, weight, bias, class_weight, target, loss_cotangent, lse_cotangent, loss, lse, x_gradient,
      weight_gradient, bias_gradient, pending, kept, factor;

private:
  static constexpr double beside = 7;

  memory_block block(dtype type, const extent_list& extents, bool is_input, bool may_repeat = true) {
    std::vector<extent_list> whole;
    for (const std::int64_t extent : extents) whole.push_back({extent});
    memory_block result(type, extents,
                        c.layout_seed == 0 ? layout{}
                                           : random_layout(random, extents, whole, is_input && may_repeat));
    // What was in an output must not matter, also where products add to what they find.
    if (!is_input) result.write(numbers(static_cast<std::size_t>(count_of(extents)), std::nan("")));
    return result;
  }
  /// Of the weight no class repeats another: x's gradient, relative to whose size errors are, would be 0.
  memory_block input(const extent_list& extents, double scale = 1, bool may_repeat = true) {
    memory_block result = block(c.type, extents, true, may_repeat);
    result.write(random_values(random, count_of(extents), -scale, scale));
    return result;
  }
};

inline double norm(const numbers& values) {
  double squares = 0;
  for (const double each : values) squares += each * each;
  return std::sqrt(squares);
}
/// |got - expected| relative to |expected|, as vectors.
inline double error_of(const numbers& got, const numbers& expected) {
  numbers difference;
  for (std::size_t i = 0; i < got.size(); ++i) difference.push_back(got[i] - expected[i]);
  const double size = norm(expected);
  return size == 0 ? norm(difference) : norm(difference) / size;
}

/// What is wrong with what a call wrote; empty if nothing is. A logit z is off by its rounding, u |z|, which
/// is what a loss may be off by, and a probability relative to its size. Gradients are rounded twice more, in
/// the chunk and at the end, and the weight's once a chunk.
inline std::string wrong(const lce_operands& o, const results& expected, bool with_losses,
                         bool with_gradients) {
  double largest = 1;
  for (const double each : expected.lse) largest = std::max(largest, std::fabs(each) + 3);
  const double u = unit_roundoff(o.c.type), arithmetic = o.c.type == dtype::float64 ? 1e-14 : 3e-6;
  const double of_logits = largest * u + arithmetic;
  const auto chunks =
      static_cast<double>((o.c.count() + o.c.chunk - 1) / std::max<std::int64_t>(o.c.chunk, 1));
  const auto differ = [](const char* id, const memory_block& got, const numbers& right,
                         double tolerance) -> std::string {
    if (!got.is_intact_around()) return message("memory beside ", id, " was written");
    const double error = error_of(got.read(), right);
    return error <= tolerance ? ""
                              : message(id, " is off by ", error, " of its size, at most ", tolerance, "; ");
  };
  std::string text;
  if (with_losses)
    text +=
        differ("loss", o.loss, expected.loss, 2 * of_logits) + differ("lse", o.lse, expected.lse, of_logits);
  if (with_gradients) {
    text += differ("x_gradient", o.x_gradient, expected.x_gradient, 2 * of_logits + 2 * u);
    text += differ("weight_gradient", o.weight_gradient, expected.weight_gradient,
                   2 * of_logits + (1 + chunks) * u);
    if (o.c.has_bias)
      text += differ("bias_gradient", o.bias_gradient, expected.bias_gradient, 2 * of_logits + 2 * u);
  }
  return text;
}

/// Calls f with every combination of options in float32, and with a fifth of them in the other types.
template <class F> void for_each_option(F f) {
  unsigned seed = 0;
  for (const dtype type : {dtype::float32, dtype::float64, dtype::bfloat16, dtype::float16})
    for (int options = 0; options < 64; ++options)
      for (const auto reduction :
           {ops::loss_reduction::none, ops::loss_reduction::mean, ops::loss_reduction::sum}) {
        lce_case c;
        c.type = type;
        c.has_bias = (options & 1) != 0;
        c.has_class_weight = (options & 2) != 0;
        c.ignores = (options & 4) != 0;
        c.smoothing = (options & 8) != 0 ? 0.2 : 0;
        c.z_loss = (options & 16) != 0 ? 0.1 : 0;
        c.softcap = (options & 32) != 0 ? 1.5 : 0;
        c.reduction = reduction;
        if (++seed % 5 == 0 || type == dtype::float32) f(c, seed);
      }
}

/// Calls f with the operands of calls in which no token counts: there is none, or all are ignored.
template <class F> void for_each_without_tokens(std::initializer_list<ops::loss_reduction> reductions, F f) {
  for (const std::int64_t tokens : {0, 5})
    for (const auto reduction : reductions)
      for (const dtype type : {dtype::float32, dtype::bfloat16}) {
        lce_case c;
        c.type = type;
        c.tokens = {tokens};
        c.has_bias = true;
        c.reduction = reduction;
        lce_operands o(c, 7);
        o.target.write(numbers(static_cast<std::size_t>(tokens), -100));
        f(o);
      }
}

}  // namespace lce_test
