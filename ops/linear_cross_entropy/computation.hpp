#pragma once
#include <algorithm>

#include "../common/devices.hpp"
#include "gradient_program.hpp"
#include "memory.hpp"
#include "products.hpp"

/// Private to the op: the order of programs and products, on any device.
namespace scandsl::ops {

/// One call on a Session, which runs programs and products on its device:
///   run<P>(bindings...), multiply(product), choose(product), scale(matrix, address of a number)
/// only_sizes: it looks at shapes alone, so that one chunk of each size will do.
template <class Session> class computation {
public:
  computation(Session& on, const call_arguments& arguments, const call_memory& memory)
      : session(on), call(arguments), held(memory) {}

  void operator()() {
    copy_operands();
    if (call.is_products())
      copy(column_of(*call.pending), view_of(held.factor), number_if(call.factor));
    else
      prepare_tokens();
    if (call.is_products() && call.keeps_last_chunk()) return add_last_chunk();
    // Overwrites results, so before the chunks. All but the last are as the first.
    if (call.tokens() > 0) choose(0);
    if (is_in_chunks()) choose(last_chunk());
    if constexpr (Session::only_sizes)
      for_each_size([&](std::int64_t first) { compute_chunk(first); });
    else
      for (std::int64_t first = 0; first < call.tokens(); first += held.logits.rows) compute_chunk(first);
    if (call.loss) write_losses();
    write_gradients();
  }

private:
  using optional_view = std::optional<erased_view>;

  Session& session;
  const call_arguments& call;
  const call_memory& held;

  /// The products of one chunk: the logits, unless their gradient is known, and the gradients asked for.
  struct chunk_products {
    matrix chunk;
    std::optional<product> logits, x_gradient, weight_gradient;
  };
  chunk_products products_at(std::int64_t first) const {
    const std::int64_t count = chunk_tokens(first);
    const matrix chunk = held.logits.rows_from(0, count), rows = held.x.values.rows_from(first, count);
    chunk_products all{chunk, {}, {}, {}};
    if (!call.is_products()) all.logits = {rows, held.weight.values.transposed(), chunk};
    if (call.gradients.x_gradient)
      all.x_gradient = {chunk, held.weight.values, held.x_gradient.values.rows_from(first, count),
                        gradient_factor()};
    if (call.gradients.weight_gradient) {
      // The last product multiplies what the others have added up, too, whose factors are 1, which the host
      // knows. Not in float16, which may not hold such a sum, unless another pass is to multiply it anyway.
      const bool is_last = first == last_chunk();
      const bool lacks_factor = held.weight_gradient.values.type != dtype::float16;
      all.weight_gradient = {chunk.transposed(),
                             rows,
                             held.weight_gradient.values,
                             is_last || !lacks_factor ? gradient_factor() : nullptr,
                             first > 0,
                             is_last && (lacks_factor || call.is_products()) ? gradient_factor() : nullptr};
    }
    return all;
  }
  std::int64_t chunk_tokens(std::int64_t first) const {
    return std::min(held.logits.rows, call.tokens() - first);
  }
  bool is_in_chunks() const { return call.tokens() > held.logits.rows; }
  /// The first token of the last chunk.
  std::int64_t last_chunk() const { return (call.tokens() - 1) / held.logits.rows * held.logits.rows; }
  /// Whether the logits' gradient of a chunk stays for a second pass, which takes its products.
  bool is_left(std::int64_t first) const {
    return call.logits_gradient && !call.is_products() && first == last_chunk();
  }
  /// What the gradients of the logits are multiplied with in the products, in float32: 1 / count would take
  /// the small ones out of the range of float16.
  const void* gradient_factor() const {
    const bool lacks_pending =
        call.leaves_factor_pending() && (!call.logits_gradient || call.earlier_lack_pending());
    return call.has_token_cotangents() || lacks_pending ? nullptr : held.factor.data;
  }

  void copy(const optional_view& from, const erased_view& to, const optional_view& by = {}) {
    using namespace linear_cross_entropy_program;
    session.template run<scaled>(x = from, y = to, factor = by);
  }

  // ---- before the chunks

  void copy_operands() {
    if (held.x.is_copy) copy(rows_of(call.x, 1), view_of(held.x.values));
    if (held.weight.is_copy) copy(rows_of(call.weight, 1), view_of(held.weight.values));
  }
  void prepare_tokens() {
    using namespace linear_cross_entropy_program;
    const std::optional<array>& cotangent = call.gradients.loss_cotangent;
    const bool reduced = call.options.reduction != loss_reduction::none;
    optional_view given, repeated;
    if (call.backward && reduced) given = number_if(cotangent);
    session.template run<token_weights>(
        target = all_of(*call.target), class_weight = vector_if(call.options.class_weight),
        classes = static_cast<double>(call.classes()), ignore_index = call.options.ignore_index,
        token_weight = vector_of(held.token_weight));
    session.template run<totals>(token_weight = vector_of(held.token_weight), upstream = given,
                                 is_mean = call.options.reduction == loss_reduction::mean,
                                 denominator = number_of(held.denominator), factor = number_of(held.factor));
    if (call.options.class_weight)
      session.template run<mean_of_weights>(class_weight = vector_if(call.options.class_weight),
                                            mean_weight = number_of(held.mean_weight));
    if (!call.has_token_cotangents()) return;
    if (cotangent)
      repeated = reduced ? view_of({held.factor.data, held.factor.type, call.tokens(), 1, 0, 1})
                         : column_of(*cotangent);
    copy(repeated, view_of(held.loss_cotangents));
    copy(column_if(call.gradients.lse_cotangent), view_of(held.lse_cotangents));
  }
  /// Calls f with the first token of one chunk of each size: all chunks but the last are equal.
  template <class F> void for_each_size(F f) {
    const std::int64_t rest = call.tokens() % std::max<std::int64_t>(held.logits.rows, 1);
    if (call.tokens() > rest) f(0);
    if (rest > 0) f(call.tokens() - rest);
  }
  void choose(std::int64_t first) {
    chunk_products all = products_at(first);
    // All chunks but the first add to the weight's gradient.
    if (all.weight_gradient) all.weight_gradient->accumulates = is_in_chunks();
    if (is_left(first)) {  // to the second pass, which has a factor
      if (all.x_gradient) all.x_gradient->factor = held.factor.data;
      if (all.weight_gradient)
        all.weight_gradient->factor = all.weight_gradient->earlier_factor = held.factor.data;
    }
    for (const std::optional<product>* each : {&all.logits, &all.x_gradient, &all.weight_gradient})
      if (*each) session.choose(**each);
  }

  // ---- a chunk

  void compute_chunk(std::int64_t first) {
    const chunk_products all = products_at(first);
    if (all.logits) {
      session.multiply(*all.logits);
      if (call.wants_gradients())
        differentiate(all.chunk, first);
      else
        evaluate(all.chunk, first);
    }
    if (!is_left(first)) {
      if (all.x_gradient) session.multiply(*all.x_gradient);
      if (all.weight_gradient) session.multiply(*all.weight_gradient);
    }
    if (call.gradients.bias_gradient) add_bias_gradient(all.chunk, first > 0);
  }
  /// The second pass where the first one left nothing but the products of the last chunk. What is there from
  /// the others is multiplied with what it lacks: the weight's gradient in the product that adds to it, the
  /// others by themselves. Nothing is chosen, for that would overwrite them; the first pass has.
  void add_last_chunk() {
    const void* const lacking = call.earlier_lack_pending() ? held.factor.data : call.factor->data;
    const std::int64_t first = last_chunk();
    const linear_cross_entropy_gradients& wanted = call.gradients;
    chunk_products all = products_at(first);
    if (wanted.x_gradient && held.x_gradient.is_copy)
      copy(rows_of(*wanted.x_gradient, 1), view_of(held.x_gradient.values));
    if (wanted.weight_gradient && held.weight_gradient.is_copy)
      copy(rows_of(*wanted.weight_gradient, 1), view_of(held.weight_gradient.values));
    if (all.x_gradient) {
      session.scale(held.x_gradient.values.rows_from(0, first), lacking);
      session.multiply(*all.x_gradient);
    }
    if (all.weight_gradient) session.multiply(*all.weight_gradient);
    write_copies();
    if (const std::optional<array>& bias = wanted.bias_gradient)
      session.scale({bias->data, bias->type, call.classes(), 1, bias->strides[0], 1}, lacking);
  }
  void evaluate(const matrix& chunk, std::int64_t at) {
    using namespace linear_cross_entropy_program;
    with_chunk<plain_token_loss, token_loss>(chunk, at);
  }
  void differentiate(const matrix& chunk, std::int64_t at) {
    using namespace linear_cross_entropy_program;
    optional_view of_loss, of_lse;
    if (call.has_token_cotangents()) {
      of_loss = vector_of(held.loss_cotangents.rows_from(at, chunk.rows));
      of_lse = vector_of(held.lse_cotangents.rows_from(at, chunk.rows));
    }
    with_chunk<plain_token_gradient, token_gradient>(chunk, at, dlogits = view_of(chunk), dloss = of_loss,
                                                     dlse = of_lse);
  }
  /// Runs Plain where the call has no choices, else Any, with what both and the given bindings say.
  template <const program& Plain, const program& Any, class... Binding>
  void with_chunk(const matrix& chunk, std::int64_t at, const Binding&... bindings) {
    using namespace linear_cross_entropy_program;
    const auto tokens = [&](const matrix& of_call) { return vector_of(of_call.rows_from(at, chunk.rows)); };
    const linear_cross_entropy_options& options = call.options;
    const auto run = [&]<const program & P>(const auto&... more) {
      session.template run<P>(bindings..., more..., logits = view_of(chunk), target = all_of(*call.target),
                              first = at, ignore_index = options.ignore_index,
                              token_weight = tokens(held.token_weight), loss = tokens(held.token_loss),
                              lse = tokens(held.token_lse));
    };
    const bool plain = !options.bias && !options.class_weight && options.label_smoothing == 0.0 &&
                       options.z_loss == 0.0 && options.softcap.value_or(0.0) == 0.0;
    if (plain) return run.template operator()<Plain>();
    optional_view mean_of_weight;
    if (options.class_weight) mean_of_weight = number_of(held.mean_weight);
    run.template operator()<Any>(bias = vector_if(options.bias),
                                 class_weight = vector_if(options.class_weight), mean_weight = mean_of_weight,
                                 label_smoothing = options.label_smoothing, z_loss = options.z_loss,
                                 softcap = options.softcap.value_or(0.0));
  }
  void add_bias_gradient(const matrix& chunk, bool to_earlier) {
    using namespace linear_cross_entropy_program;
    optional_view earlier;
    if (to_earlier) earlier = vector_of(held.bias_sums);
    session.template run<column_sums>(logits = view_of(chunk), before = earlier,
                                      y = vector_of(held.bias_sums));
  }

  // ---- after the chunks

  void write_losses() {
    using namespace linear_cross_entropy_program;
    if (call.options.reduction == loss_reduction::none)
      copy(view_of(held.token_loss), column_of(*call.loss));
    else
      session.template run<reduced_loss>(loss = vector_of(held.token_loss),
                                         denominator = number_of(held.denominator),
                                         y = erased_view{call.loss->data, call.loss->type, true, 0, {}});
    if (call.options.lse) copy(view_of(held.token_lse), column_of(*call.options.lse));
  }
  /// Gradients that the products did not write as they lie; zeros where there were no tokens.
  void write_copies() {
    const linear_cross_entropy_gradients& wanted = call.gradients;
    if (wanted.x_gradient && held.x_gradient.is_copy)
      copy(view_of(held.x_gradient.values), rows_of(*wanted.x_gradient, 1));
    const bool none = call.tokens() == 0;
    if (wanted.weight_gradient && (none || held.weight_gradient.is_copy))
      copy(if_any(held.weight_gradient.values), rows_of(*wanted.weight_gradient, 1));
  }
  void write_gradients() {
    const linear_cross_entropy_gradients& wanted = call.gradients;
    write_copies();
    if (wanted.bias_gradient) {
      optional_view by;
      if (gradient_factor() != nullptr) by = number_of(held.factor);
      copy(if_any(held.bias_sums), column_of(*wanted.bias_gradient), by);
    }
  }

  // ---- views

  static optional_view vector_if(const std::optional<array>& given) {
    if (!given) return {};
    erased_view view{given->data, given->type, false, 1, {}};
    view.axis[0].push_back({given->extents[0], given->strides[0]});
    return view;
  }
  static optional_view number_if(const std::optional<array>& given) {
    if (!given) return {};
    return erased_view{given->data, given->type, false, 0, {}};
  }
  static optional_view column_if(const std::optional<array>& given) {
    if (!given) return {};
    return column_of(*given);
  }
  /// What the chunks made; nothing, which copies as zeros, where there were none.
  optional_view if_any(const matrix& made) const {
    if (call.tokens() == 0) return {};
    return view_of(made);
  }
};

}  // namespace scandsl::ops
