#include <string>
#include <vector>

#include "../ops/chunk_cumsum_decay/program.hpp"
#include "../ops/decayed_sum/program.hpp"
#include "../ops/logcumsumexp/program.hpp"
#include "../ops/lrpe_cosine/program.hpp"
#include "../ops/md_lrpe_cosine/program.hpp"
#include "docs/golden.hpp"
#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"
#include "support/resonator.hpp"

using namespace docs_test;

namespace {

using namespace scandsl;
using support::resonator;

constexpr axis<"b"> b;
constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr axis<"seq"> seq;
constexpr tensor<"x"> x;
constexpr tensor<"y"> y;
constexpr tensor<"dx"> dx;
constexpr tensor<"dy"> dy;
constexpr tensor<"re"> re;
constexpr tensor<"im"> im;
constexpr tensor<"start"> start;
constexpr tensor<"offsets"> offsets;
constexpr tensor<"decay"> decay;
constexpr tensor<"gate"> gate;

// [doc:gradient]
constexpr auto logcumsumexp = op<"logcumsumexp">(out<"y">(b, n) = scan(log_add_exp, over(n), x(b, n)));
constexpr auto dlogcumsumexp = gradient(logcumsumexp);
// [/doc:gradient]
constexpr auto ddlogcumsumexp = gradient(dlogcumsumexp);

// [doc:decayed]
constexpr auto smooth = op<"smooth">(out<"y">(b, n) = scan(decayed_sum, over(n), decay(b), x(b, n)));
constexpr auto dsmooth = gradient(smooth);
// [/doc:decayed]

// The programs of the examples.
constexpr auto log_total = last(scan(log_add_exp, over(n), x(b, n)));
constexpr auto row_softmax =
    op<"softmax">(out<"y">(b, n) = exp(x(b, n) - log_total), out<"lse">(b).optional() = log_total);
constexpr auto running_sum = op<"running_sum">(out<"y">(b, n) = scan(plain_sum, over(n), x(b, n)));
constexpr auto softsign = fn([](auto z) { return z / (1.0 + abs(z)); });
constexpr auto softsign_with_rule =
    softsign.derivative([](auto, auto value) { return square(1.0 - abs(value)); });
constexpr auto bounded_sum = op<"bounded_sum">(out<"y">(n) = softsign(scan(plain_sum, over(n), x(n))));
constexpr auto with_rule = op<"with_rule">(out<"y">(n) = softsign_with_rule(scan(plain_sum, over(n), x(n))));
constexpr auto ring = op<"ring">(out<"y">(b, n) = scan(resonator, over(n), re(b), im(b), x(b, n)));
constexpr auto packed_sum =
    scan(decayed_sum, over(n).restart_at(offsets(seq)).starting_from(value_or(start(seq, d), 0.0)), decay(d),
         x(n, d));
constexpr auto packed =
    op<"packed">(out<"y">(n, d) = packed_sum, out<"end">(seq, d).optional() = last(packed_sum));
constexpr auto weight = exp(x(b, n, d) - last(scan(log_add_exp, over(d), x(b, n, d))));
constexpr auto gated_sum =
    op<"gated_sum">(out<"y">(b, n, d) = silu(scan(decayed_sum, over(n), sigmoid(gate(b, n, d)), x(b, n, d))));
constexpr auto attended = op<"attended">(out<"y">(b, n, d) = scan(decayed_sum, over(n), decay(d), weight));

}  // namespace

TEST_CASE("gradients as they are printed", "[docs]") {
  const auto check = [](const std::string& region, const program& p) {
    INFO(region);
    CHECK(describe(p) + "\n" == golden("gradients.txt", region));
    CHECK(describe_latex(p) + "\n" == golden("gradients.txt", region + "-latex"));
  };
  check("logcumsumexp", dlogcumsumexp);
  check("smooth", dsmooth);
  check("op-logcumsumexp", gradient(ops::logcumsumexp_program::program));
  check("op-decayed_sum", gradient(ops::decayed_sum_program::program));
  check("op-chunk_cumsum_decay", gradient(ops::chunk_cumsum_decay_program::program));
  check("op-lrpe_cosine", gradient(ops::lrpe_cosine_program::with_silu));
  check("op-lrpe_cosine-softmax", gradient(ops::lrpe_cosine_program::softmax_features));
  check("op-md_lrpe_cosine", gradient(ops::md_lrpe_cosine_program::program));
  check("softmax", gradient(row_softmax));
  check("running_sum", gradient(running_sum));
  check("bounded_sum", gradient(bounded_sum));
  check("with_rule", gradient(with_rule));
  check("ring", gradient(ring));
  check("packed", gradient(packed));
  check("attended", gradient(attended));
  check("gated_sum", gradient(gated_sum));
}

TEST_CASE("tangents and second order as they are printed", "[docs]") {
  CHECK(describe(jvp(logcumsumexp)) + "\n" == golden("gradients.txt", "logcumsumexp-jvp"));
  CHECK(describe_latex(jvp(logcumsumexp)) + "\n" == golden("gradients.txt", "logcumsumexp-jvp-latex"));
  CHECK(describe(ddlogcumsumexp) + "\n" == golden("gradients.txt", "logcumsumexp-twice"));
  CHECK(describe_latex(ddlogcumsumexp) + "\n" == golden("gradients.txt", "logcumsumexp-twice-latex"));
}

TEST_CASE("a gradient is run as any program", "[docs]") {
  const std::vector<float> values = {0, 1, 2, 3, 1000, 1000, 1000, 1000}, cotangent(8, 1.0F);
  std::vector<float> gradient_values(8);
  // [doc:run]
  run<dlogcumsumexp>(cpu{}, x = view(values.data(), 2, 4), dy = view(cotangent.data(), 2, 4),
                     dx = view(gradient_values.data(), 2, 4));
  // [/doc:run]
  const double shares[] = {1.0 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4, 1.0 / 2 + 1.0 / 3 + 1.0 / 4, 1.0 / 3 + 1.0 / 4,
                           1.0 / 4};
  // Near 1000 as exact as anywhere: the shares are of equal elements.
  for (std::size_t i = 0; i < 4; ++i) CHECK(gradient_values[4 + i] == Approx(shares[i]));
}

TEST_CASE("a gradient reads its inputs once", "[docs]") {
  // [doc:floor]
  const cpu_plan planned = plan<dlogcumsumexp>(cpu{2}, x = shape<float>(1000, 2048),
                                               dy = shape<float>(1000, 2048), dx = shape<float>(1000, 2048));
  CHECK(planned.moved_bytes == planned.floor_bytes);  // x and dy read once, dx written once
  // [/doc:floor]
  // Of two threads with AVX-512, wherever the test runs.
  const cpu_plan shown = plan<dlogcumsumexp>(cpu_device{2, 16}, x = shape<float>(1000, 2048),
                                             dy = shape<float>(1000, 2048), dx = shape<float>(1000, 2048));
  CHECK(explain(shown) == golden("gradients.txt", "logcumsumexp-plan"));
}
