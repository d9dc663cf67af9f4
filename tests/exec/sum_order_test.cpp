#include <vector>

#include "scandsl/scandsl.hpp"
#include "support/catch.hpp"

using namespace scandsl;

// Programs whose sums the CPU takes in another order (pass/expand_sums.hpp) are checked as they were written.

namespace {

constexpr axis<"n"> n;
constexpr axis<"d"> d;
constexpr axis<"part"> part;
constexpr tensor<"scale"> scale;
constexpr tensor<"q"> q;
constexpr tensor<"r"> r;
constexpr tensor<"c"> c;
constexpr auto both =
    stack(part, cos_of_product(index(n), r(d) * c(d)), sin_of_product(index(n), r(d) * c(d)));
inline constexpr auto encoding = gradient(
    op<"encoding">(out<"v">(d) = q(d) * r(d), out<"y">(n, part, d) = scale(n, part) * both), q, r, c);

struct memory {
  static constexpr std::int64_t steps = 5, lanes = 16;
  std::vector<float> scales = std::vector<float>(2 * steps, 1.0F), qs = std::vector<float>(lanes, 2.0F),
                     rs = std::vector<float>(lanes, 0.5F), cs = std::vector<float>(lanes, 0.25F),
                     dys = std::vector<float>(2 * steps * lanes, 1.0F), dvs = std::vector<float>(lanes, 7.0F),
                     dqs = std::vector<float>(lanes), drs = std::vector<float>(lanes),
                     dcs = std::vector<float>(lanes);

  void run_with(std::vector<float>& dq, std::vector<float>& dc) {
    run<encoding>(cpu{1}, scale = view(scales.data(), steps, 2), q = view(qs.data(), lanes),
                  r = view(rs.data(), lanes), c = view(cs.data(), lanes),
                  tensor<"dy">{} = view(dys.data(), steps, 2, lanes),
                  tensor<"dv">{} = view(dvs.data(), lanes), tensor<"dq">{} = view(dq.data(), lanes),
                  tensor<"dr">{} = view(drs.data(), lanes), tensor<"dc">{} = view(dc.data(), lanes));
  }
};

}  // namespace

TEST_CASE("what may be overwritten goes by the tensors of the program as written", "[exec][sum_order]") {
  memory apart;
  apart.run_with(apart.dqs, apart.dcs);
  CHECK(apart.dcs[0] != 0.0F);

  memory over_r;  // which is read again, for dc
  CHECK_THROWS_AS(over_r.run_with(over_r.rs, over_r.dcs), overlap_error);

  memory over_c;  // which is read before
  over_c.run_with(over_c.dqs, over_c.cs);
  CHECK(over_c.cs == apart.dcs);
  CHECK(over_c.drs == apart.drs);
}
